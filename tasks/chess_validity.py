"""Chess move validity: where a piece can legally go (BIG-bench chess state tracking; society of minds, section 3.2)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ..errors import InputError
from ..metrics.chess import chess_library, legal_targets
from ..metrics.extraction import extract_square
from ..metrics.score import Score
from ..signatures.demonstrations import Demonstration
from ..signatures.transcript import Persona
from .base import TASKS, Example, Task, field_of, row_id
from .options import integer_option

_SQUARE = re.compile(r"[a-h][1-8]")
_ANSWER_SQUARE = re.compile(r"(?<![a-zA-Z0-9])[KQRBN]?x?([a-h][1-8])[+#]?(?![a-zA-Z0-9])")
_UCI = re.compile(r"[a-h][1-8][a-h][1-8][qrbn]?")


@TASKS.register("chess-validity")
class ChessValidity(Task):
    """Name one square to which the piece on a given square can legally move, after a game in UCI notation.

    Rows have `moves` (UCI moves whose last token is the bare square of the piece; BIG-bench calls it `input`) and
    `answers` (all legal target squares; BIG-bench: `target`). Without `answers` they are worked out from the game.
    The default data is generated: random legal games from the usual position, as in BIG-bench's synthetic sets.
    An answer scores 1 when it is one of the legal target squares.
    """

    name: ClassVar[str] = "chess-validity"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "a legal target square for a piece after a game in UCI notation"
    answer_type: ClassVar[Any] = str
    option_help: ClassVar[Mapping[str, str]] = {
        "count": "how many games are generated (100)",
        "seed": "of the generator (0)",
        "plies": "longest generated game, in half-moves (40)",
    }

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.count = integer_option(self.options, "count", 100, minimum=1)
        self.seed = integer_option(self.options, "seed", 0)
        # With fewer than 4 half-moves there are too few different games for a set without repeats.
        self.plies = integer_option(self.options, "plies", 40, minimum=4, maximum=200)

    def generate(self) -> Iterator[dict[str, Any]]:
        """Yield `count` rows; a larger count with the same seed begins with the same rows."""
        generator = random.Random(self.seed)
        seen: set[str] = set()
        while len(seen) < self.count:
            row = _random_row(generator, self.plies)
            if row is not None and row["moves"] not in seen:
                yield {"id": f"validity-{self.seed}-{len(seen)}", **row}
                seen.add(row["moves"])

    def example(self, row: Mapping[str, Any], where: str) -> Example:
        """Build an example from `moves` and `answers`."""
        tokens = str(field_of(row, "moves", where, "input")).split()
        if not tokens or not _SQUARE.fullmatch(tokens[-1]):
            raise InputError(f"{where}, field moves: must end with the square of a piece, such as 'e2e4 e7e5 g1'")
        *moves, square = tokens
        for number, token in enumerate(moves, start=1):
            if not _UCI.fullmatch(token):
                raise InputError(f"{where}, field moves: '{token}', move {number}, is not in UCI notation such as e2e4")
        answers = row.get("answers") or row.get("target") or row.get("gold")
        if answers is None:
            answers = _targets_after(moves, square, where)
        if isinstance(answers, str):
            answers = answers.replace(",", " ").split()
        gold = sorted(str(answer).casefold() for answer in answers)
        for answer in gold:
            if not _SQUARE.fullmatch(answer):
                raise InputError(f"{where}, field answers: '{answer}' is not a square such as e4")
        if not gold:
            raise InputError(f"{where}, field answers: the piece on {square} has no legal move")
        question = render(moves, square)
        return Example(
            id=row_id(row, question), question=question, gold=gold, meta={"square": square, "plies": len(moves)}
        )

    def extract(self, text: str, example: Example, rule: str = "flexible") -> str | None:
        """Read the square that a text answers with."""
        self._check_rule(rule)
        return extract_square(text)

    def score(self, answer: Any | None, example: Example) -> Score:
        """Return 1 for a legal target square, else 0; what names no square, or several, is a blank.

        A whole move from the piece's square ("g1f3") or a move in SAN ("Nf3") counts as its target square.
        """
        square = _square_in(answer, example.meta["square"])
        right = f"The piece on {example.meta['square']} can go to {', '.join(example.gold)}."
        if square is None:
            return Score(0.0, blank=True, feedback=f"No single square was named. {right}")
        if square in example.gold:
            return Score(1.0, feedback=f"{square} is a legal target.")
        return Score(0.0, feedback=f"{square} is not a legal target. {right}")

    def demonstrations(self) -> list[Demonstration]:
        """Return one worked position."""
        return [
            Demonstration(
                question=render(["e2e4", "d7d5", "e4d5"], "d8"),
                reasoning=(
                    "White's pawn has captured on d5. It is Black's turn, and d8 holds the black queen. d7 is empty "
                    "since the pawn left it, so the queen can go along the file to d7, d6 or capture on d5. All other "
                    "ways are blocked by Black's own pieces."
                ),
                answer="d5",
                mistaken_reasoning="The queen stands on d8 and can go down the open file to d4.",
                mistaken_answer="d4",
                correction="There is a white pawn on d5: the queen may capture it there but cannot jump over it to d4.",
                personas=[
                    Persona(name="Scribe", expertise="chess notation", stance="keeps the board after every move"),
                    Persona(name="Arbiter", expertise="the rules of chess", stance="checks blocked lines and checks"),
                    Persona(name="Verifier", expertise="error checking", stance="replays the game from the start"),
                ],
            )
        ]


def render(moves: list[str], square: str) -> str:
    """Return the question for a game and the square of the piece that is to move."""
    game = " ".join(moves) if moves else "(none yet)"
    return (
        "A game of chess is written as moves from square to square (UCI notation).\n\n"
        f"Moves so far: {game}\n\n"
        f"The side to move now moves the piece on {square}. Name one square to which this piece can legally move. "
        "Answer with the square alone, such as e4."
    )


def _square_in(answer: Any | None, origin: str) -> str | None:
    text = str(answer or "").strip().strip("*`'\"()[]. ")
    lowered = text.casefold().replace("-", "")
    if _UCI.fullmatch(lowered):
        return lowered[2:4] if lowered[:2] == origin else None
    if _SQUARE.fullmatch(lowered):
        return lowered
    squares = set(_ANSWER_SQUARE.findall(text))
    return squares.pop() if len(squares) == 1 else None


def _targets_after(moves: list[str], square: str, where: str) -> list[str]:
    chess = chess_library()
    board = chess.Board()
    for number, move in enumerate(moves, start=1):
        try:
            board.push_uci(move)
        except ValueError:
            raise InputError(f"{where}, field moves: '{move}', move {number}, is not legal in its position") from None
    return legal_targets(board.fen(), square)


def _random_row(generator: random.Random, plies: int) -> dict[str, Any] | None:
    """Return a random game and a piece that can move after it; None when the game ended too early."""
    board = chess_library().Board()
    moves: list[str] = []
    for _ in range(generator.randint(3, plies)):
        legal = sorted(move.uci() for move in board.legal_moves)
        if not legal:
            return None
        moves.append(generator.choice(legal))
        board.push_uci(moves[-1])
    origins = sorted({move.uci()[:2] for move in board.legal_moves})
    if not origins:
        return None
    square = generator.choice(origins)
    return {"moves": " ".join([*moves, square]), "answers": legal_targets(board.fen(), square)}
