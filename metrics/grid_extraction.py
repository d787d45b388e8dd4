"""Reading a grid from a model's raw text, by two named rules.

`zeroeval` is the rule of the published leaderboard (ZeroEval), corner cases included, so that figures compare.
`flexible` reads whatever a person would accept as an answer. Model text is data: it is parsed, never evaluated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..signatures.answers import EMPTY_CELLS, Grid, fold, house_number
from .grid import column_key

GRID_RULES = ("flexible", "zeroeval")

#: Only so many of a text's last opening brackets are tried: the answer stands at the end, and a reply made of brackets
#: must not take for ever.
_MOST_OPENINGS = 400
_MOST_REPAIRS = 20
_DEEPEST = 12


def extract_grid(text: str, header: Sequence[str], houses: int, rule: str = "flexible") -> Grid | None:
    """Read a grid from raw text; None when there is none (a blank).

    Args:
        text: what the model wrote.
        header: the grid's column names, "House" first.
        houses: how many rows the grid has.
        rule: "flexible": the last JSON value in the text that holds a cell of the grid, repaired where it is broken or
            cut off; failing that, the last Markdown table. "zeroeval": the `solution` of the last balanced `{...}`.

    Returns:
        a grid with exactly the columns and houses asked for; cells that the text does not give are "".

    Raises:
        ValueError: for an unknown rule.
    """
    if rule == "zeroeval":
        return _zeroeval_grid(text, header, houses)
    if rule != "flexible":
        raise ValueError(f"unknown rule {rule!r}")
    return _from_json(text, header, houses) or _from_table(text, header, houses)


# -- zeroeval --------------------------------------------------------------------------------------------------------


def last_balanced_object(text: str) -> Any | None:
    """Return the last `{...}` whose braces balance, read as JSON with its newlines removed; None when that fails.

    Braces are counted without regard to strings, and no earlier object is tried.
    """
    depth = 0
    start = 0
    last = None
    for position, character in enumerate(text):
        if character == "{":
            if depth == 0:
                start = position
            depth += 1
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                last = (start, position + 1)
    if last is None:
        return None
    try:
        return json.loads(text[last[0] : last[1]].replace("\n", ""))
    except (ValueError, RecursionError):
        return None


def _zeroeval_grid(text: str, header: Sequence[str], houses: int) -> Grid | None:
    found = last_balanced_object(text)
    table = found.get("solution") if isinstance(found, dict) else None
    if table is None:
        return None
    rows = []
    for house in range(1, houses + 1):
        # Only the exact keys count: "House 1" and the column names as the prompt spells them.
        row = table.get(f"House {house}") if isinstance(table, dict) else None
        rows.append([str(house), *(_cell(row.get(name)) if isinstance(row, dict) else "" for name in header[1:])])
    return Grid(header=list(header), rows=rows)


# -- flexible: JSON --------------------------------------------------------------------------------------------------


def _from_json(text: str, header: Sequence[str], houses: int) -> Grid | None:
    openings = [match.start() for match in re.finditer(r"[{\[]", text)][-_MOST_OPENINGS:]
    found: Grid | None = None
    settled = 0  # where the last grid in valid JSON ends
    end = 0
    for start in openings:
        if start < end:
            continue
        value, stop = _strict(text, start)
        end = stop or end
        grid = read_grid(value, header, houses)
        if grid is not None:
            found, settled = grid, stop
    # Broken JSON counts where it comes after all that is valid: the last word is the answer.
    repaired = _from_broken(text, [start for start in openings if start >= settled], header, houses)
    return repaired or found


def _strict(text: str, start: int) -> tuple[Any, int]:
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, 0


def _from_broken(text: str, openings: Sequence[int], header: Sequence[str], houses: int) -> Grid | None:
    import json_repair

    found: Grid | None = None
    end = 0
    tries = 0
    for start in openings:
        if start < end or tries == _MOST_REPAIRS:
            continue
        tries += 1
        stop = _closing(text, start)
        try:
            value = json_repair.loads(text[start:stop], skip_json_loads=True)
        except (ValueError, RecursionError):
            continue
        grid = read_grid(value, header, houses)
        if grid is not None:
            found, end = grid, stop
    return found


def _closing(text: str, start: int) -> int:
    """Return where the bracket at `start` is closed, strings respected; the end of the text (or fence) if nowhere."""
    depth = 0
    quoted = False
    position = start
    while position < len(text):
        character = text[position]
        if quoted:
            if character == "\\":
                position += 1
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    fence = text.find("```", start)
    return fence if fence > 0 else len(text)


# -- shapes ----------------------------------------------------------------------------------------------------------


def read_grid(value: Any, header: Sequence[str], houses: int) -> Grid | None:
    """Read a grid from JSON data, whatever its shape; None when it gives no cell of the grid.

    Understands all that `Grid` does, rows without a header, columns as lists, and any of these inside other objects.

    Args:
        value: JSON data.
        header: the grid's column names, "House" first.
        houses: how many rows the grid has.
    """
    return _read(value, list(header), houses, _DEEPEST)


def _read(value: Any, header: list[str], houses: int, depth: int) -> Grid | None:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):  # JSON within JSON
        value, _ = _strict(value, len(value) - len(value.lstrip()))
    if not isinstance(value, dict | list) or not value or depth == 0:
        return None
    for shape in (_as_grid, _as_lists, _as_columns):
        grid = aligned(shape(value, header), header, houses)
        if grid is not None:
            return grid
    inner = list(value.values()) if isinstance(value, dict) else value
    # The answer is the last of several, except that a solution is preferred to what else an object holds.
    if isinstance(value, dict):
        inner += [
            item for key, item in value.items() if column_key(key) in ("solution", "finalanswer", "answer", "grid")
        ]
    for item in reversed(inner):
        grid = _read(item, header, houses, depth - 1)
        if grid is not None:
            return grid
    return None


def _as_grid(value: Any, header: list[str]) -> Grid | None:
    try:
        return Grid.model_validate(value)
    except (ValueError, RecursionError):
        return None


def _as_lists(value: Any, header: list[str]) -> Grid | None:
    """Rows as lists, in the header's order: a list of lists, or a list under each house."""
    if isinstance(value, dict):
        numbered = {number: row for key, row in value.items() if (number := house_number(key)) is not None}
        rows = [[number, *row] for number, row in sorted(numbered.items()) if isinstance(row, list)]
        rows = rows or value.get("rows") or []
    else:
        rows = value
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        return None
    names = header
    if any(column_key(cell) in {column_key(name) for name in header[1:]} for cell in rows[0]):
        names, rows = [_cell(cell) for cell in rows[0]], rows[1:]
    return _as_grid({"header": names, "rows": rows}, header)


