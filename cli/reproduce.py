"""`townhall reproduce`: a published experiment, run with a model of one's own, its figures beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import ModelChoice, ready_to_score
from .options import (
    budget_options,
    combined,
    concurrency_option,
    data_option,
    model_options,
    option,
    output_options,
    temperature_option,
)
from .params import KeyValue, Number

if TYPE_CHECKING:
    from ..evaluation.budget import Budget
    from ..evaluation.reproduction import Reproduction, Row


@click.command(
    name="reproduce",
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall reproduce\n"
    "  townhall reproduce society/gsm8k\n"
    "  townhall reproduce society/gsm8k --run --lm openai/gpt-4o-mini --limit 50\n"
    "  townhall reproduce alignment/normad --run --lm A --lm B --judge-lm C --arm single --arm debate-only",
)
@click.argument("experiment", required=False)
@option("--run", "run_it", is_flag=True, help="Run its arms, or go on with them; without it, show what is there.")
@option("--arm", "arms", metavar="NAME", multiple=True, help="Run only this one; repeat it for more.")
@option("--limit", type=Number(int, 1), help="At most so many examples.", when_absent="the experiment's own number")
@data_option
@option("-T", "--task-option", "task_option", type=KeyValue(), multiple=True, help="An option of the task.")
@combined(temperature_option, model_options, concurrency_option, budget_options)
@option("--out", metavar="FOLDER", type=click.Path(), help="Of its runs.", when_absent="runs/reproduce/EXPERIMENT")
@output_options
def command(
    experiment: str | None,
    run_it: bool,
    arms: tuple[str, ...],
    limit: int | None,
    data: str | None,
    task_option: tuple[tuple[str, str], ...],
    temperature: float | None,
    named_models: ModelChoice,
    concurrency: int | None,
    budget: Budget,
    out: str | None,
    as_json: bool,
) -> int:
    """List the published experiments, or show EXPERIMENT's figures, with yours beside them once it was run.

    Published figures are of other models, and prompts here are written afresh: what can be expected to come out again
    is which program is better, not the number.
    """
    from ..evaluation.reproduction import papers, read_reproduction, reproduce

    if experiment is None:
        if run_it:
            raise InputError("which experiment? `townhall reproduce` lists them")
        screen.print_json(papers()) if as_json else screen.show(*_list())
        return 0
    if not run_it:
        if named_models.lms or arms or limit:
            raise InputError("--lm, --arm and --limit go with --run")
        found = read_reproduction(experiment, out)
    else:
        models = named_models.open()
        interrupt.set_hint("what is finished is kept; the same command goes on where it stopped")
        found = reproduce(
            experiment,
            arms=arms,
            data=data,
            task_options=dict(task_option),
            settings={"temperature": temperature} if temperature is not None else None,
            limit=limit,
            lms=models.panel,
            judge_lm=models.judge,
            lm=models.first,
            adapter=models.adapter,
            concurrency=concurrency,
            budget=budget,
            out=out,
            progress=True,
            ready=lambda task: ready_to_score(task, models),
        )
    if as_json:
        screen.print_json(_json(found))
    else:
        screen.show(*_view(found))
    if found.stopped is not None:
        screen.notice(f"stopped: {found.stopped}; what is finished is kept, and a larger budget goes on from it")
        return BudgetExceededError.exit_code
    return 0


def _list() -> Iterator[Any]:
    from rich.text import Text

    from ..evaluation.reproduction import papers

    made = screen.table("experiment", "task", "what is compared", ">programs", ">figures")
    for name, paper in papers().items():
        for one, found in paper.experiments.items():
            figures = sum(len(figure.scores) for figure in found.figures)
            made.add_row(f"{name}/{one}", found.task, found.title, str(len(found.arms)), str(figures))
    yield made
    yield Text()
    for name, paper in papers().items():
        yield Text(f"{name}: {paper.title}, arXiv {paper.arxiv}", style="dim")


def _json(found: Reproduction) -> dict[str, Any]:
    return {
        "experiment": found.name,
        "paper": {"title": found.paper.title, "arxiv": found.paper.arxiv, "where": found.experiment.where},
        "task": found.experiment.task,
        "arms": found.experiment.arms,
        "rows": [asdict(row) for row in found.rows],
        "runs": {arm: str(run.folder) for arm, run in found.runs.items()},
        "usage": found.usage,
        "stopped": found.stopped,
        "simulated": found.simulated,
    }


def _view(found: Reproduction) -> Iterator[Any]:
    from rich.text import Text

    from .run_view import cost_table
    from .text import clean

    what = found.experiment
    line = Text(clean(found.name), style="bold")
    yield line.append(f" · {what.title}", style="not bold")
    yield Text(f"{found.paper.title}, arXiv {found.paper.arxiv}, {what.where}", style="dim")
    ours = ", ".join(dict.fromkeys(name for run in found.runs.values() for name in run.info.model_names))
    if ours:
        yield Text(clean(f"ours: {ours}"), style="dim")
    if found.simulated:
        yield Text("SIMULATED: our figures say nothing about a real model", style="bold yellow")
    yield Text()
    titles = ["program", "score", "published with", ">published"]
    made = screen.table(*titles, *((">ours", ">95 % interval", ">n") if found.runs else ()))
    for row in found.rows:
        cells = [row.arm, row.score if row.over is None else f"{row.score} gained over {row.over}", row.model]
        cells.append(_published(row))
        if found.runs:
            cells += [_number(row, row.ours), _interval(row), str(row.n) if row.n else ""]
        made.add_row(*(clean(cell) for cell in cells))
    yield made
    if found.runs:
        yield Text()
        yield cost_table(
            [(arm, run.summary.usage, run.summary.n, run.summary.seconds) for arm, run in found.runs.items()]
        )
    for note in what.notes:
        yield Text(note, style="dim")
    if any(row.approximate for row in found.rows):
        yield Text("~ read off a plot", style="dim")
    if not found.runs:
        yield Text(f"to run it: townhall reproduce {found.name} --run --lm NAME", style="dim")


def _published(row: Row) -> str:
    if row.published is None:
        return ""
    text = _number(row, row.published)
    spread = f" ± {row.spread:.3f}" if row.spread is not None else ""
    return f"{'~' if row.approximate else ''}{text}{spread}"


def _number(row: Row, value: float | None) -> str:
    if value is None:
        return ""
    return screen.fraction(value) if row.over is None else f"{value:+.3f}"


def _interval(row: Row) -> str:
    return screen.interval(row.low, row.high) if row.low is not None else ""
