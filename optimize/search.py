"""Searching the shape of a debate with Optuna: how many personas and rounds first, then everything that is a choice.

Every trial answers the same examples in the same shuffled order and is compared with the others example by example.
Trials overlap: rounds 1 and 2 of a three-round debate are those of the two-round one with the same personas, so that
their replies come from the cache.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import dspy
import optuna
from filelock import FileLock
from optuna.trial import TrialState

from ..errors import BudgetExceededError, InputError, MissingDependencyError
from ..evaluation.assembly import program as assemble
from ..evaluation.fingerprints import program_fingerprint
from ..evaluation.records import Record
from ..evaluation.run import Budget, evaluate
from ..programs.base import STRATEGIES, Strategy
from ..registry import nearest
from ..signatures.transcript import Usage
from ..tasks.base import Example, SplitName, Task
from .pruning import LOOK_EVERY, STARTUP, Finished, TrialPruner, optuna_pruner, paired_pruner
from .space import DEMOS, MODEL_PREFIX, Dimension, size, space_for, suggest
from .study import COSTS, StudyDescription, StudyResult, TrialResult, read_trials
from .trial_queue import TrialQueue, open_storage, without_password

SAMPLERS: tuple[str, ...] = ("tpe", "gp", "nsga2", "nsga3", "cmaes", "grid", "random")
#: A sampler that keeps proposing what was tried already is helped out of it after so many repetitions.
MOST_DUPLICATES = 3


def make_sampler(name: str, seed: int, trials: int) -> optuna.samplers.BaseSampler:
    """Return a sampler by name.

    Args:
        name: one of `SAMPLERS`.
        seed: two searches with the same seed make the same choices from the same results.
        trials: how many there will be; a third of them, five at least, are spread at random before the model is used.

    Raises:
        InputError: for an unknown name.
        MissingDependencyError: when the sampler's package is missing.
    """
    startup = max(5, trials // 3)
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, multivariate=True)
    if name == "gp":
        _need("torch", "the sampler 'gp' needs PyTorch: pip install torch")
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=startup)
    if name == "nsga2":
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=max(4, trials // 3))
    if name == "nsga3":
        return optuna.samplers.NSGAIIISampler(seed=seed, population_size=max(4, trials // 3))
    if name == "cmaes":
        _need("cmaes", "the sampler 'cmaes' needs its package: pip install \"townhall[search]\"")
        return optuna.samplers.CmaEsSampler(seed=seed, n_startup_trials=startup, with_margin=True)
    if name in ("random", "grid"):
        return optuna.samplers.RandomSampler(seed=seed)
    raise InputError(f"unknown sampler '{name}'.{nearest(name, list(SAMPLERS))} Known: {', '.join(SAMPLERS)}")


def _need(module: str, otherwise: str) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(otherwise)


class SearchProgress:
    """Watches a search; the base does nothing."""

    def start(self, total: int, points: int) -> None:
        """Run once, with the number of trials and the size of the search space."""

    def trial(self, number: int, settings: dict[str, Any]) -> None:
        """Run when a trial starts."""

    def example(self, number: int, answered: int, total: int, score: float) -> None:
        """Run when a trial has answered an example."""

    def finished(self, result: TrialResult, best: TrialResult | None) -> None:
        """Run when a trial has ended."""


def tune(
    task: Task,
    strategy: str | Strategy,
    *,
    trials: int = 30,
    objectives: Sequence[str] = ("score",),
    sampler: str = "tpe",
    pruner: str = "wilcoxon",
    split: SplitName = "dev",
    limit: int | None = None,
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
        sampler: see `SAMPLERS`; "grid" tries every point in a random order.
        pruner: "wilcoxon", "halving" or "none", see `pruning`.
        split: "dev" or "train"; tuning never reads test.
        limit: at most so many examples.
        fixed, search, demos, role_lms, **ranges: the search space, see `space.space_for`.
        lms, judge_lm, lm, adapter: models of the agents, the judge, all others; and the adapter.
        name: of the study; the default names task and strategy.
        folder: where studies are kept; "studies" by default.
        storage: see `trial_queue.open_storage`.
        worker: only help with the trials that another process has put into the storage.
        concurrency, budget: as in `evaluate`; the budget is for this call of `tune`.
        seed: of the sampler and of the order of the examples.
        progress: is told how it goes.

    Returns:
        The study with all trials; `.best` is the program of the best one.

    Raises:
        InputError: for bad settings, a study of another task or strategy under the same name, or the test split.
    """
    if split == "test":
        raise InputError("tuning never reads the test split; use --split dev or train")
    if trials < 1:
        raise InputError(f"trials is {trials}; it must be at least 1")
    search_ = _Search(
        task=task,
        base=strategy,
        space=space_for(
            STRATEGIES.get(strategy) if isinstance(strategy, str) else type(strategy),
            ranges=ranges,
            fixed=fixed,
            search=search,
            demos=demos,
            role_models={role: [model.model for model in models] for role, models in (role_lms or {}).items()},
        ),
        fixed=dict(fixed or {}),
        objectives=_checked(objectives),
        examples=task.split(split, limit=limit, order="shuffled", seed=seed),
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
    name = name or f"{task.name}-{search_.strategy.name}"
    home = Path(folder or "studies") / name
    home.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    opened = open_storage(storage, home)
    return search_.run(name, home, opened, without_password(storage), worker)


def _checked(objectives: Sequence[str]) -> list[str]:
    unknown = [name for name in objectives if name not in ("score", *COSTS)]
    if unknown:
        raise InputError(f"unknown objective '{unknown[0]}'. Known: score, {', '.join(COSTS)}")
    return ["score", *(name for name in dict.fromkeys(objectives) if name != "score")]


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
    used: Usage = field(default_factory=Usage)

    @property
    def strategy(self) -> type[Strategy]:
        return STRATEGIES.get(self.base) if isinstance(self.base, str) else type(self.base)

    def build(self, settings: dict[str, Any]) -> Strategy:
        """Return the program of a configuration."""
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

    def describe(self) -> StudyDescription:
        """Return what this search is about, without making any call."""
        order = hashlib.sha256("".join(example.fingerprint for example in self.examples).encode()).hexdigest()
        settled = (self.lm or dspy.settings.lm) if not self.lms else None
        return StudyDescription(
            task=self.task.name,
            task_version=self.task.version,
            task_fingerprint=self.task.fingerprint,
            split=self.split,
            examples=order,
            n=len(self.examples),
            strategy=self.strategy.name,
            program=program_fingerprint(self.build({})),
            space=[str(dimension) for dimension in self.space.values()],
            fixed=json.loads(json.dumps(self.fixed, default=str)),
            objectives=self.objectives,
            models=[model.model for model in self.lms] or ([settled.model] if settled is not None else []),
            judge=self.judge_lm.model if self.judge_lm is not None else None,
        )

    # -- the search ----------------------------------------------------------------------------------------------

    def run(self, name: str, home: Path, storage: optuna.storages.BaseStorage, where: str, worker: bool) -> StudyResult:
        """Work through the queue until nothing is left to do."""
        description = self.describe()
        directions = ["maximize"] + ["minimize"] * (len(self.objectives) - 1)
        # Two processes that start a study at the same moment: one creates it, the other finds it.
        with FileLock(str(home / ".lock")):
            study = optuna.create_study(study_name=name, storage=storage, directions=directions, load_if_exists=True)
            stored = study.user_attrs.get("townhall")
            if stored is None:
                if study.get_trials(deepcopy=False):
                    raise InputError(f"study '{name}' in {where} was not made by townhall; use another --name")
                study.set_user_attr("townhall", description.model_dump())
            else:
                description.check_same(StudyDescription.model_validate(stored), name)
            (home / "study.json").write_text(
                json.dumps({"name": name, "storage": where, **description.model_dump()}, indent=2) + "\n"
            )
            queue = TrialQueue(name, storage, lambda: self._load(name, storage))
            queue.put_back_dead()
            if not worker:
                self._fill(queue)
        self.progress.start(self.trials, size(self.space))
        stopped = self._work(queue, home)
        return StudyResult(name, home, where, description, read_trials(queue.study()), self.build, stopped, self.used)

    def _load(self, name: str, storage: optuna.storages.BaseStorage) -> optuna.Study:
        # A sampler per trial, seeded by how far the study is: a resumed search chooses as an unbroken one does.
        study = optuna.load_study(study_name=name, storage=storage)
        done = len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.sampler = make_sampler(self.sampler, self.seed * 100_003 + done, self.trials)
            if len(self.objectives) == 1:
                study.pruner = optuna_pruner(self.pruner, len(self.examples))
        return study

    def _fill(self, queue: TrialQueue) -> None:
        if self.sampler == "grid":
            points = self._points()
            queue.fill(min(self.trials, len(points)), points)
            return
        defaults = {key: dimension.default for key, dimension in self.space.items()}
        inside = all(value in self.space[key].values() for key, value in defaults.items())
        # The strategy as it comes is tried first: what the search finds must beat it.
        queue.fill(self.trials, [defaults] if inside else [])

    def _points(self) -> list[dict[str, Any]]:
        import itertools
        import random

        names = list(self.space)
        grid = [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(self.space[name].values() for name in names))
        ]
        random.Random(self.seed).shuffle(grid)
        return grid

    def _work(self, queue: TrialQueue, home: Path) -> str | None:
        repeated = 0
        while True:
            trial = queue.claim()
            if trial is None:
                if queue.running() and not queue.put_back_dead():
                    time.sleep(0.5)  # another process works on the last trials; one of them may come back
                    continue
                if not queue.waiting():
                    return None
                continue
            try:
                with queue.heartbeat(trial):
                    duplicate = self._run_trial(queue, trial, home)
            except BudgetExceededError as error:
                queue.put_back(trial, "budget")
                return str(error)
            except BaseException as error:
                queue.put_back(trial, type(error).__name__)
                raise
            if not duplicate:
                repeated = 0
                continue
            repeated += 1
            untried = self._untried(queue)
            if not untried:
                return "every point of the search space was tried"
            # The sampler's wish was known already and cost nothing: it may wish again, but not for ever.
            queue.add(untried[0] if repeated >= MOST_DUPLICATES else {})

    def _untried(self, queue: TrialQueue) -> list[dict[str, Any]]:
        if size(self.space) > 10_000:
            return [{}]
        tried = {_key(trial.params) for trial in queue.study().get_trials(deepcopy=False) if trial.params}
        return [point for point in self._points() if _key(point) not in tried]

    def _run_trial(self, queue: TrialQueue, trial: optuna.Trial, home: Path) -> bool:
        """Run a claimed trial to its end; returns whether it only repeated one."""
        settings = suggest(trial, self.space)
        trial.set_user_attr("settings", settings)
        self.progress.trial(trial.number, settings)
        others = [other for other in read_trials(queue.study()) if other.number != trial.number]
        same = next((o for o in others if o.settings == settings and o.state in ("complete", "pruned")), None)
        if same is not None:
            trial.set_user_attr("duplicate_of", same.number)
            trial.set_user_attr("costs", same.costs)
            queue.study().tell(trial.number, values=self._values(same.score or 0.0, same.costs))
            return True
        watch = _Watch(self, trial, others)
        run = evaluate(
            self.build(settings),
            self.task,
            examples=self.examples,
            split=self.split,
            out=home / "trials" / f"{trial.number:04d}",
            lm=self.lm,
            adapter=self.adapter,
            concurrency=self.concurrency,
            budget=self.budget.minus(self.used),
            on_record=watch.on_record,
        )
        self.used = self.used + run.usage
        if run.summary.status == "stopped" and not watch.hopeless:
            raise BudgetExceededError(run.summary.reason or "the budget is used up")
        watch.store(run.usage)
        if watch.hopeless:
            trial.set_user_attr("pruned_after", len(watch.scores))
        queue.study().tell(trial.number, values=self._values(watch.mean, watch.costs()))
        results = read_trials(queue.study())
        mine = next(result for result in results if result.number == trial.number)
        whole = [result for result in results if result.state == "complete"]
        self.progress.finished(mine, max(whole, key=lambda result: result.score or 0.0, default=None))
        return False

    def _values(self, score: float, costs: Mapping[str, float | None]) -> list[float]:
        prices = [costs.get(name) for name in self.objectives[1:]]
        if None in prices:
            name = self.objectives[1:][prices.index(None)]
            raise InputError(f"the objective '{name}' is unknown for these models; use calls, tokens or seconds")
        return [score, *(float(price) for price in prices if price is not None)]


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)


