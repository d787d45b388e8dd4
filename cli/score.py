"""`townhall score`: raw model outputs in a file, scored; no model is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import screen
from .build import TaskChoice, ready_to_score
from .options import option, output_options, task_options
from .task_command import TaskCommand

if TYPE_CHECKING:
    from ..evaluation.scoring import OutputScores


@click.command(
    name="score",
    cls=TaskCommand,
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall score --task zebra-grid --data puzzles.jsonl --outputs outputs.jsonl --extract zeroeval\n"
    "  townhall score --task gsm8k --outputs outputs.jsonl --by model --records scored.jsonl --json",
)
@task_options
@option(
    "--outputs",
    metavar="FILE",
    type=click.Path(),
    required=True,
    help="JSONL or a JSON array: `output` is a text or a list of samples; `id` or `idx` finds the gold in --data, or "
    "the row has its own `gold`.",
)
@option(
    "--extract",
    metavar="RULE",
    help="How answers are read from the texts; `townhall list tasks --json` names each task's rules.",
    when_absent="the task's first, flexible",
)
@option("--by", metavar="FIELD", help="Also give the scores of each group: a field of the outputs or of the examples.")
@option("--records", metavar="FILE", type=click.Path(), help="Write a line a row: id, extracted, score, parts.")
@output_options
def command(
    chosen_task: TaskChoice,
    outputs: str,
    extract: str | None,
    by: str | None,
    records: str | None,
    as_json: bool,
) -> None:
    """Score model outputs that are there already; no model is called (but the judge of a task that has one).

    Scores are fractions of all rows: blanks count as wrong. "n/a" stands where no row is in a score's denominator.
    """
    from ..evaluation.scoring import score_outputs

    source = chosen_task.open()
    ready_to_score(source)
    found = score_outputs(source, outputs, rule=extract, by=by, records=records)
    if as_json:
        screen.print_json(found.as_json())
    else:
        screen.show(*_view(found, by or source.default_by))
    if found.unanswered:
        screen.notice(f"{found.unanswered} examples of --data have no output; they are not counted")


def _view(found: OutputScores, by: str | None) -> Iterator[Any]:
    from rich.text import Text

    from .run_view import groups_table, scores_table
    from .text import clean

    report = found.report
    line = Text(clean(found.task), style="bold")
    yield line.append(clean(f" · {report.n} outputs · extraction: {found.extract}"), style="not bold")
    yield Text()
    yield scores_table(report.scores, {}, next(iter(report.scores), ""))
    if report.groups:
        yield Text()
        yield groups_table(by or "group", report.groups, next(iter(report.scores), ""))
