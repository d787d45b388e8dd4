"""`townhall compile`: a teleprompter improves a strategy's prompts, and the result is judged on held-out examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import HelperChoice, ModelChoice, ProgramChoice, TaskChoice, TuningChoice, ready_to_score
from .options import (
    budget_options,
    combined,
    concurrency_option,
    gathered,
    model_options,
    option,
    output_options,
    program_options,
    task_options,
    temperature_option,
    tuning_options,
)
from .params import KeyValue
from .settings import value_of
from .strategy_command import Section, StrategyCommand

if TYPE_CHECKING:
    from ..evaluation.budget import Budget
    from ..optimize.compile import Compiled, CompileReport


class CompileCommand(StrategyCommand):
    """The command's parser: its help page also lists the sizes of the teleprompter."""

    def sections(self, args: list[str]) -> Iterator[Section]:
        """See `StrategyCommand.sections`."""
        yield from super().sections(args)
        if (name := value_of(args, "--teleprompter")) is not None:
            from ..optimize.teleprompters.base import TELEPROMPTERS
            from .settings import options_of

            sizes = options_of(TELEPROMPTERS.get(name).Sizes, set(), every=True)
            context = click.Context(self)
            records = [record for size in sizes if (record := size.get_help_record(context))]
            yield f"Sizes of {name} (-S KEY=VALUE)", [(row[0].lstrip("-").replace("-", "_"), row[1]) for row in records]


@click.command(
    name="compile",
    cls=CompileCommand,
    epilog="Examples:\n\n"
    "\b\n"
    "  townhall compile --task arithmetic --strategy town-hall --personas 3 --rounds 2 -S demos=2\n"
    "  townhall compile --task gsm8k --data train.jsonl --strategy society --teleprompter gepa \\\n"
    "      --reflection-lm openai/gpt-4o --max-cost 5\n"
    "  townhall compile --artifact artifacts/x --task gsm8k --data train.jsonl --only vote,rebut\n"
    "  townhall compile --teleprompter miprov2 --help",
)
@combined(task_options, program_options, temperature_option)
@option(
    "--teleprompter",
    metavar="NAME",
    default="bootstrap",
    show_default=True,
    help="How prompts are improved; `townhall list teleprompters` names them all.",
)
@option(
    "-S",
    "--size",
    "sizes",
    type=KeyValue(),
    multiple=True,
    help="A size of the teleprompter, such as -S demos=2 or -S train=30; `--teleprompter NAME --help` lists them.",
)
@option("--only", metavar="ROLE,...", help="Tune these roles only; the others stay exactly as they are.")
@gathered(
    "helpers",
    HelperChoice,
    option("--prompt-lm", metavar="NAME", help="Writes instructions.", when_absent="the first --lm"),
    option("--teacher-lm", metavar="NAME", help="Holds the debates that become demonstrations.", when_absent="--lm"),
    option("--reflection-lm", metavar="NAME", help="Reads failures and rewrites instructions (gepa needs it)."),
)
@combined(model_options, concurrency_option, budget_options, tuning_options, output_options)
def command(
    chosen_task: TaskChoice,
    chosen_program: ProgramChoice,
    teleprompter: str,
    sizes: tuple[tuple[str, str], ...],
    only: str | None,
    helpers: HelperChoice,
    named_models: ModelChoice,
    concurrency: int | None,
    budget: Budget,
    tuning: TuningChoice,
    as_json: bool,
) -> int:
    """Improve a strategy's prompts with a teleprompter, save the result as an artifact, and evaluate it held out.

    Training and dev examples come from the train and dev splits; the test split is opened once, at the end, for the
    tuned program, the untuned one, a single agent, and a majority vote at the same cost. Replies are kept: the same
    command again goes on from them.
    """
    import dspy

    from ..optimize.artifact import save_artifact
    from ..optimize.compile import compile as tune_prompts
    from ..optimize.held_out import hold_out
    from ..optimize.teleprompters.base import TELEPROMPTERS, build_sizes
    from .final import judge

    kind = TELEPROMPTERS.get(teleprompter)
    chosen = build_sizes(kind, dict(sizes))
    source = chosen_task.with_examples()
    strategy, seed = chosen_program.strategy, tuning.tuning_seed
    splits = hold_out(source, train_limit=chosen.train, dev_limit=chosen.dev, test_limit=tuning.test_limit, seed=seed)
    folder = Path(tuning.out or f"artifacts/{source.name}-{strategy}-{teleprompter}")
    mine = [source.name, strategy, teleprompter, chosen.model_dump(mode="json"), seed]
    _check_folder(folder, tuning.overwrite, mine)
    models = named_models.open()
    helping = helpers.open(named_models)
    ready_to_score(source, models)
    program = chosen_program.open(source, models)
    interrupt.set_hint("replies that came in are kept; the same command goes on from them")
    with _shown() as progress, dspy.context(lm=models.first, adapter=models.adapter):
        compiled = tune_prompts(
            program,
            source,
            teleprompter,
            train=splits.train,
            dev=splits.dev,
            only=[role.strip() for role in only.split(",")] if only is not None else None,
            budget=budget,
            seed=seed,
            concurrency=concurrency,
            progress=progress,
            **helping,
            train_size=chosen.train,
            dev_size=chosen.dev,
            **chosen.model_dump(exclude_unset=True, exclude={"train", "dev"}),
        )
    save_artifact(compiled.program, source, folder, report=compiled.report, overwrite=True)
    report = compiled.report
    if not as_json:
        screen.show(*_view(compiled))
        screen.notice(f"artifact written to {folder}")
    if report.stopped is not None:
        raise BudgetExceededError(f"stopped: {report.stopped}; the best prompts so far are in {folder}")
    held_out = None
    if tuning.test:
        held_out = judge(
            compiled.program,
            splits,
            folder,
            plain=program,
            artifact_given=chosen_program.artifact is not None,
            models=models,
            concurrency=concurrency,
            budget=budget.minus(report.total),
            as_json=as_json,
        )
    if as_json:
        screen.print_json({"artifact": str(folder), "compilation": report, "held_out": held_out})
    return 0


