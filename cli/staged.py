"""`townhall tune --staged`: prompts of each role, then the shape, then the prompts again; and what each stage gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BudgetExceededError, InputError
from . import interrupt, screen
from .build import HelperChoice, ModelChoice, TuningChoice
from .options import gathered, option
from .params import CommaSeparated, KeyValue

if TYPE_CHECKING:
    from ..optimize.held_out import HeldOut
    from ..optimize.staged import Staged, StagesProgress, Step
    from ..programs.base import Strategy
    from ..tasks.base import Task
    from .build import Models


@dataclass(frozen=True)
class StagesChoice:
    """`--staged` and the options that mean something only with it, as they were given."""

    staged: bool
    teleprompter: str | None
    sizes: tuple[tuple[str, str], ...]
    shares: list[float] | None
    prompt_lm: str | None
    teacher_lm: str | None
    reflection_lm: str | None

    def check(self) -> None:
        """Refuse what was given without `--staged`.

        Raises:
            InputError: when there is such an option.
        """
        given = next((name for name, value in vars(self).items() if value), None)
        if not self.staged and given is not None:
            flag = "-S" if given == "sizes" else f"--{given.replace('_', '-')}"
            raise InputError(f"{flag} goes with --staged; `townhall compile` tunes the prompts alone")

    @property
    def helpers(self) -> HelperChoice:
        """The models that help to tune prompts."""
        return HelperChoice(self.prompt_lm, self.teacher_lm, self.reflection_lm)


staged_options = gathered(
    "stages",
    StagesChoice,
    option(
        "--staged",
        is_flag=True,
        help="Tune in three stages: the prompts of each role, the shape with them, the prompts again in it.",
    ),
    option("--teleprompter", metavar="NAME", help="With --staged: improves the prompts.", when_absent="bootstrap"),
    option(
        "-S",
        "--size",
        "sizes",
        type=KeyValue(),
        multiple=True,
        help="With --staged: a size of the teleprompter, such as -S demos=2.",
    ),
    option(
        "--shares",
        type=CommaSeparated(float),
        help="With --staged: how the budget is divided between the stages.",
        when_absent="0.35,0.4,0.25",
    ),
    option("--prompt-lm", metavar="NAME", help="With --staged: writes instructions.", when_absent="the first --lm"),
    option(
        "--teacher-lm",
        metavar="NAME",
        help="With --staged: holds the debates that become demonstrations.",
        when_absent="--lm",
    ),
    option("--reflection-lm", metavar="NAME", help="With --staged: rewrites instructions (gepa needs it)."),
)


def run(
    source: Task,
    strategy: str | Strategy,
    plain: Strategy,
    stages: StagesChoice,
    search: Mapping[str, Any],
    *,
    splits: HeldOut,
    models: Models,
    named_models: ModelChoice,
    artifact_given: bool,
    tuning: TuningChoice,
    folder: Path,
    as_json: bool,
) -> int:
    """Search in stages, print what each gave, save the result, and evaluate it held out."""
    from ..optimize.staged import SHARES, optimise_in_stages
    from .final import judge

    budget = search["budget"]
    interrupt.set_hint("what is finished is kept; the same command goes on from it")
    with staging() as progress:
        staged = optimise_in_stages(
            source,
            strategy,
            teleprompter=stages.teleprompter or "bootstrap",
            sizes=dict(stages.sizes),
            shares=stages.shares or SHARES,
            splits=splits,
            progress=progress,
            **stages.helpers.open(named_models),
            **search,
        )
    staged.save(folder, overwrite=tuning.overwrite)
    if not as_json:
        screen.show(*view(staged))
        screen.notice(f"artifact written to {folder}")
    if tuning.test and (reached := budget.reached(staged.used)):
        raise BudgetExceededError(f"stopped: {reached}; the best program so far is in {folder}")
    held_out = None
    if tuning.test:
        held_out = judge(
            staged.best,
            splits,
            folder,
            plain=plain,
            artifact_given=artifact_given,
            models=models,
            concurrency=search["concurrency"],
            budget=budget.minus(staged.used),
            as_json=as_json,
            ledger=staged.folder / "held_out.jsonl",
        )
    if as_json:
        screen.print_json({**staged.record(), "artifact": str(folder), "used": staged.used, "held_out": held_out})
    return 0


def view(staged: Staged) -> Iterator[Any]:
    """Yield the stages and their roles with what they gained and what they cost."""
    from rich.text import Text

    from .text import clean

    line = Text(clean(f"{staged.task.name} · {staged.strategy} · {staged.teleprompter}, in stages"), style="bold")
    yield line.append(f" · {len(staged.splits.dev)} dev examples", style="not bold")
    if staged.simulated:
        yield Text("SIMULATED: these figures say nothing about a real model", style="bold yellow")
    yield Text()
    made = screen.table("stage", "outcome", ">gain", ">95 % interval", ">score", ">calls", ">tokens", ">cost")
    made.add_row("as it came", "", "", "", screen.fraction(staged.baseline), "", "", "")
    for depth, step in staged.rows:
        gain = step.gain
        made.add_row(
            clean("  " * depth + step.name),
            clean(outcome(step)),
            f"{100 * gain.estimate:+.1f}" if gain is not None else "",
            f"{100 * gain.low:+.1f} to {100 * gain.high:+.1f}" if gain is not None else "",
            screen.fraction(getattr(step, "score", None)) if depth == 0 else "",
            screen.count(step.usage.calls),
            screen.count(step.usage.tokens),
            screen.money(step.usage.cost),
        )
    used = staged.used
    made.add_row("in all", "", "", "", "", screen.count(used.calls), screen.count(used.tokens), screen.money(used.cost))
    yield made
    for _, step in staged.rows:
        if step.note:
            yield Text(clean(f"{step.name}: {step.note}"), style="dim")
    yield Text(
        "gains are in points, on the dev examples that chose: they flatter, the held-out score does not", style="dim"
    )
    yield Text("unsure: the interval of the gain holds 0, so that it may be chance", style="dim")


def outcome(step: Step) -> str:
    """Return what became of a step, in words."""
    return "kept, unsure" if step.outcome == "kept" and not step.certain else step.outcome


@contextmanager
def staging() -> Iterator[StagesProgress]:
    """Return the watcher that a search in stages tells how far it is, on standard error."""
    import sys

    from ..optimize.staged import StagesProgress as Base
    from .tuning_progress import searching

    with searching() as search_shown:

        class Shown(Base):
            search = search_shown

            def start(self, stage: str, what: str) -> None:
                print(": ".join(part for part in (stage, what) if part), file=sys.stderr, flush=True)

            def finished(self, step: Step) -> None:
                gain = f", {100 * step.gain.estimate:+.1f} points" if step.gain is not None else ""
                print(f"{step.name}: {outcome(step)}{gain}", file=sys.stderr, flush=True)

        yield Shown()
