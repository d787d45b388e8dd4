"""Reading the letter of a multiple-choice answer.

A letter counts where it stands as one: alone, in parentheses, bold or a box, before a stop or a dash, after "option",
or in the place of an answer. "A" before a word is an article unless the word goes on about the choice ("A because").
An answer that gives a choice's text instead of its letter is read too. Two letters are no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..signatures.answers import fold
from .answer_statements import Statement, best_first
from .markup import plain_text
from .patterns import any_of
from .prose import closing_prose, concludes, is_cut_off, sentences

# Words that may follow a letter which is a choice: "A because", "B is right", "C seems".
_AFTER = any_of(
    "because, since, as, is, was, would, seems, appears, are, and, or, but, not, due, given, for the, with,"
    "from among, from the, which, fits, makes, follows, holds, best, instead, rather, over, remains, looks,"
    "correctly, must, should, has to, —, –, -"
)
_DENYING = any_of(
    "\\bnot, n['’]t, \\bnever, \\bnor, \\bneither, \\binstead of, \\brather than, \\brul(?:e|es|ed|ing) out,"
    "\\beliminat(?:e|es|ed|ing), \\bexclud(?:e|es|ed|ing), \\breject(?:s|ed|ing)?, \\bdiscard(?:s|ed|ing)?,"
    "\\bunlike, \\bexcept, \\bother than, \\bover, \\bagainst"
)
_BEFORE_LETTER = any_of(
    "be, the, necessarily, just, simply, choose, pick, select, option, choice, choices, options, answer, answers,"
    "letter, with, for"
)
_RULED_OUT = re.compile(rf"{_DENYING}\s+(?:{_BEFORE_LETTER}\s+)*[\s(\[*\"'$\\]*$", re.IGNORECASE)
_CLOSING = r"^[\s)\]*\"'.:$]*"
_WRONG = any_of(
    "wrong, incorrect, false, impossible, ruled out, eliminated, excluded, out, unlikely, implausible,"
    "irrelevant, invalid, mistaken, inaccurate, untrue"
)
_SEEMS = any_of("is, are, was, were, seems?, can be, could be, would be, looks?")
# Case counts: "(D) Doesn't affect it" is a choice's text, "D doesn't fit" is not.
_IS_WRONG = re.compile(
    rf"{_CLOSING}(?:[^.;:\n]{{0,60}}?\s)?"
    r"(?:is|are|was|were|seems?|can|could|would|does|do|must)\s*(?:n['’]t|\s+not|not)\b"
    rf"|{_CLOSING}(?:[^.;:\n,]{{0,60}}?\s)?{_SEEMS}\s+(?:\w+ly\s+|also\s+|all\s+|both\s+)*{_WRONG}\b"
)
_IS_WRONG_ITSELF = re.compile(rf"^[\s)\]*\"']*{_SEEMS}\s+(?:\w+ly\s+|also\s+)*(?:{_WRONG}|not)\b", re.IGNORECASE)
_RIGHT = any_of(
    "best, correct, right, answer, choice, final, true, accurate, appropriate, likely, plausible, suitable, valid"
)
_EMPHASIS = any_of("to be, the, most, indeed, therefore, thus, also, more, only, clearly, definitely, a, my")
_IS_RIGHT = re.compile(
    rf"{_CLOSING}(?:[^.;:\n]{{0,80}}?\s)?(?:is|seems|appears|must\s+be|would\s+be|remains|looks)\s+"
    rf"(?:{_EMPHASIS}\s+)*{_RIGHT}\b",
    re.IGNORECASE,
)
_PRAISE = any_of(
    "\\w+ly, also, still, now, therefore, thus, then, final, best, correct, right, most, likely, accurate,"
    "appropriate, suitable, plausible"
)
_CHOOSING = any_of(
    "choose, chose, pick, picked, select, selected, vote(?:s|d)?(?: (?:for|is))?, go(?:ing)? (?:with|for),"
    "opt for, lean(?:ing)? (?:towards?|to), settle (?:on|for),"
    "(?:choice|option|selection|vote|guess) (?:is|would be|remains), guess, say, stick with, stand by, support,"
    "agree with, prefer"
)
_CHOOSES = (
    r"(?:\b(?:i(?:['’]ll|['’]d|\s+will|\s+would)?|we(?:['’]ll|\s+will|\s+would)?|let['’]?s|my|the|our)\s+"
    rf"(?:{_PRAISE}\s+)*{_CHOOSING}\b"
    r"|\b(?:it|that|this|one)(?:['’]s|\s+(?:is|must\s+be|has\s+to\s+be|should\s+be|would\s+be))\b"
    r"|\b(?:option|choice)\b[^.\n]{0,80}?\b(?:is|would\s+be|must\s+be|should\s+be|seems\s+to\s+be)"
    r"|\bleads?\s+(?:us\s+)?to\b|\bcorresponds?\s+to\b|\bmatch(?:es)?\b|\bgoing\s+with\b)"
)
_NAMED = any_of(
    "the, option, choice, answer, letter, candidate, number, therefore, thus, definitely, probably, likely,"
    "most likely, to be"
)
# What a text says of other agents' answers, or how it scores them.
_OF_OTHERS = re.compile(
    r"^\W*(?:agent|solution|expert|student|participant)s?['’]?s?\s*(?:solution\s*)?#?\d|\bscores?\b|\[\[",
    re.IGNORECASE,
)
_ADVERBS = any_of(
    "most likely, likely, probably, definitely, clearly, indeed, still, therefore, thus, to be, that, simply"
)
_LEAD = (
    rf"^[\s>*#•\-]*(?:{_ADVERBS}\s+)*"
    r"(?:(?:the\s+)?(?:(?:correct|final|best|right)\s+)?(?:option|choice|letter|answer|candidate|statement)s?\s*:?\s*)?"
)
_INTRODUCES = any_of(
    "that, think, believe, say, so, thus, therefore, hence, both, and, or, either, is, be, choose, pick, then,"
    "because, since, for"
)


@dataclass(frozen=True)
class Choices:
    """The letters of a question and the patterns that find them.

    Attributes:
        letters: in the order of the choices.
        texts: the choices' texts in the same order, where they are known.
    """

    letters: tuple[str, ...]
    texts: tuple[str, ...] | None = None

    @cached_property
    def upper(self) -> str:
        """A character class of the letters."""
        return "[" + "".join(map(re.escape, self.letters)) + "]"

    @cached_property
    def lower(self) -> str:
        """A character class of the small letters."""
        return self.upper.lower()

    def named(self, letter: str) -> str:
        """Return the letter as the question has it."""
        return letter if letter in self.letters else letter.upper()

    @cached_property
    def folded(self) -> list[tuple[str, str]]:
        """Each choice's text as it is compared, with its letter; empty texts left out."""
        pairs = zip(map(_folded, self.texts or ()), self.letters, strict=False)
        return [(text, letter) for text, letter in pairs if text]


