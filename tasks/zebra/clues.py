"""Puzzle texts to typed puzzles and back: the header, the attribute lists and the nine kinds of clue.

Houses count from 1, left to right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from ...errors import InputError
from ...signatures.answers import fold
from .vocabulary import by_name, by_sentence

ClueKind = Literal["at", "not at", "same", "directly left", "left", "right", "next", "one between", "two between"]

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")

#: How each kind reads; `{0}` and `{1}` are mentions, `{house}` is an ordinal. "same" is last: others hold its " is ".
_TEMPLATES: dict[ClueKind, str] = {
    "one between": "There is one house between {0} and {1}.",
    "two between": "There are two houses between {0} and {1}.",
    "next": "{0} and {1} are next to each other.",
    "directly left": "{0} is directly left of {1}.",
    "left": "{0} is somewhere to the left of {1}.",
    "right": "{0} is somewhere to the right of {1}.",
    "not at": "{0} is not in the {house} house.",
    "at": "{0} is in the {house} house.",
    "same": "{0} is {1}.",
}
_INTRODUCTION = (
    "There are {n} houses, numbered 1 to {n} from left to right, as seen from across the street. Each house is "
    "occupied by a different person. Each house has a unique attribute for each of the following characteristics:"
)
_HOUSES = re.compile(r"There are (\d+) houses", re.IGNORECASE)
_LISTED = re.compile(r"^\s*-\s*(?P<sentence>[^`]+?)\s*:\s*(?P<values>`.*`)\s*$")
_CLUE = re.compile(r"^\s*(\d+)\.\s+(.+?)\s*$")


class Mention(NamedTuple):
    """The person who has a value of an attribute."""

    attribute: str
    value: str


#: Where each value is: `places[mention]` is a house, 1-based.
Places = Mapping[Mention, int]


@dataclass(frozen=True)
class Clue:
    """One clue.

    Attributes:
        kind: what it says. "left" is somewhere to the left; "one between" is a distance of 2, "two between" of 3.
        first: whom it speaks of.
        second: the other one; None for "at" and "not at".
        house: for "at" and "not at".
    """

    kind: ClueKind
    first: Mention
    second: Mention | None = None
    house: int | None = None

    def allows(self, first: int, second: int | None = None) -> bool:
        """Return whether the clue holds when its mentions are in these houses."""
        if self.kind == "at":
            return first == self.house
        if self.kind == "not at":
            return first != self.house
        assert second is not None
        difference = second - first
        return {
            "same": difference == 0,
            "directly left": difference == 1,
            "left": difference > 0,
            "right": difference < 0,
            "next": abs(difference) == 1,
            "one between": abs(difference) == 2,
            "two between": abs(difference) == 3,
        }[self.kind]

    def holds(self, places: Places) -> bool | None:
        """Return whether the clue holds in a grid; None when a value that it mentions is nowhere."""
        first = places.get(self.first)
        if first is None:
            return None
        if self.second is None:
            return self.allows(first)
        second = places.get(self.second)
        return None if second is None else self.allows(first, second)

    def text(self) -> str:
        """Return the clue in the benchmark's words."""
        ordinal = _ORDINALS[self.house - 1] if self.house else ""
        words = _TEMPLATES[self.kind].format(
            phrase_of(self.first), phrase_of(self.second) if self.second else "", house=ordinal
        )
        return words[0].upper() + words[1:]


