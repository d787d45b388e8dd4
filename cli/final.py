"""The one evaluation of a tuned program on examples that tuning never saw."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import interrupt, screen

if TYPE_CHECKING:
    from ..evaluation.budget import Budget
    from ..optimize.held_out import HeldOut, HeldOutReport
    from ..programs.base import Strategy
    from .build import Models


def judge(
    tuned: Strategy,
    splits: HeldOut,
    artifact: Path,
    *,
    plain: Strategy,
    artifact_given: bool,
    models: Models,
    concurrency: int | None,
    budget: Budget,
    as_json: bool,
    ledger: Path | None = None,
) -> HeldOutReport:
    """Evaluate a tuned program next to its baselines, write the result into its artifact, and print it.

    Args:
        tuned: the tuned program.
        splits: its examples.
        artifact: its folder.
        plain: what the tuning began with.
        artifact_given: whether that came from an artifact.
        models: see `build.Models`.
        concurrency: model calls in flight at most.
        budget: of all runs together.
        as_json: print nothing.
        ledger: where openings of the test split are written down.
    """
    from ..optimize.artifact import update_artifact
    from ..optimize.held_out import evaluate_held_out

    interrupt.set_hint("what is finished is kept; the same command goes on where it stopped")
    report = evaluate_held_out(
        tuned,
        splits,
        artifact,
        # A program that came as an artifact had been tuned: it stands beside the strategy as it comes.
        untuned=None if artifact_given else plain,
        before=plain if artifact_given else None,
        ledger=ledger,
        name=artifact.name,
        lm=models.first,
        adapter=models.adapter,
        concurrency=concurrency,
        budget=budget,
        progress=True,
    )
    update_artifact(artifact, held_out=report)
    if not as_json:
        screen.show(*held_out_view(report))
    return report


def held_out_view(report: HeldOutReport) -> Iterator[Any]:
    """Yield the tuned program's score, and those of what it must beat."""
    from rich.text import Text

    from .text import clean

    yield Text()
    line = Text(f"held out: {report.n} test examples that tuning never saw", style="bold")
    yield line.append(f" · {report.primary}", style="not bold")
    if report.simulated:
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    yield Text()
    made = screen.table("program", "strategy", ">score", ">95 % interval", ">calls", ">tokens", ">cost")
    for row in report.rows:
        usage, n = row.usage, max(1, row.n)
        made.add_row(
            clean(row.name if row.status == "complete" else f"{row.name} ({row.status})"),
            clean(row.strategy),
            screen.fraction(row.score),
            screen.interval(row.interval.low, row.interval.high) if row.interval is not None else "",
            f"{usage.calls / n:.1f}",
            screen.count(usage.tokens / n),
            screen.money(usage.cost),
        )
    yield made
    yield Text("calls and tokens are for one question, as if nothing had been cached", style="dim")
    if report.uses > 1:
        yield Text(f"test examples of these were used {report.uses} times by this study's tunings", style="yellow")
    if report.left_out:
        yield Text(f"{report.left_out} train or dev examples ask a test question and were left out", style="dim")
    for note in report.notes:
        yield Text(clean(note), style="dim")