def _check_folder(folder: Path, overwrite: bool, mine: list[Any]) -> None:
    """Find out before anything is paid for whether the artifact has a place."""
    from ..optimize.artifact import load_info

    if overwrite or not (folder / "artifact.json").exists():
        return
    info = load_info(folder)
    done = info.compilation
    theirs: list[Any] = [info.task.name if info.task else None, info.strategy]
    theirs += [done.teleprompter, done.sizes, done.seed] if done is not None else [None, None, None]
    if theirs != mine:
        raise InputError(f"{folder}: holds another program's artifact; name another --out, or add --overwrite")


def _view(compiled: Compiled) -> Iterator[Any]:
    from rich.text import Text

    from .run_view import cost_table
    from .text import clean

    report = compiled.report
    line = Text(clean(f"{report.task} · {report.strategy} · {report.teleprompter}"), style="bold")
    yield line.append(clean(f" · {report.debates} debates"), style="not bold")
    if report.simulated:
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    yield Text()
    yield _roles(report)
    if report.scores:
        yield Text()
        best = screen.fraction(report.best)
        yield Text(f"{len(report.scores)} candidates compared on dev examples; the best scored {best}")
    yield Text()
    parts = [("debates", report.usage, report.debates, report.seconds)]
    if report.prompt_usage.calls or report.prompt_usage.cached:
        parts.append(("writing prompts", report.prompt_usage, 0, 0.0))
    yield cost_table(parts)
    for note in [*report.notes, *(f"failed: {question}: {why}" for question, why in report.failed[:3])]:
        yield Text(clean(f"note: {note}"), style="dim")


def _roles(report: CompileReport) -> Any:
    from .text import clean

    made = screen.table("role", "instructions", ">demos before", ">now")
    for name, change in report.roles.items():
        what = "frozen" if change.frozen else "rewritten" if change.changed else "as they were"
        shown = f"{change.demos}" + (f" ({change.nearest} shown)" if change.nearest is not None else "")
        made.add_row(clean(name), what, str(change.demos_before), shown)
    return made


def _shown() -> Any:
    from .tuning_progress import compiling

    return compiling()
