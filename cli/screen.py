"""What the commands print: tables and text on standard output, notices on standard error, JSON for machines.

Nothing that is printed is read as markup, and whatever others wrote goes through `clean` first.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from .text import clean, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

#: Columns of a page that does not go to a terminal (a file, a pipe), unless `COLUMNS` says otherwise.
PAGE_WIDTH = 100
DASH = "–"


def stdout() -> Console:
    """Return a console on standard output."""
    return _console(stderr=False)


def stderr() -> Console:
    """Return a console on standard error."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else PAGE_WIDTH
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


def notice(text: str) -> None:
    """Print one line for people on standard error."""
    click.echo(f"townhall: {one_line(text)}", err=True)


def print_json(data: Any) -> None:
    """Print one JSON document on standard output; floats that are not numbers become null."""
    text = json.dumps(finite(data), ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # half a character in a model's reply, or a terminal without Unicode
        text = json.dumps(finite(data), indent=2)
    click.echo(text)


def finite(data: Any) -> Any:
    """Return JSON data with NaN and infinities, which JSON has not, as null; Pydantic models become objects."""
    dump = getattr(data, "model_dump", None)
    if callable(dump):
        data = dump(mode="json")
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, dict):
        return {str(key): finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(item) for item in data]
    return data


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table. A column whose name begins with ">" is a column of figures, aligned to the right."""
    from rich import box
    from rich.table import Table

    made = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, expand=False
    )
    made.show_edge = False
    for column in columns:
        figures = column.startswith(">")
        made.add_column(
            column.removeprefix(">"),
            justify="right" if figures else "left",
            no_wrap=figures,
            header_style="bold",
            overflow="fold",
        )
    return made


def rows(made: Table, items: Iterable[Sequence[object]]) -> Table:
    """Add rows to a table, cleaned; returns the table."""
    for item in items:
        made.add_row(*(clean(cell) for cell in item))
    return made


def show(*parts: RenderableType, on: Console | None = None) -> None:
    """Print renderables on standard output (or a console that is there already), one below the other."""
    console = on or stdout()
    if console.is_terminal:
        for part in parts:
            console.print(part)
        return
    # A page in a file or a pipe has no use for the spaces that fill up a terminal's lines.
    with console.capture() as page:
        for part in parts:
            console.print(part)
    click.echo("\n".join(line.rstrip() for line in page.get().splitlines()))


def letters(number: int) -> list[str]:
    """Return short names for the columns of a table: A, B, ..., Z, A1, B1, ..."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [alphabet[place % 26] + (str(place // 26) if place >= 26 else "") for place in range(number)]


def fraction(value: float | None) -> str:
    """Return a score for people: three digits, "n/a" where nothing is in the denominator."""
    return "n/a" if value is None else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval for people."""
    return "n/a" if low is None or high is None else f"{low:.3f} {DASH} {high:.3f}"


def count(value: float | None) -> str:
    """Return a number for people: 12,345."""
    return "n/a" if value is None else f"{value:,.0f}"


def money(value: float | None) -> str:
    """Return dollars for people; "unknown" when a price is not known."""
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 0.1 or value == 0 else f"${value:.2g}"


def seconds(value: float | None) -> str:
    """Return a duration for people: "8.1 s", "2 min 05 s", "3 h 07 min"."""
    if value is None:
        return "n/a"
    if value < 100:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def size(value: int) -> str:
    """Return a number of bytes for people."""
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if value >= bytes_:
            return f"{value / bytes_:.3g} {unit}"
    return f"{value} B"
