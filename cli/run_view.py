"""How a run looks on a terminal, and what of it goes into JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from ..signatures.answers import brief
from .screen import count, fraction, interval, money, rows, seconds, table
from .text import clean, one_line

if TYPE_CHECKING:
    from ..evaluation.records import Interval, Record
    from ..evaluation.run_folder import Run
    from ..signatures.transcript import Usage

#: The keys of `usage` that `evaluate --json` promises.
USAGE_KEYS = ("calls", "cached", "prompt_tokens", "completion_tokens", "cost", "seconds")


def run_json(run: Run) -> dict[str, Any]:
    """Return a run as JSON data: what `score --json` has, and what it cost."""
    info, summary = run.info, run.summary
    return {
        "task": info.task,
        "strategy": info.strategy,
        "n": summary.n,
        "total": summary.total,
        "extract": info.extract,
        "primary": summary.primary,
        "scores": summary.scores,
        "intervals": summary.intervals,
        "by": summary.by,
        "groups": summary.groups,
        "usage": {key: getattr(summary.usage, key) for key in USAGE_KEYS},
        "usage_by_role": summary.usage_by_role,
        "failed": summary.failed,
        "blank": summary.blank,
        "status": summary.status,
        "reason": summary.reason,
        "seconds": summary.seconds,
        "split": info.split,
        "settings": info.settings,
        "models": info.models,
        "judge_model": info.judge_model,
        "dynamics": summary.dynamics,
        "simulated": summary.simulated,
        "run": str(run.folder),
    }


def run_view(run: Run) -> Iterator[RenderableType]:
    """Yield a run: what it is, its scores with intervals, its groups, what it cost."""
    info, summary = run.info, run.summary
    yield from heading(run)
    yield scores_table(summary.scores, summary.intervals, summary.primary)
    if summary.groups:
        yield Text()
        yield groups_table(summary.by or "group", summary.groups, summary.primary)
    yield Text()
    yield cost_table([(info.strategy, summary.usage, summary.n, summary.seconds)])
    if summary.failed:
        first = next((record.error for record in run.records if record.error), "")
        yield Text(
            clean(f"{summary.failed} of {summary.n} failed and count as wrong; the first: {one_line(first)}"), "red"
        )
    yield Text(clean(f"run: {run.folder}"), style="dim")


def heading(run: Run) -> Iterator[RenderableType]:
    """Yield what a run is, in one to three lines."""
    info, summary = run.info, run.summary
    of = "" if summary.n == summary.total else f" of {summary.total}"
    line = Text(clean(f"{info.task} · {info.strategy}"), style="bold")
    line.append(clean(f" · {info.split}, {summary.n}{of} examples · {', '.join(info.model_names)}"), style="not bold")
    yield line
    if settings := info.changed_settings:
        yield Text(clean(" ".join(f"{name}={value}" for name, value in settings.items())), style="dim")
    if summary.simulated:
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    if summary.status != "complete":
        yield Text(clean(f"{summary.status}: {summary.reason or 'no reason given'}"), style="bold yellow")
    yield Text()


def scores_table(scores: dict[str, float | None], intervals: dict[str, Interval], primary: str) -> RenderableType:
    """Return scores with their intervals, where they have one, the main score in bold."""
    made = table("score", ">value", *((">95 % interval", ">n") if intervals else ()))
    for name, value in scores.items():
        found = intervals.get(name)
        style = "bold" if name == primary else ""
        cells: list[Any] = [Text(clean(name), style=style), Text(fraction(value), style=style)]
        if intervals:
            cells += [interval(found.low, found.high), count(found.n)] if found else ["", ""]
        made.add_row(*cells)
    return made


def groups_table(by: str, groups: dict[str, Any], primary: str) -> RenderableType:
    """Return the scores of each group, its interval (where it has one) beside the main one.

    A group of few examples is marked "tiny", one with nothing right "zero".
    """
    names = list(dict.fromkeys(name for group in groups.values() for name in group.scores))
    names.sort(key=lambda name: name != primary)
    with_intervals = any(group.intervals for group in groups.values())
    titles = [f">{clean(name)}" for name in names]
    if with_intervals:
        titles.insert(1, ">95 % interval")
    made = table(by, ">n", *titles)
    for value, group in groups.items():
        found = group.intervals.get(primary)
        cells = [fraction(group.scores.get(name)) for name in names]
        if with_intervals:
            cells.insert(1, interval(found.low, found.high) if found else "")
        flags = f" ({', '.join(group.flags)})" if group.flags else ""
        made.add_row(clean(f"{value}{flags}"), count(group.n), *cells)
    return made


def cost_table(items: Sequence[tuple[str, Usage, int, float]]) -> RenderableType:
    """Return what runs cost: (name, usage, examples, wall-clock seconds) each; one alone needs no name.

    Without it the table of a long run (thousands of calls, minutes) fits into 80 columns.
    """
    named = len(items) > 1
    made = table(
        *([""] if named else []), ">calls", ">cached", ">a question", ">tokens sent", ">received", ">time", ">cost"
    )
    for name, usage, n, wall in items:
        each = f"{(usage.calls + usage.cached) / n:.1f}" if n else "n/a"
        made.add_row(
            *([clean(name)] if named else []),
            count(usage.calls),
            count(usage.cached),
            each,
            count(usage.prompt_tokens),
            count(usage.completion_tokens),
            seconds(wall),
            money(usage.cost),
        )
    return made


def roles_table(usage: dict[str, Usage]) -> RenderableType:
    """Return what each role cost; its seconds are added up over calls."""
    made = table("role", ">calls", ">cached", ">tokens sent", ">received", ">waiting", ">cost")
    return rows(
        made,
        (
            (
                name,
                count(item.calls),
                count(item.cached),
                count(item.prompt_tokens),
                count(item.completion_tokens),
                seconds(item.seconds),
                money(item.cost),
            )
            for name, item in usage.items()
        ),
    )


def examples_table(records: Sequence[Record]) -> RenderableType:
    """Return one line an example: what was answered, what would be right, the score."""
    made = table("id", ">score", "answer", "gold", ">calls")
    for record in records:
        answer = f"failed: {record.error}" if record.error else "(blank)" if record.blank else brief(record.answer)
        calls = record.usage.calls + record.usage.cached
        made.add_row(clean(record.id), fraction(record.score), clean(answer), clean(brief(record.gold)), count(calls))
    return made
