"""Rows of puzzle data: the fields `puzzle`, `header`, `rows`, or the hub's layout with its solutions blanked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...errors import InputError
from ...signatures.answers import Grid, fold
from ..base import field_of
from .cache import kept
from .clues import Puzzle, parse_puzzle
from .generator import GENERATOR_VERSION, generate_row, parse_sizes
from .solver import unique_rows

#: What stands in a cell that the benchmark's public release keeps to itself.
_BLANKED = frozenset({"", "___"})


@dataclass(frozen=True)
class PuzzleRow:
    """A row, read.

    Attributes:
        puzzle: the puzzle's text.
        grid: the solution.
        given: the row itself holds the solution; else the solver found it.
    """

    puzzle: str
    grid: Grid
    given: bool


def read_puzzle_row(row: Mapping[str, Any], where: str) -> PuzzleRow:
    """Read a row in either layout: `puzzle`, `header` and `rows`, or `puzzle` and `solution` with the last two in it.

    Where the solution is missing or blanked, the puzzle's text is read and solved. A row of outputs may instead have
    the solution as its `gold`, in any shape that `Grid` reads; it needs no `puzzle` then.

    Raises:
        InputError: when a field is missing or wrong, or the puzzle to be solved cannot be read or has not one solution.
    """
    if row.get("gold") is not None:
        return PuzzleRow(str(row.get("puzzle") or ""), _gold_grid(row["gold"], where), given=True)
    puzzle = str(field_of(row, "puzzle", where))
    grid = given_grid(row, where)
    if grid is not None:
        return PuzzleRow(puzzle, grid, given=True)
    try:
        header, rows = solved(puzzle)
    except InputError as error:
        raise InputError(f"{where}: the row holds no solution, and its puzzle cannot be solved: {error}") from None
    return PuzzleRow(puzzle, Grid(header=header, rows=rows), given=False)


def _gold_grid(gold: Any, where: str) -> Grid:
    try:
        grid = Grid.model_validate(gold)
    except ValueError:
        grid = None
    if grid is None or not grid.rows or len(grid.header) < 2:
        raise InputError(f'{where}, field gold: must be a grid, {{"header": ["House", ...], "rows": [[...], ...]}}')
    return grid


def given_grid(row: Mapping[str, Any], where: str) -> Grid | None:
    """Return the solution that a row holds; None when it is missing or blanked.

    Raises:
        InputError: when it is not a grid.
    """
    solution = _json(row.get("solution"), where, "solution")
    holder = solution if isinstance(solution, dict) else row
    header, rows = _json(holder.get("header"), where, "header"), _json(holder.get("rows"), where, "rows")
    if rows is None:
        return None
    if header is None:
        raise InputError(f"{where}: the field 'header' is missing; it names the columns of 'rows', \"House\" first")
    if not isinstance(header, list | tuple) or len(header) < 2 or fold(header[0]) != "house":
        raise InputError(f'{where}, field header: must be a list of column names, "House" first')
    if not isinstance(rows, list | tuple) or not rows:
        raise InputError(f"{where}, field rows: must be a list of rows, one a house")
    for number, cells in enumerate(rows, start=1):
        if not isinstance(cells, list | tuple) or len(cells) != len(header):
            raise InputError(f"{where}, field rows: row {number} must have {len(header)} cells, as the header has")
        if any(cell is None or fold(cell) in _BLANKED for cell in cells[1:]):
            return None
    return Grid.model_validate({"header": list(header), "rows": [list(cells) for cells in rows]})


def _json(value: Any, where: str, field: str) -> Any:
    if not isinstance(value, str):
        return value
    try:  # a cell of a CSV file
        return json.loads(value)
    except ValueError:
        raise InputError(f"{where}, field {field}: a text that is not JSON") from None


def solved(puzzle: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a puzzle's only solution. Solutions are kept in the cache folder.

    Raises:
        InputError: when the text cannot be read, or has no or several solutions.
    """
    parsed = parse_puzzle(puzzle)
    rows = kept(f"solved/{puzzle_key(puzzle)}", partial(unique_rows, parsed), partial(_solves, parsed))
    return parsed.header, rows


def _solves(puzzle: Puzzle, rows: list[list[str]]) -> bool:
    """Return whether rows from the cache are a solution, down to their spelling."""
    places = puzzle.places(puzzle.header, rows)
    return all(clue.holds(places) for clue in puzzle.clues) and puzzle.rows(places) == rows


def generated_rows(sizes: Any, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of `generator.generate_rows`, kept in the cache folder one by one.

    Raises:
        InputError: for a wrong size.
    """
    wanted = parse_sizes(sizes)
    for number in range(count):
        (houses, attributes), index = wanted[number % len(wanted)], number // len(wanted)
        yield kept(
            f"generated-{GENERATOR_VERSION}/{houses}x{attributes}/seed-{seed}/{index}",
            partial(generate_row, houses, attributes, index, seed),
            _complete,
        )


def _complete(row: dict[str, Any]) -> bool:
    texts = all(isinstance(row[name], str) for name in ("id", "size", "puzzle"))
    return texts and _solves(puzzle := parse_puzzle(row["puzzle"]), row["rows"]) and row["header"] == puzzle.header


def puzzle_key(puzzle: str) -> str:
    """Return a hash of a puzzle's text: what all questions about one puzzle have in common."""
    return hashlib.sha256(puzzle.strip().encode("utf-8")).hexdigest()
