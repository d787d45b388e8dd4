"""Compiling: a teleprompter improves a program's prompts on a task's examples."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dspy
from dspy.primitives.module import set_attribute_by_name
from pydantic import BaseModel, ConfigDict, Field

from ..errors import BudgetExceededError, InputError, RunError, TownhallError
from ..evaluation.budget import Budget
from ..evaluation.fingerprints import examples_fingerprint
from ..evaluation.provenance import all_models, describe, models_of
from ..evaluation.reply_cache import replies
from ..models import resolve
from ..programs.base import Strategy
from ..signatures.transcript import Usage
from ..tasks.access import task as task_by_name
from ..tasks.base import Example, Task
from .ensemble import Ensemble
from .freezing import freeze, frozen_names, roles_of
from .held_out import check_disjoint
from .metric import DebateMetric, training_examples
from .nearest_demos import NearestDemos
from .quiet import quiet, seeded
from .scoreboard import Prompts, Scoreboard, prompts_of
from .spending import PROMPTS, Spending, first_line
from .teleprompters.base import TELEPROMPTERS, Teleprompter, Work, build_sizes

if TYPE_CHECKING:
    from .artifact import ArtifactInfo


class RoleChange(BaseModel):
    """What became of a role.

    Attributes:
        frozen: it was not to be tuned.
        instructions_before: the role's instructions.
        instructions: what they are now.
        demos_before: how many demonstrations it had.
        demos: how many it has now.
        nearest: how many of them a question is shown; None for all.
    """

    frozen: bool = False
    instructions_before: str
    instructions: str
    demos_before: int
    demos: int
    nearest: int | None = None

    @property
    def changed(self) -> bool:
        """Whether the instructions are others now."""
        return self.instructions != self.instructions_before


class CompileReport(BaseModel):
    """What a compilation did.

    Attributes:
        teleprompter: its name.
        sizes: its sizes.
        seed: of all that was drawn.
        strategy: the strategy's name.
        task: the task's name.
        only: the roles that were to be tuned; None for all.
        roles: what became of each role; of an ensemble, of its first member's roles.
        usage: of the debates' calls.
        prompt_usage: of the calls that wrote prompts.
        usage_by_role: of the debates' calls, by role.
        debates: debates held.
        scores: mean score of each candidate that was compared on all dev examples (SIMBA: all training examples).
        best: the best of them; None when the teleprompter compares none.
        train: how many training examples there were, and their fingerprint.
        dev: likewise; None when no dev example was used.
        train_fingerprints: content hash of each training example.
        dev_fingerprints: likewise.
        models: the agents' models, described.
        prompt_model: the model that wrote prompts, described; None when none was called.
        teacher_model: the model of the debates that made demonstrations, where it is another.
        failed: examples that could not be debated or scored, and why; they scored 0.
        stopped: why it ended early with what it had; None when it ran to its end.
        notes: what else is worth knowing.
        seconds: wall-clock time.
        simulated: some model is simulated.
    """

    model_config = ConfigDict(extra="ignore")

    teleprompter: str
    sizes: dict[str, Any]
    seed: int
    strategy: str
    task: str
    only: list[str] | None = None
    roles: dict[str, RoleChange] = Field(default_factory=dict)
    usage: Usage = Field(default_factory=Usage)
    prompt_usage: Usage = Field(default_factory=Usage)
    usage_by_role: dict[str, Usage] = Field(default_factory=dict)
    debates: int = 0
    scores: list[float] = Field(default_factory=list)
    best: float | None = None
    train_fingerprint: str
    dev_fingerprint: str | None = None
    train_fingerprints: list[str] = Field(default_factory=list)
    dev_fingerprints: list[str] = Field(default_factory=list)
    models: list[dict[str, Any]] = Field(default_factory=list)
    prompt_model: dict[str, Any] | None = None
    teacher_model: dict[str, Any] | None = None
    failed: list[tuple[str, str]] = Field(default_factory=list)
    stopped: str | None = None
    notes: list[str] = Field(default_factory=list)
    seconds: float = 0.0
    simulated: bool = False

    @property
    def total(self) -> Usage:
        """Debates and the writing of prompts together."""
        return self.usage + self.prompt_usage


@dataclass
class Compiled:
    """A compiled program and what its compilation did.

    Attributes:
        program: the improved program; it has the models of the one that was compiled.
        report: what was done.
        task: the task it was compiled on.
    """

    program: Strategy
    report: CompileReport
    task: Task

    def save(self, folder: Path | str) -> ArtifactInfo:
        """Save as an artifact folder, see `artifact.save_artifact`."""
        from .artifact import save_artifact

        return save_artifact(self.program, self.task, folder, report=self.report)


@dataclass(frozen=True)
class CompileState:
    """How far a compilation is.

    Attributes:
        title: what is compiled ("arithmetic, town-hall, bootstrap").
        debates: debates held.
        most: debates held at most in the end.
        usage: what was paid and served so far, the writing of prompts included.
        candidates: candidates compared.
        best: the best one's dev score; None before the first.
        in_flight: calls under way.
        elapsed: seconds since it began.
    """

    title: str
    debates: int = 0
    most: int = 0
    usage: Usage = field(default_factory=Usage)
    candidates: int = 0
    best: float | None = None
    in_flight: int = 0
    elapsed: float = 0.0


def compile(
    program: Strategy,
    task: Task | str,
    teleprompter: str = "bootstrap",
    *,
    train: Sequence[Example] | None = None,
    dev: Sequence[Example] | None = None,
    prompt_lm: dspy.LM | None = None,
    teacher_lm: dspy.LM | None = None,
    reflection_lm: dspy.LM | None = None,
    only: Sequence[str] | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    lm: dspy.LM | None = None,
    concurrency: int | None = None,
    progress: Callable[[CompileState], None] | None = None,
    train_size: int | None = None,
    dev_size: int | None = None,
    **sizes: Any,
) -> Compiled:
    """Improve a program's prompts with a teleprompter.

    The program itself is left as it is. Replies are kept in the cache: the same call again, after a kill or with more
    budget, pays for what is new only.

    Args:
        program: a strategy, compiled before or not.
        task: gives examples, scores and worked problems.
        teleprompter: a registered name; `townhall list teleprompters`.
        train: training examples; the task's train split when None.
        dev: examples to compare candidates on; the task's dev split when None. Never the test split.
        prompt_lm: writes instructions; the program's model when None.
        teacher_lm: holds the debates that become demonstrations; the program's own models when None.
        reflection_lm: reads failures and rewrites instructions (GEPA, which does not run without it).
        only: roles to tune; the others keep their prompts and demonstrations exactly. None for all.
        budget: limits on calls, tokens or cost. When one is reached the best candidate so far is returned, and the
            report says so.
        seed: of everything that is drawn.
        lm: the model of roles that have none of their own; None for the configured one.
        concurrency: model calls in flight at most; what suits the model when None.
        progress: is shown how far it is, after every debate and candidate; it may be called from several threads.
        train_size: the teleprompter's size `train`: at most so many training examples.
        dev_size: its size `dev`, likewise.
        **sizes: its other sizes, see its `Sizes`.

    Raises:
        InputError: for bad input, or when something that the teleprompter needs is missing.
        RunError: when the models cannot be used, or no debate could be won.
    """
    kind = TELEPROMPTERS.get(teleprompter)
    counts = {"train": train_size, "dev": dev_size}
    sizes |= {name: count for name, count in counts.items() if count is not None}
    with dspy.context(**({"lm": lm} if lm is not None else {})):
        job = _Job(
            program=program,
            task=task_by_name(task) if isinstance(task, str) else task,
            kind=kind,
            sizes=build_sizes(kind, sizes),
            only=only,
            prompt_lm=prompt_lm,
            teacher_lm=teacher_lm,
            reflection_lm=reflection_lm,
            budget=budget,
            seed=seed,
            concurrency=concurrency,
            progress=progress,
        )
        job.choose_examples(train, dev)
        job.check()
        return job.run()


@dataclass
class _Job:
    """One compilation, from its checks to its report."""

    program: Strategy
    task: Task
    kind: type[Teleprompter]
    sizes: Any
    only: Sequence[str] | None
    prompt_lm: dspy.LM | None
    teacher_lm: dspy.LM | None
    reflection_lm: dspy.LM | None
    budget: Budget | None
    seed: int
    concurrency: int | None
    progress: Callable[[CompileState], None] | None
    notes: list[str] = field(default_factory=list)
    most: int = 0

    # -- checks, before anything is spent -------------------------------------------------------------------------

    def choose_examples(self, train: Sequence[Example] | None, dev: Sequence[Example] | None) -> None:
        """Take the examples that are given, or the task's splits, up to the sizes."""
        self.train = self._limited("train", train)
        self.dev = self._limited("dev", dev) if self.kind.needs_dev else []
        check_disjoint(train=self.train, dev=self.dev)

    def _limited(self, split: str, given: Sequence[Example] | None) -> list[Example]:
        most = getattr(self.sizes, split)
        if given is None:
            return self.task.split("train" if split == "train" else "dev", limit=most, seed=self.seed)
        if most is not None and len(given) > most:
            self.notes.append(f"the first {most} of {len(given)} {split} examples were used (size {split})")
        return list(given[:most])

    def check(self) -> None:
        """Check all that the teleprompter needs.

        Raises:
            InputError: when something is missing; the text says what.
        """
        if isinstance(self.program, Ensemble):
            raise InputError("an ensemble cannot be compiled; compile its members and put them together anew")
        if self.concurrency is not None and self.concurrency < 1:
            raise InputError(f"the concurrency is {self.concurrency}; it must be at least 1")
        self.frozen = frozen_names(self.program, self.only)
        self.task.check_scoring()
        self.models = models_of(self.program, None)
        teleprompter = self.kind()
        if self.kind.needs_reflection_lm and self.reflection_lm is None:
            raise InputError(
                f"{self.kind.name} needs a reflection model: give --reflection-lm NAME (reflection_lm=...)"
            )
        samples = self.kind.needs_samples or getattr(self.sizes, "rounds", 1) > 1
        if samples and self.program.config.temperature == 0:
            raise InputError(
                f"{self.kind.name} compares different samples of one debate, and the program's temperature is 0; "
                "leave it out or raise it"
            )
        teleprompter.check(self.sizes, training_examples(self.train), self.dev)

    # -- the work -------------------------------------------------------------------------------------------------

    def run(self) -> Compiled:
        """Compile.

        Raises:
            RunError: when it fails.
        """
        self.started = time.monotonic()
        places = self.concurrency or min(resolve.default_concurrency(model) for model in self.models)
        self.spending = Spending(self.budget, places, self._show)
        self.board = Scoreboard(lambda: self.spending.stopped is None, self._show)
        self.metric = DebateMetric(self.task, [*self.train, *self.dev])
        settings: dict[str, Any] = {
            "callbacks": [*(dspy.settings.get("callbacks") or []), self.board],
            "trace": None,
            "max_history_size": 256,
        }
        if dspy.settings.lm is None:
            settings["lm"] = self.models[0]
        with dspy.context(**settings), replies(), quiet() as printed, seeded(self.seed):
            work = self._work(places)
            self.most = self._most_debates(work)
            tuned = self._tune(work)
            work.notes += [f"{self.kind.name}: {problem}" for problem in printed.problems]
        return Compiled(tuned, self._report(tuned, work), self.task)

    def _work(self, places: int) -> Work:
        worked = {name: list(predictor.demos) for name, predictor in roles_of(self.program).items()}
        teacher = self._student()
        if self.teacher_lm is not None:
            teacher.with_models([self.teacher_lm], self.teacher_lm)
        return Work(
            program=self._student(),
            teacher=teacher,
            task=self.task,
            metric=self.metric,
            train=training_examples(self.train),
            dev=training_examples(self.dev),
            prompt_lm=self.spending.metered(self.prompt_lm or dspy.settings.lm),
            reflection_lm=self.spending.metered(self.reflection_lm) if self.reflection_lm is not None else None,
            teacher_lm=self.teacher_lm,
            seed=self.seed,
            threads=places,
            spending=self.spending,
            sizes=self.sizes,
            worked=worked,
            problems=self._worked_problems(),
            notes=self.notes,
        )

    def _most_debates(self, work: Work) -> int:
        roles = len(roles_of(work.program))
        return self.kind().most_debates(self.sizes, roles=roles, train=len(work.train), dev=len(work.dev))

    def _worked_problems(self) -> dict[str, list[Any]]:
        """Return each role's part in all of the task's worked problems, however few the program shows."""
        demonstrations = self.task.demonstrations()
        field = self.program.Config.model_fields.get("shots")
        most = max((bound.le for bound in field.metadata if hasattr(bound, "le")), default=0) if field else 0
        settings = {"shots": min(most, len(demonstrations))} if field else {}
        shown = self.program.reconfigured(**settings).demonstrate(demonstrations)
        return {name: list(predictor.demos) for name, predictor in roles_of(shown).items()}

    def _student(self) -> Strategy:
        """Return a copy for a teleprompter to work on."""
        copied = self.program.reconfigured()
        for _, predictor in copied.named_predictors():
            # A signature class of its own for each role: some teleprompters write into the class.
            predictor.signature = predictor.signature.with_instructions(predictor.signature.instructions)
        return self.spending.watch(freeze(copied, self.frozen))

    def _tune(self, work: Work) -> Strategy:
        try:
            tuned = self.kind().run(work)
        except Exception as error:
            # Teleprompters stumble in their own ways over debates that are refused once a budget is used up.
            if not isinstance(self.spending.stopped, BudgetExceededError):
                raise self._reason(error) from error
            tuned = self._best_so_far(work)
        if self.spending.stopped is not None and not isinstance(self.spending.stopped, BudgetExceededError):
            raise self.spending.stopped
        if isinstance(tuned, Ensemble):
            return Ensemble([self._finished(member) for member in tuned.members], tuned.config)
        return self._finished(tuned)

    def _reason(self, error: Exception) -> TownhallError:
        if self.spending.stopped is not None:
            return self.spending.stopped
        if isinstance(error, TownhallError):
            return error
        return RunError(f"{self.kind.name} failed: {type(error).__name__}: {first_line(error)}")

    def _best_so_far(self, work: Work) -> Strategy:
        best = self.board.best
        return apply(work.program, best.prompts if best is not None else {})

    def _finished(self, tuned: Strategy) -> Strategy:
        """Return the tuned prompts in a program of the original's kind, settings and models."""
        program = self.program.reconfigured(seed=tuned.config.seed)
        for name, predictor in roles_of(tuned).items():
            if isinstance(predictor, NearestDemos):
                set_attribute_by_name(program, name, NearestDemos(predictor.signature, (), predictor.nearest))
        return apply(program, prompts_of(tuned))

    def _report(self, tuned: Strategy, work: Work) -> CompileReport:
        by_role = self.spending.by_role
        prompts = by_role.pop(PROMPTS, Usage())
        stopped = self.spending.stopped
        scores = [candidate.score for candidate in self.board.full] or list(work.scores)
        scored = {example.question[:200]: example.id for example in (*self.train, *self.dev)}
        failed = [(scored.get(failure.example, failure.example), failure.error) for failure in self.spending.failures]
        failed += [(failure.example, failure.error) for failure in self.metric.failures]
        return CompileReport(
            teleprompter=self.kind.name,
            sizes=self.sizes.model_dump(),
            seed=self.seed,
            strategy=self.program.name,
            task=self.task.name,
            only=list(self.only) if self.only is not None else None,
            roles=self._changes(tuned.members[0] if isinstance(tuned, Ensemble) else tuned),
            usage=sum(by_role.values(), Usage()),
            prompt_usage=prompts,
            usage_by_role=by_role,
            debates=self.spending.debates,
            scores=scores,
            best=max(scores, default=None),
            train_fingerprint=examples_fingerprint(self.train),
            dev_fingerprint=examples_fingerprint(self.dev) if self.dev else None,
            train_fingerprints=[example.fingerprint for example in self.train],
            dev_fingerprints=[example.fingerprint for example in self.dev],
            models=[describe(model) for model in self.models],
            prompt_model=self._prompt_model(prompts),
            teacher_model=describe(self.teacher_lm) if self.teacher_lm is not None else None,
            failed=failed,
            stopped=str(stopped) if stopped is not None else None,
            notes=list(dict.fromkeys(work.notes)),
            seconds=round(time.monotonic() - self.started, 3),
            simulated=any(resolve.is_simulated(model) for model in all_models(self.program, None)),
        )

    def _prompt_model(self, used: Usage) -> dict[str, Any] | None:
        if not used.calls and not used.cached:
            return None
        return describe(self.reflection_lm or self.prompt_lm or dspy.settings.lm or self.models[0])

    def _changes(self, tuned: Strategy) -> dict[str, RoleChange]:
        before, after = roles_of(self.program), roles_of(tuned)
        return {
            name: RoleChange(
                frozen=name in self.frozen,
                instructions_before=before[name].signature.instructions,
                instructions=after[name].signature.instructions,
                demos_before=len(before[name].demos),
                demos=len(after[name].demos),
                nearest=getattr(after[name], "nearest", None),
            )
            for name in before
        }

    def _show(self) -> None:
        if self.progress is None:
            return
        best = self.board.best
        self.progress(
            CompileState(
                title=f"{self.task.name}, {self.program.name}, {self.kind.name}",
                debates=self.spending.debates,
                most=self.most,
                usage=self.spending.control.total,
                candidates=len(self.board.candidates),
                best=best.score if best is not None else None,
                in_flight=self.spending.control.in_flight,
                elapsed=time.monotonic() - self.started,
            )
        )


def apply(program: Strategy, prompts: Mapping[str, Prompts]) -> Strategy:
    """Give roles their tuned signature and demonstrations. Returns the program."""
    for name, predictor in roles_of(program).items():
        if name in prompts:
            predictor.signature = prompts[name].signature
            predictor.demos = [dspy.Example(**dict(demo)) for demo in prompts[name].demos]
    return program
