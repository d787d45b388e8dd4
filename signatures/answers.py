"""The answer types of tasks, and what every strategy needs to know of an answer: its voting bucket and how it is shown.

A strategy works for any answer type: a number, a choice letter, a label, a text or a Pydantic model such as `Grid`.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .numbers import parse_number

_HOUSE_KEY = re.compile(r"^\s*(?:house|no\.?|#)?\s*_?-?\s*(\d+)\s*$", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
#: Texts that a model writes for "nothing here"; such a cell is blank.
EMPTY_CELLS = frozenset({"", "?", "??", "???", "___", "-", "n/a", "none", "null", "unknown"})


def fold(text: object) -> str:
    """Return `text` with case and white space folded, as cells and labels are compared."""
    return _SPACES.sub(" ", str(text)).strip().casefold()


def house_number(key: object) -> int | None:
    """Return the house number in a key such as `House 1`, `house1`, `1` or 1; None when there is none."""
    match = _HOUSE_KEY.match(str(key))
    return int(match.group(1)) if match else None


class Grid(BaseModel):
    """A filled logic grid: one row a house.

    Attributes:
        header: column names, the first is "House".
        rows: one list of cells a house, in the order of `header`; a missing or null cell is "".

    Accepts the other shapes in which models write grids: a mapping from house keys (`House 1`, `house1`, `1`) to
    attribute mappings, the benchmark's `{"header": [...], "rows": [...]}`, a list of attribute mappings, and any of
    these under a `solution`, `grid` or `answer` key.
    """

    # Schemas are part of prompts: what a model needs to know of a grid, not all that this docstring says.
    model_config = ConfigDict(
        frozen=True, extra="ignore", json_schema_extra={"description": "A filled logic grid: one row a house."}
    )

    header: list[str] = Field(description='column names, starting with "House"')
    rows: list[list[str]] = Field(description="one list a house: its number, then its cell under each column name")

    @model_validator(mode="before")
    @classmethod
    def _accept_other_shapes(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise ValueError("a grid is a JSON object, not prose") from None
        return _grid_fields(value)

    def cell(self, house: int, attribute: str) -> str:
        """Return the cell of a house (1-based) under an attribute name; "" when it is missing or blank."""
        wanted = fold(attribute)
        for row in self.rows:
            if row and house_number(row[0]) == house:
                for name, cell in zip(self.header[1:], row[1:], strict=False):
                    if fold(name) == wanted:
                        return "" if fold(cell) in EMPTY_CELLS else cell
        return ""

    def canonical(self) -> str:
        """Return the voting bucket: cells folded, houses and attributes sorted."""
        cells = []
        for position, row in enumerate(self.rows, start=1):
            house = house_number(row[0]) if row else None
            for name, cell in zip(self.header[1:], row[1:], strict=False):
                cells.append((house or position, fold(name), "" if fold(cell) in EMPTY_CELLS else fold(cell)))
        return json.dumps(sorted(cells), ensure_ascii=False)

    def __str__(self) -> str:
        lines = [" | ".join(self.header), *(" | ".join(row) for row in self.rows)]
        return "\n".join(lines)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, bool | int | float | str):
        return str(cell)
    if isinstance(cell, list) and len(cell) == 1:
        return _text(cell[0])
    return json.dumps(cell, ensure_ascii=False)


def _grid_fields(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        if isinstance(value.get("rows"), list) and isinstance(value.get("header"), list):
            return _with_house_column([_text(name) for name in value["header"]], value["rows"])
        houses = {number: row for key, row in value.items() if (number := house_number(key)) is not None}
        if houses and all(isinstance(row, dict | list) or row is None for row in houses.values()):
            return _from_houses(houses)
        for key in ("solution", "grid", "answer", "rows", "houses"):
            if isinstance(value.get(key), dict | list):
                return _grid_fields(value[key])
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        named = {}
        for position, row in enumerate(value, start=1):
            number = next((house_number(row[key]) for key in row if fold(key) in ("house", "house number")), None)
            named[number or position] = {k: v for k, v in row.items() if fold(k) not in ("house", "house number")}
        return _from_houses(named)
    raise ValueError('a grid is an object {"header": [...], "rows": [[...], ...]} or one object a house')


def _from_houses(houses: dict[int, Any]) -> dict[str, Any]:
    names: list[str] = []
    for row in houses.values():
        if isinstance(row, dict):
            for name in row:
                if fold(name) not in {"house", *(fold(known) for known in names)}:
                    names.append(str(name))
    rows = []
    for number, row in sorted(houses.items()):
        if isinstance(row, list):
            row = dict(zip(names, row, strict=False))
        cells = {fold(name): _text(cell) for name, cell in (row or {}).items()}
        rows.append([str(number), *(cells.get(fold(name), "") for name in names)])
    return {"header": ["House", *names], "rows": rows}


def _with_house_column(header: list[str], rows: list[Any]) -> dict[str, Any]:
    has_house = bool(header) and fold(header[0]) in ("house", "house number", "houses", "#")
    names = header[1:] if has_house else header
    out = []
    for position, row in enumerate(rows, start=1):
        if isinstance(row, dict):
            cells = {fold(name): _text(cell) for name, cell in row.items()}
            number = house_number(cells.get("house", position)) or position
            out.append([str(number), *(cells.get(fold(name), "") for name in names)])
            continue
        texts = [_text(cell) for cell in row] if isinstance(row, list) else []
        if has_house and len(texts) >= len(header):
            out.append([str(house_number(texts[0]) or position), *texts[1 : len(header)]])
        else:
            if has_house and texts and house_number(texts[0]) == position:
                texts = texts[1:]
            out.append([str(position), *texts[: len(names)], *[""] * (len(names) - len(texts))])
    return {"header": ["House", *names], "rows": out}


def canonical(answer: Any) -> str:
    """Return the voting bucket of an answer: equal texts mean the same candidate.

    Numbers are compared by value (0.5, 1/2 and \\frac12 are one bucket), texts and labels without regard to case,
    white space and final punctuation, models by their own `canonical()` or their JSON.
    """
    if answer is None:
        return ""
    own = getattr(answer, "canonical", None)
    if callable(own):
        return str(own())
    if isinstance(answer, bool):
        return str(answer).casefold()
    if isinstance(answer, int | float | Fraction):
        return _number_key(answer)
    if isinstance(answer, str):
        number = parse_number(answer)
        return _number_key(number) if number is not None else fold(answer).rstrip(".!,;: ")
    return json.dumps(plain(answer), sort_keys=True, ensure_ascii=False)


def _number_key(number: float | Fraction) -> str:
    try:
        return str(Fraction(str(number)) if isinstance(number, float) else Fraction(number))
    except ValueError:  # nan, inf
        return str(number)


def plain(answer: Any) -> Any:
    """Return an answer as JSON data, for records and prompts."""
    if isinstance(answer, BaseModel):
        return answer.model_dump(mode="json")
    if isinstance(answer, Fraction):
        return int(answer) if answer.denominator == 1 else float(answer)
    if isinstance(answer, list | tuple):
        return [plain(item) for item in answer]
    if isinstance(answer, dict):
        return {str(key): plain(item) for key, item in answer.items()}
    if isinstance(answer, float) and answer.is_integer() and abs(answer) < 1e15:
        return int(answer)
    return answer


def display(answer: Any) -> str:
    """Return an answer as the text that other agents and people read."""
    if answer is None:
        return "(no answer)"
    if isinstance(answer, BaseModel):
        own = type(answer).__str__ is not BaseModel.__str__
        return str(answer) if own else json.dumps(plain(answer), ensure_ascii=False)
    value = plain(answer)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def brief(answer: Any, width: int = 60) -> str:
    """Return an answer in a few words, on one line; of a grid its rows."""
    value = plain(answer)
    if isinstance(value, dict) and isinstance(value.get("rows"), list):
        value = "; ".join(" ".join(map(str, row)) if isinstance(row, list) else str(row) for row in value["rows"])
    text = " ".join(display(value).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