def _as_columns(value: Any, header: list[str]) -> Grid | None:
    """One list, or one object of houses, under each attribute."""
    if not isinstance(value, dict):
        return None
    wanted = {column_key(name): name for name in header[1:]}
    houses: dict[int, dict[str, Any]] = {}
    for key, column in value.items():
        name = wanted.get(column_key(key))
        if name is None:
            continue
        if isinstance(column, list):
            column = dict(enumerate(column, start=1))
        if isinstance(column, dict):
            for house, cell in column.items():
                number = house_number(house)
                if number is not None:
                    houses.setdefault(number, {})[name] = cell
    return _as_grid(houses, header) if houses else None


def aligned(grid: Grid | None, header: Sequence[str], houses: int) -> Grid | None:
    """Return a grid with exactly the columns and houses asked for; None when it fills none of their cells."""
    if grid is None:
        return None
    columns = {column_key(name): index for index, name in enumerate(grid.header)}
    by_house = {number: row for row in grid.rows if row and (number := house_number(row[0])) is not None}
    rows = []
    filled = False
    for house in range(1, houses + 1):
        given = by_house.get(house, [])
        row = [str(house)]
        for name in header[1:]:
            index = columns.get(column_key(name))
            cell = given[index] if index is not None and index < len(given) else ""
            filled = filled or fold(cell) not in EMPTY_CELLS
            row.append(cell)
        rows.append(row)
    return Grid(header=list(header), rows=rows) if filled else None


def _cell(value: Any) -> str:
    if isinstance(value, list) and value:
        value = value[0]
    if value is None or isinstance(value, dict | list):
        return ""
    return str(value)


# -- flexible: Markdown ----------------------------------------------------------------------------------------------


def _from_table(text: str, header: Sequence[str], houses: int) -> Grid | None:
    found: Grid | None = None
    asked = {column_key(name) for name in header[1:]}
    for table in _tables(text):
        # Houses down, attributes across; or the other way round.
        for lines in (table, [list(column) for column in zip(*table, strict=False)]):
            names = lines[0] if column_key(lines[0][0]) in asked else ["House", *lines[0][1:]]
            grid = aligned(_as_grid({"header": names, "rows": lines[1:]}, list(header)), list(header), houses)
            if grid is not None:
                found = grid
                break
    return found


def _tables(text: str) -> Iterator[list[list[str]]]:
    """Yield the Markdown tables of a text: lists of lines, each a list of cells."""
    table: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if "|" in line:
            cells = [cell.strip().strip("*`_").strip() for cell in line.strip().strip("|").split("|")]
            if any(cell.strip("-: ") for cell in cells):  # not the rule below the header
                table.append(cells)
            continue
        if len(table) > 1:
            yield table
        table = []