class _Watch:
    """Follows one trial's records and decides whether it goes on."""

    def __init__(self, search: _Search, trial: optuna.Trial, others: Sequence[TrialResult]) -> None:
        self.search = search
        self.trial = trial
        self.scores: dict[int, float] = {}
        self.usage = Usage()
        self.hopeless = False
        self._number = {example.fingerprint: index for index, example in enumerate(search.examples)}
        self._paired: TrialPruner | None = None
        costs = search.objectives[1:]
        if costs:
            self._paired = paired_pruner(search.pruner, len(search.examples))
        self._finished = [
            Finished(other.scores, tuple(other.costs.get(name) or 0.0 for name in costs))
            for other in others
            if other.state == "complete"
        ]

    @property
    def mean(self) -> float:
        return sum(self.scores.values()) / len(self.scores) if self.scores else 0.0

    def costs(self) -> dict[str, float | None]:
        usage, n = self.usage.uncached(), max(1, len(self.scores))
        return {
            "calls": usage.calls / n,
            "tokens": usage.tokens / n,
            "cost": None if usage.cost is None else usage.cost / n,
            "seconds": usage.seconds / n,
        }

    def on_record(self, record: Record) -> bool:
        """Take one record; returns whether the run goes on."""
        number = self._number[record.fingerprint]
        if number in self.scores:
            return not self.hopeless
        self.scores[number] = record.score
        self.usage = self.usage + record.usage
        self.search.progress.example(self.trial.number, len(self.scores), len(self.search.examples), self.mean)
        if self.hopeless:
            return False
        look = len(self.scores) >= STARTUP and len(self.scores) % LOOK_EVERY == 0
        if self._paired is not None and look:
            costs = [self.costs().get(name) or 0.0 for name in self.search.objectives[1:]]
            self.hopeless = self._paired.hopeless(self.scores, costs, self._finished)
        elif self._paired is None:
            # Wilcoxon pairs examples by number; halving wants the running mean after so many examples.
            by_example = self.search.pruner == "wilcoxon"
            self.trial.report(record.score if by_example else self.mean, number if by_example else len(self.scores))
            self.hopeless = (look or not by_example) and self.trial.should_prune()
        # All examples answered: nothing is saved by calling it pruned.
        self.hopeless = self.hopeless and len(self.scores) < len(self.search.examples)
        return not self.hopeless

    def store(self, paid: Usage) -> None:
        """Write what was found into the trial."""
        self.trial.set_user_attr("scores", {str(number): score for number, score in sorted(self.scores.items())})
        self.trial.set_user_attr("costs", self.costs())
        self.trial.set_user_attr("calls", paid.calls)
        self.trial.set_user_attr("cached", paid.cached)


logging.getLogger("alembic").setLevel(logging.WARNING)