def _folded(text: str) -> str:
    return fold(_plain(text)).strip(" .!?,;:\"'()")


@lru_cache(maxsize=64)
def _compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def read_choice(text: str, choices: Choices, found: Sequence[Statement]) -> str | None:
    """Read the chosen letter of a prepared text.

    Args:
        text: what `prepare` returned.
        choices: the question's choices.
        found: the text's statements.
    """
    for statement in best_first(found):
        letter, stated = read_passage(_shown(statement), choices)
        if letter is not None or stated:
            return letter
    return None if is_cut_off(text) else _from_prose(closing_prose(text), choices)


def _shown(statement: Statement) -> str:
    value = statement.value
    if isinstance(value, list) and len(value) == 1:
        return str(value[0])
    if isinstance(value, dict):
        for key, item in value.items():
            is_letter = re.search(r"letter|choice|option|answer|label|key", str(key), re.IGNORECASE)
            if is_letter and isinstance(item, str | int):
                return str(item)
    return statement.text


def read_passage(text: str, choices: Choices) -> tuple[str | None, bool]:
    """Read a passage that states an answer: the letter, and whether anything was stated (two letters are a blank)."""
    plain = _plain(text)
    if not plain:
        return None, False
    for letter in (_leading(plain, choices), _by_text(plain, choices)):
        if letter is not None:
            return letter, True
    marked = _marked(plain, choices)
    if marked:
        return (marked[0] if len(marked) == 1 else None), True
    letter = _mentioned(plain, choices)
    return letter, letter is not None


def _plain(text: str) -> str:
    text = re.sub(r"\bN/A\b", " ", text)
    text = text if re.search(r"\$\d", text) else text.replace("$", " ")
    text = plain_text(text).replace("**", " ")
    return re.sub(r"\s+", " ", text).strip().strip("`\"'“”").strip()


