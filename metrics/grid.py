"""Scoring logic grids: cells, puzzles, and ZebraLogic's classes of size.

`puzzle` is the share of grids with every cell right, `cell` the share of right cells among all cells of all puzzles (a
blank puzzle's cells are all wrong, and counted). easy/hard are the classes of the ZebraLogic leaderboard, small to xl
those of the later papers (Lin et al., arXiv 2502.01100).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..signatures.answers import EMPTY_CELLS, Grid, fold, house_number
from .score import Score

#: Sizes are "houses*attributes".
EASY = frozenset({"2*2", "2*3", "2*4", "2*5", "2*6", "3*2", "3*3"})
SCALES: Mapping[str, frozenset[str]] = {
    "small": EASY | {"4*2"},
    "medium": frozenset({"3*4", "3*5", "3*6", "4*3", "4*4", "5*2", "6*2"}),
    "large": frozenset({"4*5", "5*3", "4*6", "5*4", "6*3"}),
    "xl": frozenset({"5*5", "6*4", "5*6", "6*5", "6*6"}),
}
_ALL = frozenset[str]().union(*SCALES.values())
#: The names of a corpus's scores, in the order of the published tables.
GRID_SCORES = ("puzzle", "easy", "hard", "small", "medium", "large", "xl", "cell", "blank")

_SIZE = re.compile(r"^\s*(\d+)\s*[*x×]\s*(\d+)\s*$", re.IGNORECASE)
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


def size_name(size: str) -> str | None:
    """Return a size as "houses*attributes" ("5x6" is "5*6"); None when it is not a size."""
    match = _SIZE.match(size)
    return f"{int(match.group(1))}*{int(match.group(2))}" if match else None


def difficulty(size: str) -> str | None:
    """Return "easy" or "hard"; None for a size that the benchmark does not have."""
    return None if size not in _ALL else "easy" if size in EASY else "hard"


def scale(size: str) -> str | None:
    """Return "small", "medium", "large" or "xl"; None for a size that the benchmark does not have."""
    return next((name for name, sizes in SCALES.items() if size in sizes), None)


def column_key(name: object) -> str:
    """Return the key under which column names are matched: "Book Genre", "book_genre" and "BookGenre" are one."""
    return _NOT_ALPHANUMERIC.sub("", str(name)).casefold()


@dataclass(frozen=True)
class WrongCell:
    """A cell that differs from the right one; `given` is "" when it is missing, null or a placeholder."""

    house: int
    attribute: str
    given: str
    right: str


@dataclass(frozen=True)
class Comparison:
    """A grid beside the right one.

    Attributes:
        correct: cells that are right.
        total: cells of the right grid, house numbers not counted.
        wrong: the others, by house.
    """

    correct: int
    total: int
    wrong: tuple[WrongCell, ...]


def compare(answer: Grid | None, gold: Grid) -> Comparison:
    """Compare a grid with the right one, cell by cell.

    Cells are equal when their texts are, whatever the case and the white space. House numbers and column names are
    matched, not positions: an answer may list its columns or houses in another order, and more of them than asked.
    """
    cells = _cells(answer)
    wrong = []
    total = 0
    for position, row in enumerate(gold.rows, start=1):
        house = house_number(row[0]) or position
        for name, right in zip(gold.header[1:], row[1:], strict=True):
            total += 1
            given = cells.get((house, column_key(name)), "")
            if fold(given) != fold(right):
                wrong.append(WrongCell(house, name, "" if fold(given) in EMPTY_CELLS else given, right))
    return Comparison(total - len(wrong), total, tuple(wrong))


def _cells(grid: Grid | None) -> dict[tuple[int, str], str]:
    cells: dict[tuple[int, str], str] = {}
    for position, row in enumerate(grid.rows if grid else (), start=1):
        house = (house_number(row[0]) if row else None) or position
        for name, cell in zip(grid.header[1:] if grid else (), row[1:], strict=False):
            cells[house, column_key(name)] = cell
    return cells


def grid_score(answer: Grid | None, gold: Grid, size: str, *, credit: str = "puzzle", hint: str = "") -> Score:
    """Score one grid.

    Args:
        answer: the grid given; None, no rows, or no column that was asked for is a blank.
        gold: the right grid.
        size: "houses*attributes", kept in the score's parts for the corpus scores.
        credit: "puzzle" makes the value 1 or 0; "cell" makes it the share of right cells.
        hint: added to the feedback of a wrong grid.

    Returns:
        a score with the parts `correct_cells`, `total_cells`, `solved` (1 or 0) and `size`.
    """
    comparison = compare(answer, gold)
    asked = {column_key(name) for name in gold.header[1:]}
    blank = answer is None or not answer.rows or asked.isdisjoint(column_key(name) for name in answer.header[1:])
    solved = not comparison.wrong
    return Score(
        value=comparison.correct / comparison.total if credit == "cell" else float(solved),
        blank=blank,
        parts={
            "correct_cells": comparison.correct,
            "total_cells": comparison.total,
            "solved": int(solved),
            "size": size,
        },
        feedback=_feedback(comparison, blank, hint),
    )


def _feedback(comparison: Comparison, blank: bool, hint: str) -> str:
    if blank:
        return "No grid could be read from the answer. It must give a value for every house and attribute."
    if not comparison.wrong:
        return f"All {comparison.total} cells are right."
    shown = "; ".join(
        f"house {cell.house} {cell.attribute} is {cell.right}, not {cell.given or 'blank'}"
        for cell in comparison.wrong[:8]
    )
    more = f"; and {len(comparison.wrong) - 8} more" if len(comparison.wrong) > 8 else ""
    text = f"{comparison.correct} of {comparison.total} cells are right. Wrong: {shown}{more}."
    return f"{text} {hint}" if hint else text


def aggregate_grids(scores: Sequence[Score]) -> dict[str, float | None]:
    """Return the corpus scores under the names of `GRID_SCORES`, as fractions; None where no puzzle counts."""
    classes: dict[str, list[Score]] = {name: [] for name in ("easy", "hard", *SCALES)}
    for score in scores:
        size = str(score.parts["size"])
        for name in (difficulty(size), scale(size)):
            if name is not None:
                classes[name].append(score)
    found: dict[str, float | None] = {
        "puzzle": _solved(scores),
        **{name: _solved(members) for name, members in classes.items()},
        "cell": _cell_accuracy(scores),
        "blank": sum(score.blank for score in scores) / len(scores) if scores else None,
    }
    return {name: found[name] for name in GRID_SCORES}


def by_size(scores: Iterable[Score]) -> dict[str, dict[str, Any]]:
    """Return `n`, `puzzle`, `cell` and `blank` of each size that occurs, smallest first."""
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(str(score.parts["size"]), []).append(score)
    return {
        size: {
            "n": len(members),
            "puzzle": _solved(members),
            "cell": _cell_accuracy(members),
            "blank": sum(score.blank for score in members) / len(members),
        }
        for size, members in sorted(groups.items())
    }


def _solved(scores: Sequence[Score]) -> float | None:
    return sum(_part(score, "solved") for score in scores) / len(scores) if scores else None


def _cell_accuracy(scores: Sequence[Score]) -> float | None:
    total = sum(_part(score, "total_cells") for score in scores)
    return sum(_part(score, "correct_cells") for score in scores) / total if total else None


def _part(score: Score, name: str) -> int:
    return int(score.parts[name] or 0)
