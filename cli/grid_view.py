"""How a grid of pairs looks on a terminal, and what of it goes into JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from .dynamics_view import MOST_GROUPS
from .run_view import cost_table
from .screen import count, fraction, interval, letters, table
from .text import clean

if TYPE_CHECKING:
    from ..evaluation.grid_folder import Grid
    from ..evaluation.grid_summary import Cell, Figure, GridSummary

#: Titles of the matrices.
MATRICES: dict[Figure, str] = {
    "accuracy": "{} in debate; the models alone on the diagonal",
    "gain": "gain over the better model alone, in points",
    "parity": "mean parity, by {by}",
    "parity_min": "least parity, by {by}",
    "oracle": "oracle: at least one of the two is right alone",
}


def grid_json(grid: Grid) -> dict[str, Any]:
    """Return a grid as JSON data: its summary, its figures as matrices, and where it is kept."""
    from ..evaluation.grid_summary import FIGURES

    summary = grid.summary
    return {
        **summary.model_dump(mode="json"),
        "matrices": {figure: summary.matrix(figure) for figure in FIGURES},
        "grid": str(grid.folder),
    }


def grid_view(grid: Grid) -> Iterator[RenderableType]:
    """Yield a grid: the models alone, the matrices, the pairs, the groups, all models together, and what it cost."""
    found = grid.summary
    names = letters(len(found.models))
    yield from _heading(found)
    yield _singles(found, names)
    for figure, title in MATRICES.items():
        yield from _matrix(found, names, figure, title.format(found.primary, by=found.by))
    if found.pairs:
        yield Text()
        yield _pairs(found, names)
        yield Text(
            "gain: over the better of the two alone, in points, with a paired interval; judged: debates that the judge "
            "was called for; right: those of them that it decided rightly",
            style="dim",
        )
    yield from _groups(found, names)
    yield from _together(found)
    yield Text()
    yield cost_table([("grid", found.usage, found.n, found.seconds)])
    yield Text(f"{count(found.planned_calls)} calls by the formula (`planned_calls`)", style="dim")
    yield Text(clean(f"grid: {grid.folder}"), style="dim")


def _heading(found: GridSummary) -> Iterator[RenderableType]:
    line = Text(clean(f"{found.task} · {found.strategy}"), style="bold")
    yield line.append(clean(f" · {len(found.models)} models, {found.n} examples"), style="not bold")
    if found.simulated:
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    if found.status != "complete":
        yield Text(clean(f"{found.status}: {found.reason or 'no reason given'}"), style="bold yellow")
    yield Text()


def _singles(found: GridSummary, names: Sequence[str]) -> RenderableType:
    parity = [">parity", ">least"] if found.by is not None else []
    made = table("", "alone", f">{clean(found.primary)}", ">95 % interval", *parity, ">blank", ">failed")
    for letter, name in zip(names, found.models, strict=True):
        cell = found.single(name)
        if cell is None:
            continue
        equity = [fraction(cell.parity), fraction(cell.parity_min)] if parity else []
        shown = interval(cell.interval.low, cell.interval.high) if cell.interval else ""
        made.add_row(
            letter, clean(name), fraction(cell.accuracy), shown, *equity, count(cell.blank), count(cell.failed)
        )
    return made


def _matrix(found: GridSummary, names: Sequence[str], figure: Figure, title: str) -> Iterator[RenderableType]:
    values = found.matrix(figure)
    if all(value is None for row in values for value in row):
        return
    yield Text()
    yield Text(clean(title), style="bold")
    made = table("", *(f">{letter}" for letter in names))
    for row, (letter, figures) in enumerate(zip(names, values, strict=True)):
        cells = [
            Text(_points(value) if figure == "gain" else "" if value is None else fraction(value), style)
            for column, value in enumerate(figures)
            for style in ["bold" if row == column else ""]
        ]
        made.add_row(letter, *cells)
    yield made


def _points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f}"


def _pairs(found: GridSummary, names: Sequence[str]) -> RenderableType:
    made = table(
        "pair", f">{clean(found.primary)}", ">gain", ">95 % interval", ">judged", ">right", ">blank", ">failed"
    )
    for cell in found.pairs:
        gain = cell.gain_interval
        made.add_row(
            _label(found, names, cell),
            fraction(cell.accuracy),
            _points(cell.gain),
            f"{_points(gain.low)} to {_points(gain.high)}" if gain else "",
            count(cell.judged),
            count(cell.judged_right),
            count(cell.blank),
            count(cell.failed),
        )
    return made


def _label(found: GridSummary, names: Sequence[str], cell: Cell) -> str:
    return " + ".join(names[found.models.index(name)] for name in cell.models)


def _groups(found: GridSummary, names: Sequence[str]) -> Iterator[RenderableType]:
    """Yield the accuracy of each run in each group: no mean hides a group."""
    cells = [*found.singles, *found.pairs]
    sizes = {name: group.n for cell in cells for name, group in cell.groups.items()}
    if not sizes:
        return
    yield Text()
    yield Text(clean(f"accuracy by {found.by}"), style="bold")
    if len(sizes) > MOST_GROUPS:
        yield Text(f"{len(sizes)} groups are too many for a table here; --json has them", style="dim")
        return
    made = table("", *(f">{number}" for number in range(1, len(sizes) + 1)))
    for cell in cells:
        shown = [cell.groups.get(name) for name in sizes]
        made.add_row(
            _label(found, names, cell), *(fraction(group.scores.get("accuracy")) if group else "" for group in shown)
        )
    yield made
    for number, (name, size) in enumerate(sizes.items(), start=1):
        yield Text(clean(f"{number} {name} ({count(size)})"), style="dim")


def _together(found: GridSummary) -> Iterator[RenderableType]:
    lines = []
    if (every := found.ensemble) is not None:
        lines.append(f"all models: the best alone is {every.best} with {fraction(every.accuracy)}")
        lines.append(
            f"oracle: some model is right on {fraction(every.oracle)} (exactly one on {fraction(every.exactly_one)}, "
            f"all on {fraction(every.all_right)})"
        )
        lines.append(
            f"none is right on {fraction(every.none_right)}; all give the same wrong answer on "
            f"{fraction(every.unanimous_wrong)}"
        )
    gains = [cell.gain for cell in found.pairs if cell.gain is not None]
    if gains:
        better = sum(gain > 0 for gain in gains)
        lines.append(
            f"{better} of {len(gains)} pairs are better than their better model alone; the mean gain is "
            f"{_points(sum(gains) / len(gains))} points"
        )
    if found.judged:
        lines.append(
            f"the judge was called {count(found.judged)} times, could be right {count(found.judge_could)} times, and "
            f"was {count(found.judged_right)} times"
        )
    if lines:
        yield Text()
    yield from (Text(clean(line)) for line in lines)
