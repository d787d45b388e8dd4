"""Reading chess moves and squares from a model's text.

Moves are texts here; whether one is legal is for those who know the board.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .answer_statements import Statement, best_first
from .markup import plain_text
from .patterns import any_of
from .prose import closing_prose, concludes, is_cut_off, sentences

_SAN = r"(?:[O0]-[O0](?:-[O0])?|[KQRBN][a-h]?[1-8]?x?[a-h][1-8]|[a-h]x[a-h][1-8](?:=?[QRBN])?|[a-h][1-8](?:=?[QRBN])?)"
_UCI = r"(?:[a-h][1-8]\s?(?:-|–|to\s)?\s?[a-h][1-8](?:=?[qrbnQRBN])?)"
_MOVE = re.compile(
    rf"(?<![\w-])(?:\d+\s?\.+\s?)?(?P<uci>{_UCI})(?!\w)"
    rf"|(?<!\w)(?:\d+\s?\.+\s?)?(?P<san>{_SAN})[+#]?[!?]*(?![\w=]|-[O0])"
)
_SPOKEN = re.compile(
    r"\b(?P<piece>king|queen|rook|bishop|knight|pawn)\b(?:\s+(?:from|on)\s+[a-h][1-8])?\s+"
    r"(?:(?:moves?|goes|captures?|takes?)\s+)?(?:to|on|at)?\s*(?P<square>[a-h][1-8])\b"
    r"|\bcastl(?:e|es|ing)\s+(?P<side>king|queen)-?\s?side\b|\b(?P<short>short|long)\s+castl",
    re.IGNORECASE,
)
_PIECES = {"king": "K", "queen": "Q", "rook": "R", "bishop": "B", "knight": "N", "pawn": ""}
_SQUARE = re.compile(r"(?<![A-Za-z0-9])([a-hA-H])([1-8])(?![A-Za-z0-9])")
_PLAYING = any_of(
    "play, plays, choose, suggest, recommend, moves? would be, moves? should be, go with, continue with, is,"
    "vote for, pick, select, prefer"
)
_PLAYS = re.compile(rf"\b{_PLAYING}\b[\s:*\"'`(]*(?:the\s+move\s+)?$", re.IGNORECASE)


def moves_in(text: str) -> list[str]:
    """Return the moves in a text in order, in SAN or UCI, without move numbers, checks and comments.

    "0-0" is written O-O, "e2-e4" and "e2 to e4" e2e4, "Knight to f3" Nf3, "e8Q" e8=Q.
    """
    found: list[tuple[int, str]] = []
    spoken = [match.span() for match in _SPOKEN.finditer(text)]
    for match in _MOVE.finditer(text):
        if any(start <= match.start() < end for start, end in spoken):
            continue
        if uci := match.group("uci"):
            found.append((match.start(), re.sub(r"[\s=–-]|to", "", uci).lower()))
        else:
            found.append((match.start(), tidy_move(match.group("san"))))
    for match in _SPOKEN.finditer(text):
        if match.group("piece"):
            found.append((match.start(), _PIECES[match.group("piece").lower()] + match.group("square").lower()))
        else:
            side = (match.group("side") or match.group("short")).lower()
            found.append((match.start(), "O-O" if side in ("king", "short") else "O-O-O"))
    return [move for _, move in sorted(found, key=lambda item: item[0])]


def tidy_move(move: str) -> str:
    """Return a move in one spelling: no check, mate or comment signs, castling with letters, "e8=Q"."""
    move = re.sub(r"[+#!?]+$", "", move.strip())
    if re.fullmatch(r"[O0o]-[O0o](?:-[O0o])?", move):
        return re.sub(r"[0o]", "O", move)
    return re.sub(r"(?<=[a-h][18])([QRBN])$", r"=\1", move)


def move_candidates(text: str, found: Sequence[Statement]) -> Iterator[str]:
    """Yield the moves that a prepared text may give as its answer, the likeliest first.

    First those in statements (the last statement first, each statement's first move first), then a move that opens the
    text, follows "I would play", or stands in a concluding sentence, then the only move there is.
    """
    for statement in best_first(found):
        shown = statement.value if isinstance(statement.value, str) else statement.text
        yield from moves_in(plain_text(str(shown)))
    if is_cut_off(text):
        return
    prose = plain_text(closing_prose(text)).replace("**", "")
    opening = _MOVE.match(prose.lstrip(" `*\"'"))
    if opening:
        yield from moves_in(opening.group())
    for match in reversed(list(_MOVE.finditer(prose))):
        if _PLAYS.search(prose[max(0, match.start() - 60) : match.start()]):
            yield from moves_in(match.group())
    for part in reversed(sentences(prose)):
        if concludes(part):
            yield from moves_in(part)
    every = list(dict.fromkeys(moves_in(prose)))
    if len(every) == 1:
        yield every[0]


def squares_in(text: str) -> list[str]:
    """Return the squares in a text in order, in small letters; the target square of a move counts as one."""
    text = re.sub(r"\b[KQRBN](?:[a-h]?[1-8]?x?)([a-h][1-8])\b", r"\1", text)
    text = re.sub(r"\b[a-h][1-8][- ]?([a-h][1-8])\b", r"\1", text)
    return [f"{file.lower()}{rank}" for file, rank in _SQUARE.findall(text)]


def read_square(text: str, found: Sequence[Statement]) -> str | None:
    """Read the square that a prepared text answers with."""
    for statement in best_first(found):
        shown = statement.value if isinstance(statement.value, str) else statement.text
        squares = squares_in(plain_text(str(shown)))
        if squares:
            return _target(plain_text(str(shown)), squares)
    if is_cut_off(text):
        return None
    prose = plain_text(closing_prose(text)).replace("**", "")
    every = list(dict.fromkeys(squares_in(prose)))
    if len(every) == 1:
        return every[0]
    if match := re.match(
        r"^[\s\"'`(]*([a-h][1-8])\b(?!\W{1,3}(?:or|and)\b|\s*[,/]\s*[a-h][1-8])", prose, re.IGNORECASE
    ):
        return match.group(1).lower()
    parts = sentences(prose)
    for part in reversed(parts):
        squares = squares_in(part)
        if squares and (
            len(parts) == 1 or concludes(part) or re.search(r"\b(?:can|could|may|move|moves|go|goes)\b.*\bto\b", part)
        ):
            return _target(part, squares)
    return None


def _target(text: str, squares: list[str]) -> str | None:
    """Return the square that is moved to: "from e2 to e4" is e4, "e4 or e5" is none."""
    target = re.search(
        r"\bto\s+(?:the\s+)?(?:square\s+)?([a-h][1-8])\b(?!\s*(?:,|/|or|and)\s*(?:to\s+)?[a-h][1-8])",
        text,
        re.IGNORECASE,
    )
    if target:
        return target.group(1).lower()
    if len(set(squares)) > 1 and re.search(r"\b(?:or|and)\b|,|/", text):
        return None
    return squares[0]
