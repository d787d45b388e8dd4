"""`townhall compare`: runs of one task, example by example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from . import screen
from .options import output_options

if TYPE_CHECKING:
    from ..evaluation.comparison import Comparison, Pair


@click.command(
    name="compare",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall compare runs/gsm8k-chain-of-thought-1a2b3c4d runs/gsm8k-town-hall-5e6f7a8b\n"
    "  townhall compare runs/baseline runs/debate runs/majority-at-the-same-cost --json",
)
@click.argument("runs", nargs=-1, type=click.Path())
@output_options
def command(runs: tuple[str, ...], as_json: bool) -> None:
    """Compare RUNS with the first of them, example by example.

    Printed are the score and the cost of each, the paired difference with its 95 % interval and p-value, and how many
    examples it would take to see a difference of that size.
    """
    if len(runs) < 2:
        raise click.UsageError("name two runs or more, the one that the others are compared with first", None)
    from ..evaluation.comparison import compare

    found = compare(*runs)
    if as_json:
        screen.print_json(found.as_json())
    else:
        screen.show(*comparison_view(found))


def comparison_view(found: Comparison) -> Iterator[Any]:
    """Yield a comparison: each run's score and cost, then each paired difference."""
    from rich.text import Text

    from .text import clean

    line = Text(clean(found.task), style="bold")
    yield line.append(clean(f" · {found.primary}"), style="not bold")
    if found.simulated:
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    yield Text()
    letters = screen.letters(len(found.sides))
    equity = [">parity", ">least"] if found.by is not None else []
    made = screen.table("", "run", ">score", *equity, ">n", ">calls", ">tokens", ">seconds", ">cost")
    for letter, side in zip(letters, found.sides, strict=True):
        made.add_row(
            letter,
            clean(side.name),
            screen.fraction(side.score),
            *([screen.fraction(side.parity), screen.fraction(side.parity_min)] if equity else []),
            screen.count(side.n),
            f"{side.calls:.1f}",
            screen.count(side.tokens),
            f"{side.seconds:.1f}",
            screen.money(side.cost),
        )
    yield made
    yield Text("for one example; calls, tokens and cost as if nothing had been cached", style="dim")
    yield Text()
    names = {side.name: letter for letter, side in zip(letters, found.sides, strict=True)}
    made = screen.table("difference", ">points", ">95 % interval", ">p", ">n", ">examples to see it")
    for pair in found.pairs:
        made.add_row(f"{names[pair.second]} - {names[pair.first]}", *_cells(pair))
    yield made
    tests = ", ".join(dict.fromkeys(pair.result.test for pair in found.pairs))
    corrected = "; p corrected for the number of comparisons (Holm)" if len(found.pairs) > 1 else ""
    yield Text(clean(f"paired by example; test: {tests}{corrected}"), style="dim")
    for pair in found.pairs:
        if pair.parity:
            yield Text()
            yield _parity(pair, found.by or "group", names)
    for remark in found.remarks:
        yield Text(clean(f"note: {remark}"), style="yellow")


def _parity(pair: Pair, by: str, names: Mapping[str, str]) -> Any:
    """Return each group's parity in both runs, and its change."""
    from .text import clean

    first, second = names[pair.first], names[pair.second]
    made = screen.table(
        f"parity by {clean(by)}", ">n", f">{first}", f">{second}", f">{second} - {first}", ">95 % interval"
    )
    for change in pair.parity:
        effect = change.change
        made.add_row(
            clean(change.group),
            screen.count(effect.n),
            screen.fraction(change.before.estimate),
            screen.fraction(change.after.estimate),
            f"{effect.estimate:+.3f}",
            f"{effect.low:+.3f} {screen.DASH} {effect.high:+.3f}",
        )
    return made


def _cells(pair: Pair) -> list[str]:
    found = pair.result
    effect = found.difference
    points = f"{100 * effect.low:+.1f} {screen.DASH} {100 * effect.high:+.1f}"
    needed = screen.count(found.needed) if found.needed is not None else "none would"
    return [f"{100 * effect.estimate:+.1f}", points, f"{pair.p_adjusted:.3g}", screen.count(found.n), needed]
