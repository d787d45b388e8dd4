"""`townhall grid`: every pair of several models in debate, and each model alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import ModelChoice, Models, ProgramChoice, SplitChoice, TaskChoice, adapter_of, ready_to_score
from .options import (
    artifact_option,
    budget_options,
    combined,
    common_settings,
    concurrency_option,
    gathered,
    option,
    output_options,
    single_model_options,
    split_options,
    task_options,
)
from .strategy_command import StrategyCommand

if TYPE_CHECKING:
    import dspy

    from ..evaluation.budget import Budget


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
@gathered(
    "chosen_program",
    ProgramChoice,
    option(
        "--strategy",
        metavar="NAME",
        default="debate-only",
        show_default=True,
        help="Of the pairs: debate-only or reflect-or-debate. `--strategy NAME --help` lists its settings.",
    ),
    artifact_option,
)
@common_settings
@gathered(
    "named_models",
    ModelChoice,
    option(
        "--lms",
        "models_file",
        metavar="FILE",
        type=click.Path(),
        help="A YAML file of named models; all of them but the judge take part, unless --lm names some.",
        when_absent="models.yaml, where there is one",
    ),
    option(
        "--lm", "lms", metavar="NAME", multiple=True, help="A model that takes part: a name in --lms, or any other."
    ),
    option("--judge-lm", metavar="NAME", help="The judge's model.", when_absent="each pair's first model"),
    single_model_options,
)
@combined(split_options, concurrency_option, budget_options)
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
    chosen_task: TaskChoice,
    chosen_program: ProgramChoice,
    named_models: ModelChoice,
    chosen_split: SplitChoice,
    concurrency: int | None,
    budget: Budget,
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
    from .grid_view import grid_json, grid_view

    source = chosen_task.with_examples()
    taking_part, judge = _models(named_models)
    models = Models(lms=tuple(taking_part.values()), judge=judge, adapter=adapter_of(named_models.adapter))
    ready_to_score(source, models)
    # The grid's pairs have models of their own, and the settings that were given.
    plain = replace(chosen_program, settings={})
    tuned = plain.open(source, models) if plain.artifact is not None else plain.strategy
    interrupt.set_hint("what is finished is kept; the same command goes on where it stopped")
    found = run_grid(
        source,
        taking_part,
        tuned,
        judge_lm=judge,
        settings=chosen_program.settings,
        **chosen_split.arguments,
        out=out,
        adapter=models.adapter,
        concurrency=concurrency,
        budget=budget,
        by=by,
        progress=True,
    )
    if as_json:
        screen.print_json(grid_json(found))
    else:
        screen.show(*grid_view(found))
    if found.summary.status == "stopped":
        screen.notice(
            f"stopped: {found.summary.reason}; the partial result is kept, and a larger budget goes on from it"
        )
        return BudgetExceededError.exit_code
    return 0 if found.summary.status == "complete" else 1


def _models(chosen: ModelChoice) -> tuple[dict[str, dspy.LM], dspy.LM | None]:
    """Return the models that take part, by name, and the judge's.

    A judge of the file's is no debater: it would judge its own debates. Whoever wants that names it with `--lm` too.

    Raises:
        InputError: when none are named, or one is not known.
    """
    from ..models.resolve import named_models

    judge = chosen.judge_lm
    names = list(dict.fromkeys(chosen.lms)) or [name for name in named_models(chosen.models_file) if name != judge]
    if not names:
        raise InputError("which models? Name a file of them with --lms, or two or more with --lm")
    made = chosen.named([*names, *([judge] if judge is not None else [])])
    return {name: made[name] for name in names}, made[judge] if judge is not None else None
