"""`townhall grid`: every pair of several models in debate, and each model alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import Models, adapter_of, budget_of, program_of, ready_to_score, task_of, with_examples
from .options import (
    artifact_option,
    budget_options,
    combined,
    common_settings,
    concurrency_option,
    option,
    output_options,
    single_model_options,
    split_of,
    split_options,
    task_options,
)
from .strategy_command import StrategyCommand

if TYPE_CHECKING:
    import dspy

    from ..evaluation.grid_summary import Figure, GridSummary


@click.command(
    name="grid",
    cls=StrategyCommand,
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall grid --task normad --data normad.jsonl --lms models.yaml --strategy debate-only --limit 100\n"
    "  townhall grid --task gsm8k --data test.jsonl --lm openai/gpt-4o-mini --lm local --judge-lm openai/gpt-4o\n"
    "  townhall show runs/normad-grid-debate-only-1a2b3c4d",
)
@task_options
@option(
    "--strategy",
    metavar="NAME",
    default="debate-only",
    show_default=True,
    help="Of the pairs: debate-only or reflect-or-debate. `--strategy NAME --help` lists its settings.",
)
@combined(artifact_option, common_settings)
@option(
    "--lms", "lms_file", metavar="FILE", type=click.Path(), help="A YAML file of named models: all of them take part."
)
@option("--lm", "lms", metavar="NAME", multiple=True, help="A model that takes part; of --lms, only those named.")
@option("--judge-lm", metavar="NAME", help="The judge's model.", when_absent="each pair's first model")
@combined(single_model_options, split_options, concurrency_option, budget_options)
@option("--by", metavar="FIELD", help="Scores and parity of each group.", when_absent="the task's own groups, if any")
@option(
    "--out",
    metavar="FOLDER",
    type=click.Path(),
    help="The grid's folder.",
    when_absent="runs/TASK-grid-STRATEGY-HASH, so that the same command goes on where it stopped",
)
@output_options
def command(
    task: str | None,
    data: str | None,
    task_option: tuple[tuple[str, str], ...],
    strategy: str,
    artifact: str | None,
    settings: dict[str, Any],
    lms_file: str | None,
    lms: tuple[str, ...],
    judge_lm: str | None,
    api_base: str | None,
    reply_tokens: int | None,
    adapter: str | None,
    split: str | None,
    limit: int | None,
    order: Any,
    shuffle_seed: int,
    concurrency: int | None,
    max_calls: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    by: str | None,
    out: str | None,
    as_json: bool,
) -> int:
    """Run each model alone and every pair of models in debate, as one study that can be resumed.

    A model's first decisions are asked for once and shared by all its pairs. Printed are the matrix of accuracies with
    the models alone on the diagonal, the pairs' gains over the better model alone, parity between groups, and the
    oracle (some model right).
    """
    from ..evaluation.grid import run_grid

    source = with_examples(task_of(task, data, task_option))
    made = _models(lms_file, lms, judge_lm, api_base, reply_tokens)
    judge = made[judge_lm] if judge_lm is not None else None
    taking_part = {name: model for name, model in made.items() if name in _names(lms_file, lms)}
    models = Models(lms=tuple(taking_part.values()), judge=judge, adapter=adapter_of(adapter))
    ready_to_score(source, models)
    tuned = program_of(source, strategy, {}, models, artifact=artifact) if artifact is not None else strategy
    chosen: Any = split_of(split, order)
    interrupt.set_hint("what is finished is kept; the same command goes on where it stopped")
    found = run_grid(
        source,
        taking_part,
        tuned,
        judge_lm=judge,
        settings=settings,
        split=chosen,
        limit=limit,
        order=order,
        seed=shuffle_seed,
        out=out,
        adapter=models.adapter,
        concurrency=concurrency,
        budget=budget_of(max_calls, max_tokens, max_cost),
        by=by,
        progress=True,
    )
    if as_json:
        screen.print_json({**found.summary.model_dump(mode="json"), "grid": str(found.folder)})
    else:
        screen.show(*grid_view(found.summary, str(found.folder)))
    if found.summary.status == "stopped":
        screen.notice(
            f"stopped: {found.summary.reason}; the partial result is kept, and a larger budget goes on from it"
        )
        return BudgetExceededError.exit_code
    return 0 if found.summary.status == "complete" else 1


def _names(lms_file: str | None, lms: Sequence[str]) -> list[str]:
    from ..models.resolve import named_models

    if lms:
        return list(dict.fromkeys(lms))
    if lms_file is None:
        raise InputError("which models? Name a file with --lms, or two models or more with --lm")
    return list(named_models(lms_file))


def _models(
    lms_file: str | None, lms: Sequence[str], judge_lm: str | None, api_base: str | None, reply_tokens: int | None
) -> dict[str, dspy.LM]:
    from ..models.resolve import lm

    names = [*_names(lms_file, lms), *([judge_lm] if judge_lm is not None else [])]
    return {
        name: lm(name, api_base=api_base, models_file=lms_file, max_tokens=reply_tokens)
        for name in dict.fromkeys(names)
    }


def grid_view(found: GridSummary, folder: str) -> Iterator[Any]:
    """Yield a grid: its models, the matrices, the oracle, the judge's part, and what it cost."""
    from rich.text import Text

    from .run_view import cost_table
    from .text import clean

    line = Text(clean(f"{found.task} · {found.strategy}"), style="bold")
    yield line.append(clean(f" · {len(found.models)} models, {found.n} examples · {found.primary}"), style="not bold")
    if found.simulated:
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    if found.status != "complete":
        yield Text(clean(f"{found.status}: {found.reason or 'no reason given'}"), style="bold yellow")
    yield Text()
    letters = screen.letters(len(found.models))
    yield _singles(found, letters)
    yield from _matrix(found, letters, "accuracy", "accuracy in debate; the models alone on the diagonal")
    yield from _matrix(found, letters, "gain", "gain over the better model alone, in points")
    if found.by is not None:
        yield from _matrix(found, letters, "parity", f"mean parity between groups ({found.by})")
    yield from _matrix(found, letters, "oracle", "oracle: one of the two is right alone")
    yield Text()
    if (every := found.ensemble) is not None:
        yield Text(
            clean(
                f"all models: the best alone, {every.best}, is right on {screen.fraction(every.accuracy)}; "
                f"some model is on {screen.fraction(every.oracle)}"
            )
        )
        yield Text(
            f"none is right on {screen.fraction(every.none_right)}; all give the same wrong answer on "
            f"{screen.fraction(every.unanimous_wrong)}"
        )
    if found.judged:
        yield Text(
            f"the judge was called {found.judged} times, could be right {found.judge_could} times, "
            f"and was {found.judged_right} times"
        )
    yield cost_table([("grid", found.usage, found.n, found.seconds)])
    yield Text(f"calls by the formula: {screen.count(found.planned_calls)}", style="dim")
    yield Text(clean(f"grid: {folder}"), style="dim")


