"""Prompts and shape in stages: the prompts of each role, then the shape with them, then the prompts again in it.

The order is that of MASS (multi-agent system search, arXiv 2502.02533): prompts that are good for one role at a time
make shapes comparable, and the best shape deserves prompts made for it. What a stage changes stays only if it scores
better on dev, paired with the program before it. The same dev examples choose again and again, so that the gains are
optimistic: only the held-out evaluation says what all of it is worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import dspy

from ..errors import BudgetExceededError, InputError
from ..evaluation.assembly import program as assemble
from ..evaluation.budget import Budget
from ..evaluation.fingerprints import content_hash
from ..evaluation.provenance import all_models
from ..models import resolve
from ..programs.base import STRATEGIES, Strategy
from ..tasks.base import Task
from .compile import CompileReport
from .freezing import frozen_names, roles_of
from .held_out import HeldOut, hold_out
from .search import tune
from .space import nearest_value, space_for
from .stage_bench import Bench, Measured, added, cost_of, gain_over, paid_in, portion
from .stage_results import Stage, Staged, StagesProgress, Step
from .study import StudyResult

__all__ = ["SHARES", "Stage", "Staged", "StagesProgress", "Step", "optimise_in_stages"]

#: How a budget is divided between the stages.
SHARES = (0.35, 0.4, 0.25)
#: The stages, in order.
PROMPTS, SHAPE, AGAIN = "prompts", "shape", "prompts again"


def optimise_in_stages(
    task: Task,
    strategy: str | Strategy,
    *,
    teleprompter: str = "bootstrap",
    budget: Budget | None = None,
    shares: Sequence[float] = SHARES,
    trials: int = 30,
    only: Sequence[str] | None = None,
    sizes: Mapping[str, Any] | None = None,
    objectives: Sequence[str] = ("score",),
    sampler: str = "gp",
    pruner: str = "wilcoxon",
    fixed: Mapping[str, Any] | None = None,
    search: Sequence[str] | Literal["all"] | None = None,
    demos: int | None = None,
    role_lms: Mapping[str, Sequence[dspy.LM]] | None = None,
    lms: Sequence[dspy.LM] = (),
    judge_lm: dspy.LM | None = None,
    lm: dspy.LM | None = None,
    prompt_lm: dspy.LM | None = None,
    teacher_lm: dspy.LM | None = None,
    reflection_lm: dspy.LM | None = None,
    adapter: dspy.Adapter | None = None,
    splits: HeldOut | None = None,
    limit: int | None = None,
    name: str | None = None,
    folder: str | Path | None = None,
    storage: str | None = None,
    concurrency: int | None = None,
    seed: int = 0,
    progress: StagesProgress | None = None,
    **ranges: Any,
) -> Staged:
    """Tune prompts and shape of a strategy in three stages.

    1. Prompts of each role: each role that is asked at all, in turn, is compiled on the program so far. New prompts
       that score better on dev are kept, others are put back.
    2. Shape: `search.tune` with these prompts. A role whose prompts gained nothing is searched less: which model speaks
       it is not searched (it keeps its model), and without any role that gained, neither is the number of
       demonstrations. The best shape is kept if it scores better than the one before.
    3. Prompts again: all roles that gained are compiled together in that shape; kept if they score better.

    "Better" is a higher mean on the same dev examples; the interval of each gain says how sure that is. The same call
    again goes on where it was: what was compiled and measured is read from the folder, replies come from the cache.

    Args:
        task: whose train examples are learnt from and whose dev examples everything is measured on. Test is not read.
        strategy: name of a strategy, or a program.
        teleprompter: what improves prompts, see `compile.compile`; no ensemble, which has no shape.
        budget: for all stages together, earlier starts included.
        shares: of the budget for each stage; what a stage leaves goes to the next. Within the first stage the roles
            share alike, likewise.
        trials: of the second stage, see `search.tune`.
        only: roles whose prompts may change; None for all.
        sizes: of the teleprompter.
        objectives: see `search.tune`, as the next six.
        sampler: how shapes are chosen.
        pruner: how hopeless shapes are stopped.
        fixed: settings that are not searched.
        search: further settings to search.
        demos: search the number of demonstrations, up to this.
        role_lms: models to choose from, by role.
        lms: models of the agents.
        judge_lm: the judge's model.
        lm: the model of roles that have none of their own; None for the configured one.
        prompt_lm: see `compile.compile`, as the next two.
        teacher_lm: holds the debates that become demonstrations.
        reflection_lm: rewrites instructions.
        adapter: None for the configured one.
        splits: from `held_out.hold_out`; made here when None.
        limit: at most so many dev examples, when the splits are made here.
        name: of the folder and the study; the default names task and strategy.
        folder: where such folders are kept; "studies" by default.
        storage: of the study, see `trial_queue.open_storage`.
        concurrency: model calls in flight at most.
        seed: of everything that is drawn.
        progress: is told how it goes.
        **ranges: what is searched, by name, as in `search.tune`. The search begins with the shape in these ranges that
            is nearest to the strategy's own.

    Raises:
        InputError: for bad input; what can be found before anything is spent is.
        RunError: when the models cannot be used.

    Example:
        staged = optimise_in_stages(task("arithmetic"), "society", agents="2:5", rounds="1:3", trials=8)
        staged.save("artifacts/arithmetic")
    """
    if len(shares) != 3 or not all(share > 0 for share in shares) or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise InputError(
            f"shares are {', '.join(f'{share:g}' for share in shares)}; give three above 0 that add up to 1"
        )
    if teleprompter == "ensemble":
        raise InputError("teleprompter 'ensemble' makes several programs, which have no shape to search; use another")
    if role_lms and lms:
        raise InputError("models are searched by role or given by agent, not both; name one lm")
    if trials < 1:
        raise InputError(f"trials is {trials}; it must be at least 1")
    kind = STRATEGIES.get(strategy) if isinstance(strategy, str) else type(strategy)
    name = name or f"{task.name}-{kind.name}-staged"
    if Path(name).name != name or name in (".", ".."):
        raise InputError(f"the name is '{name}'; it names a folder, and has no '/' in it")
    splits = splits or hold_out(task, dev_limit=limit, seed=seed)
    stages = _Stages(
        bench=Bench(
            task=task,
            splits=splits,
            dev=list({example.fingerprint: example for example in splits.dev}.values()),
            home=Path(folder or "studies") / name,
            teleprompter=teleprompter,
            sizes=dict(sizes or {}),
            helpers={"prompt_lm": prompt_lm, "teacher_lm": teacher_lm, "reflection_lm": reflection_lm},
            lm=lm,
            adapter=adapter,
            concurrency=concurrency,
            seed=seed,
            progress=progress or StagesProgress(),
        ),
        program=_begin(task, strategy, kind, ranges, fixed, search, demos, role_lms, lms, judge_lm),
        only=only,
        tuning={
            "objectives": list(objectives),
            "sampler": sampler,
            "pruner": pruner,
            "fixed": dict(fixed or {}),
            "search": search,
        },
        ranges=dict(ranges),
        demos=demos,
        role_lms=dict(role_lms or {}),
        trials=trials,
        judge_lm=judge_lm,
        name=name,
        storage=storage,
        budget=budget or Budget(),
        shares=tuple(shares),
    )
    with dspy.context(
        **({"lm": lm} if lm is not None else {}), **({"adapter": adapter} if adapter is not None else {})
    ):
        stages.check()
        return stages.run()


def _begin(
    task: Task,
    strategy: str | Strategy,
    kind: type[Strategy],
    ranges: Mapping[str, Any],
    fixed: Mapping[str, Any] | None,
    search: Sequence[str] | Literal["all"] | None,
    demos: int | None,
    role_lms: Mapping[str, Sequence[dspy.LM]] | None,
    lms: Sequence[dspy.LM],
    judge_lm: dspy.LM | None,
) -> Strategy:
    """Return the program in the shape that the search begins with: the nearest to its own that may be chosen.

    Raises:
        InputError: for a shape that cannot be searched.
    """
    models = {role: [model.model for model in choices] for role, choices in (role_lms or {}).items()}
    space = space_for(kind, ranges=ranges, fixed=fixed, search=search, demos=demos, role_models=models)
    given = dict(fixed or {})
    plain = (
        assemble(task, strategy, lms=lms, judge_lm=judge_lm, **given)
        if isinstance(strategy, str)
        else strategy.reconfigured(**given)
    )
    own = {key: getattr(plain.config, key) for key in space if key in kind.Config.model_fields}
    near = {key: nearest_value(space[key], value) for key, value in own.items() if value is not None}
    if isinstance(strategy, str):
        program = assemble(task, strategy, lms=lms, judge_lm=judge_lm, **{**given, **near})
    else:
        program = plain.reconfigured(**near)
        if lms or judge_lm:
            program.with_models(lms or strategy.lms, judge_lm or strategy.judge_lm)
    roles = list(roles_of(program))
    for role in models:
        if role not in roles:
            raise InputError(f"strategy '{kind.name}' has no role '{role}'. Its roles: {', '.join(roles)}")
    return program


# -- the stages -------------------------------------------------------------------------------------------------------


@dataclass
class _Stages:
    """One call of `optimise_in_stages`. `program` and `measured` are those of the best program so far."""

    bench: Bench
    program: Strategy
    only: Sequence[str] | None
    tuning: dict[str, Any]
    ranges: dict[str, Any]
    demos: int | None
    role_lms: dict[str, Sequence[dspy.LM]]
    trials: int
    judge_lm: dspy.LM | None
    name: str
    storage: str | None
    budget: Budget
    shares: tuple[float, ...]
    measured: Measured | None = None
    study: StudyResult | None = None
    report: CompileReport | None = None
    gained: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Check what can be checked before anything is spent.

        Raises:
            InputError: when something is missing or unknown.
        """
        frozen = frozen_names(self.program, self.only)
        self.roles = [role for role in roles_of(self.program) if role not in frozen]
        self.bench.check(self.program)

    def run(self) -> Staged:
        """Go through the stages."""
        bench, before = self.bench, self.program
        stages: list[Stage] = []
        baseline = None
        for number, work in enumerate((self._each_role, self._shape, self._again), start=1):
            # A stage may use all that the stages up to it were given and did not spend.
            share = 1.0 if number == len(self.shares) else math.fsum(self.shares[:number])
            spent = self.bench.spent
            try:
                limit = portion(self.budget, share)
                self._measure_baseline(limit)
                baseline = baseline if baseline is not None else self._score()
                stage = work(limit)
            except BudgetExceededError as error:
                stage = Stage(name=(PROMPTS, SHAPE, AGAIN)[number - 1], note=str(error))
            stage.usage = added(self.bench.spent, spent)
            stage.score = self._score()
            stages.append(stage)
            self.bench.progress.finished(stage)
        return Staged(
            task=bench.task,
            strategy=self.program.name,
            teleprompter=bench.teleprompter,
            stages=stages,
            before=before,
            best=self.program,
            splits=bench.splits,
            baseline=baseline,
            study=self.study,
            report=self.report,
            settings={
                "teleprompter": bench.teleprompter,
                "sizes": bench.all_sizes.model_dump(mode="json"),
                "shares": list(self.shares),
                "trials": self.trials,
                "sampler": self.tuning["sampler"],
                "pruner": self.tuning["pruner"],
                "objectives": self.tuning["objectives"],
                "seed": bench.seed,
            },
            folder=bench.home,
            lm=bench.lm,
            simulated=any(resolve.is_simulated(model) for model in all_models(self.program, bench.lm)),
        )

    # -- the three of them ---------------------------------------------------------------------------------------

    def _each_role(self, limit: Budget) -> Stage:
        """Compile one role after the other."""
        stage = Stage(name=PROMPTS)
        first = self._now()
        # Other words for a role that nobody asks change nothing (a summary where answers are read as they are).
        heard = first.asked is not None and first.asked <= set(roles_of(self.program))
        silent = [role for role in self.roles if heard and role not in (first.asked or ())]
        speaking = [role for role in self.roles if role not in silent]
        for number, role in enumerate(speaking):
            spent = self.bench.spent
            self.bench.progress.start(PROMPTS, role)
            try:
                # What is left is for the roles that are left, in equal parts.
                part = portion(limit.minus(spent), 1 / (len(speaking) - number))
                step = self._try(role, [role], part)
            except BudgetExceededError as error:
                step = Step(name=role, note=str(error))
            step.usage = added(self.bench.spent, spent)
            if step.outcome == "kept":
                self.gained.append(role)
            stage.roles.append(step)
            self.bench.progress.finished(step)
        for role in silent:
            step = Step(name=role, note="no dev example asks it in this shape")
            stage.roles.append(step)
            self.bench.progress.finished(step)
        if any(step.gain is not None for step in stage.roles):
            now = self._now()
            stage.gain = gain_over(first.scores, now.scores, same=now is first)
            stage.outcome = "kept" if self.gained else "did not pay"
        return stage

    def _shape(self, limit: Budget) -> Stage:
        """Search the shape for the prompts so far."""
        stage = Stage(name=SHAPE)
        settings: dict[str, Any] = {
            **self.tuning,
            **self.ranges,
            "demos": self.demos if self.gained else None,
            "role_lms": {role: choices for role, choices in self.role_lms.items() if role in self.gained} or None,
        }
        left_out = [f"model.{role}" for role in self.role_lms if role not in self.gained]
        left_out += ["demos"] if self.demos and not self.gained else []
        if left_out:
            stage.note = f"not searched, for the prompts gained nothing there: {', '.join(left_out)}"
        try:
            space_for(
                type(self.program),
                ranges=self.ranges,
                fixed=self.tuning["fixed"],
                search=self.tuning["search"],
                demos=settings["demos"],
                role_models={role: [lm.model for lm in lms] for role, lms in (settings["role_lms"] or {}).items()},
            )
        except InputError:  # the whole space was fine: nothing is left of it
            return stage
        self.bench.progress.start(SHAPE, "search")
        names = {role: [model.model for model in models] for role, models in self.role_lms.items()}
        about = content_hash([self.bench.key(self.program), self.ranges, self.tuning, self.demos, names, self.gained])
        self.study = tune(
            self.bench.task,
            self.program,
            trials=self.trials,
            examples=self.bench.dev,
            lms=self.program.lms,
            judge_lm=self.judge_lm,
            lm=self.bench.lm,
            adapter=self.bench.adapter,
            # Other prompts or another space make another study: trials of both cannot be compared.
            name=f"{self.name}-{about[:8]}",
            folder=self.bench.home,
            storage=self.storage,
            concurrency=self.bench.concurrency,
            budget=limit.minus(self.bench.spent),
            seed=self.bench.seed,
            progress=self.bench.progress.search,
            **settings,
        )
        self.bench.booked[self.study.folder] = paid_in(self.study)
        if self.study.stopped is not None:
            stage.note = "; ".join(filter(None, [stage.note, self.study.stopped]))
        if not self.study.whole:
            return stage
        best = self.study.best_trial
        found, before = self.study.best, self._now()
        measured = Measured(
            {self.bench.dev[index].fingerprint: score for index, score in best.scores.items()}, cost_of(best)
        )
        stage.gain = gain_over(before.scores, measured.scores, same=self.bench.same(found, self.program))
        if stage.gain.estimate > 0:
            stage.outcome, self.program, self.measured = "kept", found, measured
        else:
            stage.outcome = "did not pay"
        return stage

    def _again(self, limit: Budget) -> Stage:
        """Compile all roles that gained, in the best shape."""
        roles = [role for role in self.gained if role in roles_of(self.program)]
        if not roles:
            return Stage(name=AGAIN, note="no role gained from new prompts in the first stage")
        self.bench.progress.start(AGAIN, ", ".join(roles))
        return Stage(**self._try(AGAIN, roles, limit.minus(self.bench.spent)).model_dump())

    # -- one change ----------------------------------------------------------------------------------------------

    def _try(self, name: str, roles: Sequence[str], limit: Budget) -> Step:
        """Compile roles within a budget, measure the result, and keep it if it is better.

        Raises:
            BudgetExceededError: when the budget does not pay for it.
        """
        before = self._now()
        # Prompts that cannot be measured any more are worth nothing: their measurement is set aside first.
        reserved = limit.minus(before.full)
        spent = self.bench.spent
        compiled, report, note = self.bench.compile(self.program, roles, reserved)
        if compiled is None:
            return Step(name=name, outcome="did not pay", note=note)
        if self.bench.same(compiled, self.program):
            nothing = gain_over(before.scores, before.scores, same=True)
            return Step(name=name, outcome="did not pay", gain=nothing, note=note or "the prompts stayed as they were")
        measured, reason = self.bench.measure(compiled, limit.minus(added(self.bench.spent, spent)))
        if measured is None:
            return Step(name=name, outcome="not measured", note=f"put back: {reason}")
        gain = gain_over(before.scores, measured.scores, same=False)
        if gain.estimate <= 0:
            return Step(name=name, outcome="did not pay", gain=gain, note=note)
        self.program, self.measured, self.report = compiled, measured, report
        return Step(name=name, outcome="kept", gain=gain, note=note)

    # -- measuring -----------------------------------------------------------------------------------------------

    def _measure_baseline(self, limit: Budget) -> None:
        """Measure the program as it came, unless that is done.

        Raises:
            BudgetExceededError: when the budget ends before.
        """
        if self.measured is None:
            self.bench.progress.start("", "the program as it comes")
            self.measured, reason = self.bench.measure(self.program, limit)
            if self.measured is None:
                raise BudgetExceededError(f"the program as it comes could not be measured: {reason}")

    def _now(self) -> Measured:
        if self.measured is None:
            raise AssertionError("the program as it came is measured before anything is changed")
        return self.measured

    def _score(self) -> float | None:
        return self.measured.mean if self.measured is not None else None
