"""`townhall evaluate`: a strategy over a task's examples, scored, resumable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import ModelChoice, ProgramChoice, SplitChoice, TaskChoice, ready_to_score
from .options import (
    budget_options,
    combined,
    common_settings,
    concurrency_option,
    model_options,
    option,
    output_options,
    program_options,
    split_options,
    task_options,
)
from .settings import value_of
from .strategy_command import StrategyCommand

if TYPE_CHECKING:
    from ..evaluation.budget import Budget
    from ..evaluation.run_folder import Run


class EvaluateCommand(StrategyCommand):
    """The command's parser: costs are matched with the strategy `majority` unless another one is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `StrategyCommand.parse_args`."""
        if value_of(args, "--match-cost") is not None and value_of(args, "--strategy") is None:
            args = ["--strategy", "majority", *args]
        return super().parse_args(ctx, args)


@click.command(
    name="evaluate",
    cls=EvaluateCommand,
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall evaluate --task zebra-grid -T sizes=2x2,2x3 --personas 3 --rounds 2 --limit 4\n"
    "  townhall evaluate --task gsm8k --data test.jsonl --strategy majority --lm openai/gpt-4o-mini --limit 100\n"
    "  townhall evaluate --task normad --data normad.jsonl --strategy debate-only --lm A --lm B --by group\n"
    "  townhall evaluate --strategy society --help",
)
@combined(
    task_options,
    program_options,
    common_settings,
    model_options,
    split_options,
    concurrency_option,
    budget_options,
)
@option("--by", metavar="FIELD", help="Also give the scores of each group, such as size, subject, group.")
@option(
    "--match-cost",
    metavar="RUN",
    type=click.Path(),
    help="Run the strategy majority at this run's cost, on the same examples: as many calls (or tokens) each.",
)
@option(
    "--match-per",
    type=click.Choice(["calls", "tokens"]),
    default="calls",
    show_default=True,
    help="What --match-cost matches.",
)
@option(
    "--match-spread",
    type=click.Choice(["example", "mean"]),
    default="example",
    show_default=True,
    help="Whether each example gets what the run used for it, or every one the run's mean.",
)
@option(
    "--out",
    metavar="FOLDER",
    type=click.Path(),
    help="The run folder.",
    when_absent="runs/TASK-STRATEGY-HASH, so that the same command goes on where it stopped",
)
@option("--fresh", is_flag=True, help="Begin anew, asking the models again; an earlier run there is set aside.")
@output_options
def command(
    chosen_task: TaskChoice,
    chosen_program: ProgramChoice,
    named_models: ModelChoice,
    chosen_split: SplitChoice,
    concurrency: int | None,
    budget: Budget,
    by: str | None,
    match_cost: str | None,
    match_per: Any,
    match_spread: Any,
    out: str | None,
    fresh: bool,
    as_json: bool,
) -> int:
    """Run a strategy over a task's examples and score it.

    Everything is written to the run folder as it happens. The same command again goes on where the run stopped,
    whatever stopped it; calls that were paid for are not made again, and a finished run is just shown. Exit code 3:
    a budget (--max-calls, --max-tokens, --max-cost) ended it.
    """
    from ..evaluation.matching import evaluate_matched
    from ..evaluation.run import evaluate

    source = chosen_task.with_examples()
    models = named_models.open()
    ready_to_score(source, models)
    interrupt.set_hint("what is finished is kept; the same command goes on where it stopped")
    program = chosen_program.open(source, models)
    shared: dict[str, Any] = {
        "out": out,
        "lm": models.first,
        "adapter": models.adapter,
        "concurrency": concurrency,
        "budget": budget,
        "by": by,
        "fresh": fresh,
        "progress": True,
    }
    if match_cost is not None:
        if chosen_split.split is not None or chosen_split.limit is not None:
            raise InputError("--match-cost takes the run's own examples; leave out --split and --limit")
        run = evaluate_matched(program, source, match_cost, per=match_per, spread=match_spread, **shared)
    else:
        run = evaluate(program, source, **chosen_split.arguments, **shared)
    return report(run, as_json=as_json)


def report(run: Run, *, as_json: bool) -> int:
    """Print a run, and return the exit code that its end has."""
    from .run_view import run_json, run_view

    if as_json:
        screen.print_json(run_json(run))
    else:
        screen.show(*run_view(run))
    if run.summary.status == "stopped":
        screen.notice(f"stopped: {run.summary.reason}; the partial result is kept, and a larger budget goes on from it")
        return BudgetExceededError.exit_code
    return 0 if run.summary.status == "complete" else 1