def _leading(plain: str, choices: Choices) -> str | None:
    """Return the letter that a passage begins with: "B", "(b)", "B. Paris", "option B because ..."."""
    upper, lower = choices.upper, choices.lower
    closed = _compiled(rf"{_LEAD}[(\[]\s*({upper}|{lower})\s*[)\]]")
    stopped = _compiled(rf"{_LEAD}({upper})(?=\s*$|\s*[.,:;)\]!?/]|\s*[-–—](?![A-Za-z])|\s+{_AFTER}(?!\w))")
    for pattern in (closed, stopped):
        if match := pattern.match(plain):
            return _unless_denied(plain, match, choices)
    if match := _compiled(rf"{_LEAD}({lower})(?=\s*[.]?\s*$|\s*[):](?:\s|$))").match(plain):
        return choices.named(match.group(1))
    if match := _compiled(rf"{_LEAD}({upper})\s+(?=\S)").match(plain):
        letter, rest = match.group(1), fold(plain[match.end() :])
        is_named = any(name == letter and rest.startswith(text[:20]) for text, name in choices.folded)
        if is_named or letter not in ("A", "I"):  # an article, a pronoun
            return _unless_denied(plain, match, choices)
    return None


def _unless_denied(plain: str, match: re.Match[str], choices: Choices) -> str | None:
    """Return the matched letter, unless it is called wrong or another one stands beside it."""
    letter = choices.named(match.group(1))
    rest = plain[match.end(1) :]
    if _IS_WRONG_ITSELF.match(rest):
        return None
    if _compiled(rf"[^.;\n]{{0,80}}?\b(?:or|and)\s+(?:option\s+|choice\s+)?\(({choices.upper})\)").match(rest):
        return None  # "(B) this or (C) that"
    joined = _compiled(
        r"[\s)\].,]*(?:,|/|&|\band\b|\bor\b)\s*(?:(?:either|also|option|choice|maybe|possibly)\s+)*"
        rf"[(\[]?({choices.upper})\b(?![’'])"
    ).match(rest)
    if joined and joined.group(1) != letter:
        is_article = joined.group(1) in "AI" and re.match(r"\s*[a-z]", rest[joined.end() :])
        return letter if is_article else None
    return letter


def _is_denied(plain: str, start: int, end: int) -> bool:
    return bool(_RULED_OUT.search(plain[:start]) or _IS_WRONG.match(plain[end:]))


def _marked(plain: str, choices: Choices) -> list[str]:
    """Return the distinct letters that stand as letters in a passage and are not ruled out."""
    upper = choices.upper
    pattern = _compiled(
        rf"[(\[]\s*({upper}|{choices.lower})\s*[)\]]"
        rf"|\b(?i:option|choice|answer|letter|candidate)s?\s*:?\s*({upper})\b"
        rf"|(?<![\w'’])({upper})(?=\s*$|[.,:;!?](?:\s|$)|\))"
        rf"|(?:^|[,;:.(]\s*|\b(?i:{_INTRODUCES})\s+)({upper})(?=\s+{_AFTER}(?!\w))"
    )
    kept: list[str] = []
    for match in pattern.finditer(plain):
        group = match.lastindex or 0
        letter = choices.named(match.group(group))
        if match.group()[0] not in "([" and _is_word(letter, plain[match.end() :]):
            continue
        if letter not in kept and not _is_denied(plain, match.start(group), match.end()):
            kept.append(letter)
    return kept


def _is_word(letter: str, after: str) -> bool:
    """Return whether an unmarked letter is the article "A" or the pronoun "I"."""
    if letter == "I":
        return True
    return letter == "A" and bool(re.match(rf"\s+(?!{_AFTER}(?!\w))[a-z]", after))


def _by_text(plain: str, choices: Choices) -> str | None:
    """Return the letter whose choice's text the passage is, or begins with; the longest such text wins."""
    said = _folded(plain)
    exact = [letter for text, letter in choices.folded if text == said]
    if len(exact) == 1:
        return exact[0]
    begins = [
        (len(text), letter)
        for text, letter in choices.folded
        if re.match(rf"(?:the |a |an )?{re.escape(text)}(?!\w)", said)
    ]
    longest = [letter for length, letter in begins if length == max(begins)[0]]
    return longest[0] if len(longest) == 1 else None


def _mentioned(plain: str, choices: Choices) -> str | None:
    """Return the letter of the only choice whose text a passage mentions and does not rule out."""
    said = fold(plain)
    spans = [
        (match.start(), match.end(), letter)
        for text, letter in choices.folded
        for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", said)
        if not _is_denied(said, match.start(), match.end())
    ]
    outer = {
        letter
        for start, end, letter in spans
        if not any(other != letter and a <= start and end <= b and b - a > end - start for a, b, other in spans)
    }
    return outer.pop() if len(outer) == 1 else None


