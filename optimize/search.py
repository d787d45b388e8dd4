"""Searching the shape of a debate with Optuna: how many personas and rounds first, then everything that is a choice.

Every trial answers the same examples in the same shuffled order and is compared with the others example by example.
Trials overlap: rounds 1 and 2 of a three-round debate are those of the two-round one with the same personas, so that
their replies come from the cache.
"""

from __future__ import annotations

import json
import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dspy
import optuna
from filelock import FileLock
from optuna.trial import TrialState

from ..errors import BudgetExceededError, InputError, TownhallError
from ..evaluation.assembly import program as assemble
from ..evaluation.fingerprints import examples_fingerprint, program_fingerprint
from ..evaluation.provenance import all_models, models_of
from ..evaluation.run import Budget, evaluate, load_run
from ..programs.base import STRATEGIES, Strategy
from ..signatures.transcript import Usage
from ..tasks.base import Example, SplitName, Task
from .pruning import make_pruner
from .samplers import MOST_CANDIDATES, SAMPLERS, all_points, make_sampler, random_point
from .space import DEMOS, MODEL_PREFIX, Dimension, nearest_value, size, space_for, suggest
from .study import COSTS, StudyDescription, StudyResult, TrialResult, paired_score, read_trials, spent
from .trial_queue import TrialQueue, open_storage, without_password
from .trial_watch import SearchProgress, TrialWatch

__all__ = ["SAMPLERS", "SearchProgress", "tune"]

#: A sampler that keeps proposing what was tried already is helped out of it after so many repetitions.
MOST_DUPLICATES = 3
#: A search ends with the reason when a strategy refuses so many configurations in a row.
MOST_REFUSED = 20
#: Seconds that a worker waits for the study it is to help with, and between two looks at what others are doing.
PATIENCE, LOOK = 30.0, 0.5


def tune(
    task: Task,
    strategy: str | Strategy,
    *,
    trials: int = 30,
    objectives: Sequence[str] = ("score",),
    sampler: str = "gp",
    pruner: str = "wilcoxon",
    split: SplitName = "dev",
    limit: int | None = None,
    examples: Sequence[Example] | None = None,
    fixed: Mapping[str, Any] | None = None,
    search: Sequence[str] | Literal["all"] | None = None,
    demos: int | None = None,
    role_lms: Mapping[str, Sequence[dspy.LM]] | None = None,
    lms: Sequence[dspy.LM] = (),
    judge_lm: dspy.LM | None = None,
    lm: dspy.LM | None = None,
    adapter: dspy.Adapter | None = None,
    name: str | None = None,
    folder: str | Path | None = None,
    storage: str | None = None,
    worker: bool = False,
    concurrency: int | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    progress: SearchProgress | None = None,
    **ranges: Any,
) -> StudyResult:
    """Search the shape of a strategy for a task.

    Args:
        task: whose examples are answered.
        strategy: name of a strategy, or a program whose prompts (tuned ones, say) every trial keeps.
        trials: how many in all; a study that has some already goes on until there are so many. Failed trials and
            repetitions of a configuration do not count.
        objectives: "score", and costs to minimise with it (calls, tokens, cost, seconds; per question, as if nothing
            had been cached): the result then has a Pareto front.
        sampler: see `samplers.SAMPLERS`; "grid" tries every point in a random order.
        pruner: "wilcoxon", "halving" or "none", see `pruning`.
        split: "dev" or "train"; tuning never reads test.
        limit: at most so many examples.
        examples: these instead of the split's.
        fixed: values by name that are not searched; this and the next four make the search space, see
            `space.space_for`.
        search: further names to search.
        demos: search the number of demonstrations, up to this.
        role_lms: models to choose from, by role.
        **ranges: what is searched, by name: `personas=range(2, 10)`, `rounds="1:3"`.
        lms: models of the agents.
        judge_lm: the judge's model.
        lm: the model of roles that have none of their own; None for the configured one.
        adapter: None for the configured one.
        name: of the study; the default names task and strategy.
        folder: where studies are kept; "studies" by default.
        storage: see `trial_queue.open_storage`.
        worker: only help with the trials that another process has put into the storage.
        concurrency: as in `evaluate`.
        budget: for all of the study's trials together, earlier calls of `tune` included.
        seed: of the sampler and of the order of the examples.
        progress: is told how it goes.

    Returns:
        The study with all trials; `.best` is the program of the best one.

    Raises:
        InputError: for bad settings, a study of another task or strategy under the same name, or the test split.

    Example:
        study = tune(task("arithmetic"), "town-hall", personas=range(2, 6), rounds="1:3", trials=8)
        program = study.best
    """
    if split == "test":
        raise InputError("tuning never reads the test split; use --split dev or train")
    if trials < 1:
        raise InputError(f"trials is {trials}; it must be at least 1")
    kind = STRATEGIES.get(strategy) if isinstance(strategy, str) else type(strategy)
    search_ = _Search(
        task=task,
        base=strategy,
        space=space_for(
            kind,
            ranges=ranges,
            fixed=fixed,
            search=search,
            demos=demos,
            role_models={role: [model.model for model in models] for role, models in (role_lms or {}).items()},
        ),
        fixed=dict(fixed or {}),
        objectives=_checked(objectives),
        examples=_examples(task, split, limit, seed, examples),
        split=split,
        lms=tuple(lms),
        judge_lm=judge_lm,
        lm=lm,
        adapter=adapter,
        role_lms={role: {model.model: model for model in models} for role, models in (role_lms or {}).items()},
        sampler=sampler,
        pruner=pruner,
        trials=trials,
        seed=seed,
        concurrency=concurrency,
        budget=budget or Budget(),
        progress=progress or SearchProgress(),
    )
    search_.check()
    name = f"{task.name}-{kind.name}" if name is None else name
    if not name or Path(name).name != name or name == "..":
        raise InputError(f"the study's name is '{name}'; it names a folder, and has no '/' in it")
    home = Path(folder or "studies") / name
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{home}: the study's folder cannot be made: {error.strerror or error}") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return search_.run(name, home, storage, worker)