@dataclass(frozen=True)
class Puzzle:
    """A puzzle, read.

    Attributes:
        houses: how many.
        attributes: (column name, values in the text's order), in the text's order.
        clues: in the text's order.
    """

    houses: int
    attributes: tuple[tuple[str, tuple[str, ...]], ...]
    clues: tuple[Clue, ...]

    @property
    def header(self) -> list[str]:
        """The grid's column names, "House" first."""
        return ["House", *(name for name, _ in self.attributes)]

    @property
    def size(self) -> str:
        """Houses and attributes as the benchmark writes them: "5*6"."""
        return f"{self.houses}*{len(self.attributes)}"

    def mentions(self) -> Iterator[Mention]:
        """Yield every value of every attribute."""
        for name, values in self.attributes:
            for value in values:
                yield Mention(name, value)

    def rows(self, places: Places) -> list[list[str]]:
        """Return a solution as the grid's rows, the house number first."""
        rows = [[str(house), *[""] * len(self.attributes)] for house in range(1, self.houses + 1)]
        for column, (name, values) in enumerate(self.attributes, start=1):
            for value in values:
                rows[places[Mention(name, value)] - 1][column] = value
        return rows

    def places(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[Mention, int]:
        """Return where a grid puts each value; a value that it puts nowhere, or twice, is left out."""
        values = {
            fold(name): {fold(value): Mention(name, value) for value in listed} for name, listed in self.attributes
        }
        seen: dict[Mention, int] = {}
        twice: set[Mention] = set()
        for house, row in enumerate(rows, start=1):
            for name, cell in zip(header[1:], row[1:], strict=False):
                mention = values.get(fold(name), {}).get(fold(cell))
                if mention is not None:
                    if mention in seen:
                        twice.add(mention)
                    seen[mention] = house
        return {mention: house for mention, house in seen.items() if mention not in twice}

    def text(self) -> str:
        """Return the puzzle as the benchmark writes it."""
        known = by_name()
        lines = [_INTRODUCTION.format(n=self.houses)]
        for name, values in self.attributes:
            listed = ", ".join(f"`{value}`" for value in values)
            lines.append(f" - {known[fold(name)].sentence}: {listed}")
        lines += ["", "## Clues:", *(f"{number}. {clue.text()}" for number, clue in enumerate(self.clues, start=1))]
        return "\n".join(lines) + "\n"


def phrase_of(mention: Mention) -> str:
    """Return how a clue mentions a value, as it reads inside a sentence."""
    return by_name()[fold(mention.attribute)].phrases[mention.value]


@lru_cache(maxsize=1024)
def parse_puzzle(text: str) -> Puzzle:
    """Read a puzzle in the benchmark's format.

    Raises:
        InputError: when something is not in that format; the text says which clue or line.
    """
    match = _HOUSES.search(text)
    if match is None:
        raise InputError("the puzzle does not say 'There are N houses'")
    houses = int(match.group(1))
    attributes = tuple(_attributes(text, houses))
    if not attributes:
        raise InputError(
            "the puzzle lists no attributes (lines such as ' - Each person has a unique name: `Eric`, ...')"
        )
    mentions = _mentions(attributes)
    heading = re.search(r"^#+\s*Clues:?\s*$", text, re.IGNORECASE | re.MULTILINE)
    if heading is None:
        raise InputError("the puzzle has no heading '## Clues:'")
    clues = []
    for line in text[heading.end() :].splitlines():
        if line.strip():
            numbered = _CLUE.match(line)
            if numbered is None:
                raise InputError(f"a clue is a numbered line, not {line.strip()!r}")
            clues.append(_parse_clue(numbered.group(2), numbered.group(1), mentions, houses))
    return Puzzle(houses, attributes, tuple(clues))


def _attributes(text: str, houses: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in text.splitlines():
        match = _LISTED.match(line)
        if match is None:
            continue
        attribute = by_sentence().get(fold(match["sentence"]))
        if attribute is None:
            raise InputError(f"no attribute of the benchmark is introduced by '{match['sentence']}'")
        values = tuple(re.findall(r"`([^`]*)`", match["values"]))
        known = {fold(value): value for value in attribute.phrases}
        for value in values:
            if fold(value) not in known:
                raise InputError(f"`{value}` is not a value of {attribute.name}. Known: {', '.join(attribute.phrases)}")
        if len({fold(value) for value in values}) != houses or len(values) != houses:
            raise InputError(
                f"{attribute.name} must list {houses} different values, one a house; it lists {len(values)}"
            )
        yield attribute.name, tuple(known[fold(value)] for value in values)


def _mentions(attributes: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, Mention]:
    mentions = (Mention(name, value) for name, values in attributes for value in values)
    return {fold(phrase_of(mention)): mention for mention in mentions}


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[ClueKind, re.Pattern[str], str], ...]:
    # Two-mention templates are matched as prefix + (both mentions with the words between) + suffix: the words between
    # also occur inside mentions ("whose favorite color is red is Eric"), so every split is tried.
    patterns = []
    for kind, template in _TEMPLATES.items():
        before, rest = template.split("{0}")
        if "{1}" in rest:
            between, after = rest.split("{1}")
            patterns.append((kind, re.compile(f"{before}(.+){re.escape(after)}", re.IGNORECASE), between))
        else:
            between, after = rest.split("{house}")
            patterns.append((kind, re.compile(f"(.+){between}(\\w+){re.escape(after)}", re.IGNORECASE), ""))
    return tuple(patterns)


def _parse_clue(text: str, number: str, mentions: dict[str, Mention], houses: int) -> Clue:
    for kind, pattern, between in _patterns():
        match = pattern.fullmatch(text)
        if match is None:
            continue
        if kind in ("at", "not at"):
            ordinal = match.group(2).lower()
            first = mentions.get(fold(match.group(1)))
            if first is not None and ordinal in _ORDINALS[:houses]:
                return Clue(kind, first, house=_ORDINALS.index(ordinal) + 1)
            continue
        both = match.group(1)
        for split in re.finditer(re.escape(between), both):
            first = mentions.get(fold(both[: split.start()]))
            second = mentions.get(fold(both[split.end() :]))
            if first is not None and second is not None:
                return Clue(kind, first, second)
    raise InputError(f"clue {number} cannot be read: '{text}'")