# -- texts that mark no answer ---------------------------------------------------------------------------------------


def _from_prose(prose: str, choices: Choices) -> str | None:
    prose = re.sub(r"\[\[[^\[\]]*\]\]", "", prose).strip()  # scores of other agents
    parts = sentences(prose)
    if not parts:
        return None
    upper = choices.upper
    first = _plain(prose.split("\n")[0])
    listed = {match.group(1) for match in re.finditer(rf"(?m)^\s*[(\[]?({upper})[)\].:]\s", prose)}
    if len(listed) <= 1 and (letter := _leading(first, choices)) is not None:  # else a list of the choices
        return letter
    if len(parts) == 1 and (letter := _by_text(_plain(prose), choices)) is not None:
        return letter
    if not _OF_OTHERS.search(parts[-1]) and (ending := re.search(rf"(?:^|[\s:=])\(\s*({upper})\s*\)[\s.!*]*$", prose)):
        before = prose[: ending.start(1)]
        if not _RULED_OUT.search(before) and not re.search(r"\([A-Z]\)[^.\n]{0,60}\b(?:or|and)\s+\($", before):
            return ending.group(1)
    for part in reversed(parts):
        if not _OF_OTHERS.search(part):
            letters = _chosen(part, choices)
            if letters:
                return letters.pop() if len(letters) == 1 else None
    closed = {letter for part in parts if not _OF_OTHERS.search(part) for letter in _closed(_plain(part), choices)}
    if len(closed) == 1:
        return closed.pop()
    last = _plain(parts[-1])
    marked = _marked(last, choices)
    if marked:
        return marked[0] if len(marked) == 1 else None
    return _mentioned(last, choices) if concludes(parts[-1]) or len(parts) == 1 else None


def _chosen(sentence: str, choices: Choices) -> set[str]:
    """Return the letters a sentence chooses ("I would go with B"), calls right, or concludes with."""
    plain = _plain(sentence)
    upper = choices.upper
    chooses = _compiled(
        rf"{_CHOOSES}\s*:?\s*(?:{_NAMED}\s+)*[(\[\"'*]*"
        rf"(?:({upper})(?![\w'’])(?!\s+(?!{_AFTER}\b)[a-z])|({upper})(?=[)\].,])|(?<=[(\[])({choices.lower})(?=[)\]]))",
        re.IGNORECASE,
    )
    picked = [
        match.group(match.lastindex or 0)
        for match in chooses.finditer(plain)
        if not _is_denied(plain, match.start(match.lastindex or 0), match.end())
    ]
    # Case was ignored for the words; a small letter counts in parentheses only.
    picked = [letter for letter in picked if letter in choices.letters or f"({letter})" in plain]
    if picked:
        return {choices.named(letter) for letter in picked} if len(set(picked)) > 1 else {choices.named(picked[-1])}
    right = set()
    for match in re.finditer(rf"(?<![\w'’])[(\[]?({upper})[)\]]?(?![\w'’])", plain):
        after = plain[match.end() :]
        stands = match.group(1) not in "AI" or re.match(rf"\s+{_AFTER}(?!\w)", after) or match.group()[0] in "(["
        if stands and _IS_RIGHT.match(after) and not _IS_WRONG.match(after):
            right.add(match.group(1))
    if right:
        return right
    closed = set(_closed(plain, choices)) if concludes(sentence) else set()
    return closed if len(closed) == 1 else set()


def _closed(plain: str, choices: Choices) -> Iterator[str]:
    """Yield the letters in parentheses, or after "option", that are neither ruled out nor part of a list."""
    upper = choices.upper
    for match in re.finditer(rf"\(({upper})\)|\b(?:[Oo]ption|[Cc]hoice)\s+({upper})\b", plain):
        before, after = plain[: match.start()], plain[match.end() :]
        listed = re.match(rf"\s*(?:,|/|\bor\b|\band\b)\s*(?:(?:or|and)\s+)?\(?{upper}\b", after) or re.search(
            rf"\b{upper}\)?\s*(?:,|/|,?\s*\b(?:or|and)\b)\s*$", before
        )
        if not listed and not _is_denied(plain, match.start(match.lastindex or 0), match.end()):
            yield match.group(match.lastindex or 0)


def last_letter(text: str, choices: Choices) -> str | None:
    """Return the last letter in parentheses, as "(B)"; None when there is none."""
    found = re.findall(rf"\(\s*({choices.upper})\s*\)", text)
    return found[-1] if found else None