def _checked(objectives: Sequence[str]) -> list[str]:
    unknown = [name for name in objectives if name not in ("score", *COSTS)]
    if unknown:
        raise InputError(f"unknown objective '{unknown[0]}'. Known: score, {', '.join(COSTS)}")
    return ["score", *(name for name in dict.fromkeys(objectives) if name != "score")]


def _examples(
    task: Task, split: SplitName, limit: int | None, seed: int, given: Sequence[Example] | None
) -> list[Example]:
    chosen = list(given)[:limit] if given is not None else task.split(split, limit=limit, order="shuffled", seed=seed)
    chosen = list({example.fingerprint: example for example in chosen}.values())
    if not chosen:
        raise InputError("there are no examples to tune on")
    tests = {
        example.fingerprint
        for example, of in zip(task.examples, task.assign_splits(task.examples), strict=True)
        if of == "test"
    }
    if leaked := next((example for example in chosen if example.fingerprint in tests), None):
        raise InputError(f"example '{leaked.id}' is of the test split, which tuning never reads")
    return chosen


@dataclass
class _Search:
    """One call of `tune`."""

    task: Task
    base: str | Strategy
    space: dict[str, Dimension]
    fixed: dict[str, Any]
    objectives: list[str]
    examples: list[Example]
    split: SplitName
    lms: tuple[dspy.LM, ...]
    judge_lm: dspy.LM | None
    lm: dspy.LM | None
    adapter: dspy.Adapter | None
    role_lms: dict[str, dict[str, dspy.LM]]
    sampler: str
    pruner: str
    trials: int
    seed: int
    concurrency: int | None
    budget: Budget
    progress: SearchProgress

    @property
    def strategy(self) -> type[Strategy]:
        return STRATEGIES.get(self.base) if isinstance(self.base, str) else type(self.base)

    def build(self, settings: dict[str, Any]) -> Strategy:
        """Return the program of a configuration.

        Raises:
            InputError: when the strategy refuses it.
        """
        shape = {key: value for key, value in settings.items() if key != DEMOS and not key.startswith(MODEL_PREFIX)}
        if isinstance(self.base, str):
            built = assemble(self.task, self.base, lms=self.lms, judge_lm=self.judge_lm, **{**self.fixed, **shape})
        else:
            built = self.base.reconfigured(**{**self.fixed, **shape})
            if self.lms or self.judge_lm:
                built = built.with_models(self.lms or self.base.lms, self.judge_lm or self.base.judge_lm)
        for role, predictor in built.named_predictors():
            if DEMOS in settings:
                predictor.demos = predictor.demos[: settings[DEMOS]]
            if MODEL_PREFIX + role in settings:
                predictor.lm = self.role_lms[role][settings[MODEL_PREFIX + role]]
        return built

    def check(self) -> None:
        """Check what can be checked before anything is spent.

        Raises:
            InputError: for a sampler that does not fit, a role that is not there, models that exclude each other, or
                a strategy that refuses the settings.
        """
        make_sampler(self.sampler, self.seed, self.trials, self.space, self.objectives)
        make_pruner(self.pruner, len(self.examples))
        plain = self.build(self._defaults())
        roles = [role for role, _ in plain.named_predictors()]
        for role in self.role_lms:
            if role not in roles:
                raise InputError(f"strategy '{self.strategy.name}' has no role '{role}'. Its roles: {', '.join(roles)}")
        if self.role_lms and plain.lms:
            raise InputError("models are searched by role or given by agent, not both; name one --lm")
        self.task.check_scoring()
        all_models(plain, self.lm)

    def _defaults(self) -> dict[str, Any]:
        """Return each dimension's value that is nearest to what the strategy has, for those it has one for."""
        found = {}
        for name, dimension in self.space.items():
            value = dimension.default
            if not isinstance(self.base, str) and name in self.strategy.Config.model_fields:
                value = getattr(self.base.config, name)
            if value is not None:
                found[name] = nearest_value(dimension, value)
        return found

    def describe(self) -> StudyDescription:
        """Return what this search is about, without making any call."""
        plain = self.build(self._defaults())
        defaults = type(plain.config)().model_dump(mode="json")
        settings = {
            name: value
            for name, value in plain.config.model_dump(mode="json").items()
            if name not in self.space and (name in self.fixed or value != defaults[name])
        }
        adapter = self.adapter or dspy.settings.adapter
        return StudyDescription(
            task=self.task.name,
            task_version=self.task.version,
            task_fingerprint=self.task.fingerprint,
            split=self.split,
            examples=examples_fingerprint(self.examples),
            n=len(self.examples),
            strategy=self.strategy.name,
            program=program_fingerprint(plain),
            space=list(self.space.values()),
            fixed=settings,
            objectives=self.objectives,
            models=[model.model for model in models_of(plain, self.lm)],
            judge=self.judge_lm.model if self.judge_lm is not None else None,
            adapter=type(adapter).__name__ if adapter is not None else "DebateAdapter",
        )

    # -- the search ----------------------------------------------------------------------------------------------

    def run(self, name: str, home: Path, storage: str | None, worker: bool) -> StudyResult:
        """Work through the queue until nothing is left to do."""
        description, where = self.describe(), without_password(storage)
        lock = FileLock(str(home / ".lock"))
        with lock:
            opened = open_storage(storage, home)
        until = time.monotonic() + PATIENCE
        while worker and not _begun(name, opened):
            if time.monotonic() > until:
                raise InputError(f"there is no study '{name}' in {where} to help with; start it without --worker")
            time.sleep(LOOK)
        # Two processes that start a study at the same moment: one creates it, the other finds it.
        with lock:
            self._join(name, opened, description, where)
            (home / "study.json").write_text(
                json.dumps({"name": name, "storage": where, **description.model_dump(mode="json")}, indent=2) + "\n"
            )
        queue = TrialQueue(name, opened, home / ".lock")
        queue.put_back_dead()
        if not worker:
            # A space holds no more different trials than points.
            queue.fill(min(self.trials, size(self.space)), self._first(queue))
        self.progress.start(self.trials, size(self.space))
        stopped = self._work(queue, home)
        return StudyResult(name, home, where, description, read_trials(queue.study()), self.build, stopped)

    def _join(self, name: str, storage: optuna.storages.BaseStorage, description: StudyDescription, where: str) -> None:
        """Find the study or make it, and check that it is the same search."""
        directions = ["maximize"] + ["minimize"] * (len(self.objectives) - 1)
        study = optuna.create_study(study_name=name, storage=storage, directions=directions, load_if_exists=True)
        stored = study.user_attrs.get("townhall")
        if stored is not None:
            description.check_same(stored, name)
            return
        if study.get_trials(deepcopy=False):
            raise InputError(f"study '{name}' in {where} was not made by townhall; use another --name")
        study.set_user_attr("townhall", description.model_dump(mode="json"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(self.objectives)  # as dashboards show them

    def _first(self, queue: TrialQueue) -> list[dict[str, Any]]:
        """Return the settings that go into the queue; all others are the sampler's choice."""
        if self.sampler == "grid":
            return self._untried(queue)
        if queue.trials():
            return []
        # The strategy as it comes is tried first: what the search finds must beat it.
        return [self._defaults()]

    def _sampler(self, queue: TrialQueue) -> optuna.samplers.BaseSampler:
        # A sampler per trial, seeded by how far the study is: a resumed search chooses as an unbroken one does.
        done = len(queue.trials(TrialState.COMPLETE, TrialState.FAIL))
        return make_sampler(self.sampler, self.seed * 100_003 + done, self.trials, self.space, self.objectives)

    def _work(self, queue: TrialQueue, home: Path) -> str | None:
        """Run trials until none is left; returns why there are fewer than were asked for, if there are."""
        repeated = refused = 0
        while True:
            number = queue.claim()
            if number is None:
                if queue.put_back_dead():
                    continue
                if not queue.running() and not queue.waiting():
                    return None if self._untried(queue) else "every point of the search space was tried"
                time.sleep(LOOK)  # another process works on the last trials; one of them may come back
                continue
            try:
                with queue.heartbeat(number):
                    end = self._run_trial(queue, number, home)
            except BudgetExceededError as error:
                queue.put_back(number, "budget")
                return str(error)
            except BaseException as error:
                queue.put_back(number, type(error).__name__)
                raise
            repeated = repeated + 1 if end == "duplicate" else 0
            refused = refused + 1 if end == "refused" else 0
            if refused >= MOST_REFUSED:
                problem = next(trial.problem for trial in reversed(read_trials(queue.study())) if trial.invalid)
                raise InputError(f"the strategy refuses what is searched: {problem}")
            if end != "done":
                self._replace(queue, helped=repeated >= MOST_DUPLICATES or self.sampler == "grid")

    def _replace(self, queue: TrialQueue, *, helped: bool) -> None:
        """Queue another trial for one that does not count: the sampler's choice, or one that nobody has tried."""
        untried = self._untried(queue)
        if untried:
            # What the sampler wished for was known already and cost nothing: it may wish again, but not for ever.
            queue.add(untried[0] if helped else {})
        else:
            queue.withdraw_open()

    def _untried(self, queue: TrialQueue) -> list[dict[str, Any]]:
        """Return the points that no trial is for, shuffled; of a large space, a point at random."""
        tried = [
            trial.user_attrs.get("settings") or trial.params or trial.system_attrs.get("fixed_params", {})
            for trial in queue.trials()
            if trial.state != TrialState.FAIL or "invalid" in trial.user_attrs
        ]
        if size(self.space) > MOST_CANDIDATES:
            return [random_point(self.space, self.seed + len(tried))]
        keys = {_key(settings) for settings in tried}
        return [point for point in all_points(self.space, self.seed) if _key(point) not in keys]

    def _run_trial(self, queue: TrialQueue, number: int, home: Path) -> Literal["done", "duplicate", "refused"]:
        """Run a claimed trial to its end."""
        # One process of this machine at a time: the next one sees what this one is going to try.
        with queue.lock:
            trial = queue.trial(number, self._sampler(queue))
            settings = suggest(trial, self.space)
            trial.set_user_attr("settings", settings)
        others = self._others(queue, number)
        same = [other for other in others if other.settings == settings]
        if known := next((other for other in same if other.state in ("complete", "pruned")), None):
            self._finish(queue, known, others, number=number, duplicate_of=known.number)
            return "duplicate"
        if running := next((other for other in same if other.state == "running" and other.number < number), None):
            queue.repeat_of(number, running.number)
            return "duplicate"
        try:
            built = self.build(settings)
        except InputError as error:
            queue.refuse(number, str(error))
            return "refused"
        budget = self.budget.minus(spent(others))
        self.progress.trial(number, settings)
        watch = TrialWatch(number, self.examples, self.objectives, self.pruner, others, self.progress)
        out = home / "trials" / f"{queue.folder(number):04d}"
        try:
            run = evaluate(
                built,
                self.task,
                examples=self.examples,
                out=out,
                lm=self.lm,
                adapter=self.adapter,
                concurrency=self.concurrency,
                budget=budget,
                on_record=watch.on_record,
            )
        except BaseException:
            with suppress(TownhallError):
                queue.note(number, paid=_paid(load_run(out).usage))
            raise
        if run.summary.status == "stopped" and not watch.hopeless:
            queue.note(number, paid=_paid(run.usage))
            raise BudgetExceededError(run.summary.reason or "the budget is used up")
        mine = watch.result(run.usage, settings)
        others = self._others(queue, number)
        # A process of another machine may have chosen the same at the same moment.
        twin = next((other for other in others if other.settings == settings and other.state == "complete"), None)
        attrs: dict[str, Any] = {"pruned_after": mine.n} if watch.hopeless else {}
        if twin is not None:
            attrs = {"duplicate_of": twin.number}
        scores = {str(example): score for example, score in sorted(mine.scores.items())}
        self._finish(queue, mine, others, scores=scores, paid=_paid(run.usage), **attrs)
        if twin is not None:
            return "duplicate"
        whole = [result for result in (*others, mine) if result.state == "complete"]
        self.progress.finished(mine, max(whole, key=lambda result: result.score or 0.0, default=None))
        return "done"

    def _others(self, queue: TrialQueue, number: int) -> list[TrialResult]:
        return [trial for trial in read_trials(queue.study()) if trial.number != number]

    def _finish(
        self,
        queue: TrialQueue,
        result: TrialResult,
        others: Sequence[TrialResult],
        *,
        number: int | None = None,
        **attrs: Any,
    ) -> None:
        """Write down what a trial found; samplers are told what it would be over all examples."""
        whole = [other.scores for other in others if other.state == "complete"]
        values = self._values(paired_score(result.scores, whole), result.costs)
        queue.finish(result.number if number is None else number, values, costs=result.costs, **attrs)

    def _values(self, score: float, costs: Mapping[str, float | None]) -> list[float]:
        prices = [costs.get(name) for name in self.objectives[1:]]
        if None in prices:
            name = self.objectives[1:][prices.index(None)]
            raise InputError(f"the objective '{name}' is unknown for these models; use calls, tokens or seconds")
        return [score, *(float(price) for price in prices if price is not None)]


def _begun(name: str, storage: optuna.storages.BaseStorage) -> bool:
    """Return whether there is a study that has trials."""
    if name not in optuna.get_all_study_names(storage):
        return False
    return storage.get_n_trials(storage.get_study_id_from_name(name)) > 0


def _paid(usage: Usage) -> dict[str, Any]:
    return {"calls": usage.calls, "cached": usage.cached, "tokens": usage.tokens, "dollars": usage.cost}


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)


logging.getLogger("alembic").setLevel(logging.WARNING)