def _singles(found: GridSummary, letters: Sequence[str]) -> Any:
    from .text import clean

    parity = found.by is not None
    columns = ["", "model alone", f">{found.primary}", ">95 % interval", *([">parity"] if parity else []), ">blank"]
    made = screen.table(*columns)
    for letter, name in zip(letters, found.models, strict=True):
        cell = found.single(name)
        row = [letter, clean(name), screen.fraction(cell.accuracy if cell else None)]
        interval = cell.interval if cell else None
        row.append(screen.interval(interval.low, interval.high) if interval is not None else "")
        if parity:
            row.append(screen.fraction(cell.parity if cell else None))
        made.add_row(*row, str(cell.blank) if cell else "")
    return made


def _matrix(found: GridSummary, letters: Sequence[str], figure: Figure, title: str) -> Iterator[Any]:
    from rich.text import Text

    values = found.matrix(figure)
    if all(value is None for row in values for value in row):
        return
    yield Text()
    yield Text(title, style="bold")
    made = screen.table("", *(f">{letter}" for letter in letters))
    for row, (letter, figures) in enumerate(zip(letters, values, strict=True)):
        cells = []
        for column, value in enumerate(figures):
            points = figure == "gain" and value is not None
            text = f"{100 * (value or 0):+.1f}" if points else "" if value is None else f"{value:.3f}"
            cells.append(Text(text, style="dim" if row == column else ""))
        made.add_row(letter, *cells)
    yield made
