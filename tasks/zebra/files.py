"""Checking a file of puzzles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..base import field_of, row_id
from ..sources import read_file
from .clues import parse_puzzle
from .rows import given_grid
from .solver import solutions, superfluous


@dataclass
class VerifyReport:
    """What `verify_file` found.

    Attributes:
        file: its path.
        puzzles: how many rows it has.
        unique: puzzles whose clues were read and have exactly one solution.
        compared: rows that hold a solution.
        equal: of these, rows whose solution is the solver's, cell for cell.
        minimal: of the unique ones, puzzles of which no clue can go.
        problems: a line for each puzzle that cannot be read, is not unique or differs.
    """

    file: str
    puzzles: int = 0
    unique: int = 0
    compared: int = 0
    equal: int = 0
    minimal: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every puzzle has one solution, and it is the row's where the row holds one."""
        return not self.problems

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {**asdict(self), "ok": self.ok}

    def __str__(self) -> str:
        return (
            f"{self.file}: {self.unique} of {self.puzzles} puzzles have exactly one solution; "
            f"{self.equal} of {self.compared} equal the solution in the file; {self.minimal} have no superfluous clue"
        )


def verify_file(path: str | Path, progress: Callable[[int], None] | None = None) -> VerifyReport:
    """Read each puzzle of a file, solve it, compare with its `rows`, and look for superfluous clues.

    Args:
        path: a JSONL, JSON, CSV or Parquet file in the layout of `read_puzzle_row`.
        progress: called with the number of puzzles done, after each.

    Raises:
        InputError: for a file that is missing, broken or empty, or a row without `puzzle`.
    """
    report = VerifyReport(str(path))
    for row, where in read_file(Path(path)):
        report.puzzles += 1
        text = str(field_of(row, "puzzle", where))
        name = f"{where} ({row_id(row, text)})"
        given = given_grid(row, where)
        report.compared += given is not None
        try:
            puzzle = parse_puzzle(text)
        except InputError as error:
            report.problems.append(f"{name}: {error}")
            continue
        found = solutions(puzzle, limit=2)
        if len(found) == 1:
            report.unique += 1
            report.minimal += not superfluous(puzzle, found[0])
            if given is not None:
                if given.header == puzzle.header and given.rows == puzzle.rows(found[0]):
                    report.equal += 1
                else:
                    report.problems.append(f"{name}: the solution in the file is not the puzzle's")
        else:
            report.problems.append(f"{name}: {'no solution' if not found else 'more than one solution'}")
        if progress is not None:
            progress(report.puzzles)
    return report
