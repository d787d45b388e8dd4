"""Two-column tables that map a name to its group: subjects to categories, countries to cultural groups."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from ..errors import InputError
from .options import name_key
from .sources import read_file

#: The folder of the small data files that come with the package.
SHIPPED = Path(__file__).parent / "data"


def shipped_table(file: str) -> dict[str, str]:
    """Return a shipped two-column CSV file as a mapping from its first to its second column."""
    with (SHIPPED / file).open(encoding="utf-8", newline="") as lines:
        rows = iter(csv.reader(lines))
        next(rows)
        return {row[0]: row[1] for row in rows}


def group_table(path: Path, name: str, group: str) -> Mapping[str, str]:
    """Read a CSV (or JSONL, JSON, Parquet) file with two columns into a mapping from `name_key` to group.

    Args:
        path: the file.
        name: the column of names ("country").
        group: the column of groups.

    Raises:
        InputError: when the file, a column or a cell is missing, or a name has two groups.
    """
    table: dict[str, str] = {}
    for row, where in read_file(path):
        for column in (name, group):
            if not str(row.get(column) or "").strip():
                raise InputError(f"{where}: the column '{column}' is missing or empty; the file needs '{name},{group}'")
        key, value = name_key(row[name]), str(row[group]).strip()
        if table.setdefault(key, value) != value:
            raise InputError(f"{where}: {name} '{row[name]}' has two groups, '{table[key]}' and '{value}'")
    return table
