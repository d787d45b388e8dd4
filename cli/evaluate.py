"""`townhall evaluate`: a strategy over a task's examples, scored, resumable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import budget_of, models_of, program_of, ready_to_score, task_of, with_examples
from .options import (
    artifact_option,
    budget_options,
    combined,
    common_settings,
    concurrency_option,
    model_options,
    option,
    output_options,
    split_of,
    split_options,
    strategy_option,
    task_options,
)
from .settings import value_of
from .strategy_command import StrategyCommand

if TYPE_CHECKING:
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
    strategy_option,
    artifact_option,
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
    task: str | None,
    data: str | None,
    task_option: tuple[tuple[str, str], ...],
    strategy: str,
    artifact: str | None,
    settings: dict[str, Any],
    split: str | None,
    limit: int | None,
    order: str,
    shuffle_seed: int,
    concurrency: int | None,
    max_calls: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    by: str | None,
    match_cost: str | None,
    match_per: Any,
    match_spread: Any,
    out: str | None,
    fresh: bool,
    as_json: bool,
    **model_names: Any,
) -> int:
    """Run a strategy over a task's examples and score it.

    Everything is written to the run folder as it happens. The same command again goes on where the run stopped,
    whatever stopped it; calls that were paid for are not made again, and a finished run is just shown. Exit code 3:
    a budget (--max-calls, --max-tokens, --max-cost) ended it.
    """
    from ..evaluation.matching import evaluate_matched
    from ..evaluation.run import evaluate

    source = with_examples(task_of(task, data, task_option))
    models = models_of(**model_names)
    ready_to_score(source, models)
    interrupt.set_hint("what is finished is kept; the same command goes on where it stopped")
    program = program_of(source, strategy, settings, models, artifact=artifact)
    shared: dict[str, Any] = {
        "out": out,
        "lm": models.first,
        "adapter": models.adapter,
        "concurrency": concurrency,
        "budget": budget_of(max_calls, max_tokens, max_cost),
        "by": by,
        "fresh": fresh,
        "progress": True,
    }
    if match_cost is not None:
        if split is not None or limit is not None:
            raise InputError("--match-cost takes the run's own examples; leave out --split and --limit")
        run = evaluate_matched(program, source, match_cost, per=match_per, spread=match_spread, **shared)
    else:
        chosen: dict[str, Any] = {"split": split_of(split, order), "limit": limit, "order": order, "seed": shuffle_seed}
        run = evaluate(program, source, **chosen, **shared)
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
