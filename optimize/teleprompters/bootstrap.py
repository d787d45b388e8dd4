"""Bootstrapped demonstrations: debates that came out right show each role what to do.

DSPy's `BootstrapFewShot`, and its searches over sets of such demonstrations. What differs from DSPy, and why:

- Of several calls of a role in one debate DSPy draws one, by a hash that depends on the process. Here only calls whose
  own answer was right are drawn from (in a debate that was won, some agent may have argued for the wrong answer), by
  the seed.
- DSPy fills up with training examples cut down to a question and an answer; roles with more fields than these get their
  worked demonstrations instead, and keep them where no debate gave them any.
- A search over sets of demonstrations also considers the program as it came.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dspy
from pydantic import Field

from ...errors import RunError
from ...programs.base import Strategy
from ..freezing import roles_of
from .base import NO_LIMIT, TELEPROMPTERS, Sizes, Teleprompter, Work, merged, use_demos

Trace = Sequence[tuple[Any, dict[str, Any], Any]]


class BootstrapSizes(Sizes):
    """Sizes of `bootstrap`; see also `Sizes`.

    Attributes:
        demos: most bootstrapped demonstrations of each role.
        worked: roles with fewer demonstrations than this are filled up with those they came with.
        rounds: attempts for each training example; each after the first draws other samples at temperature 1.
    """

    demos: int = Field(default=2, ge=1, le=16)
    worked: int = Field(default=1, ge=0, le=16)
    rounds: int = Field(default=1, ge=1, le=10)


class RoleBootstrap(dspy.BootstrapFewShot):
    """`dspy.BootstrapFewShot` with the differences that the module names.

    Args:
        work: the compilation.
        demos: most bootstrapped demonstrations of each role.
        worked: see `BootstrapSizes`.
        rounds: see `BootstrapSizes`.
        seed: of the choice among a role's calls.
    """

    def __init__(self, work: Work, *, demos: int, worked: int, rounds: int = 1, seed: int = 0) -> None:
        super().__init__(
            metric=work.metric,
            metric_threshold=work.threshold,
            max_bootstrapped_demos=demos,
            max_labeled_demos=0,
            max_rounds=rounds,
            max_errors=NO_LIMIT,
        )
        self.work = work
        self.worked_demos = worked
        self.seed = seed

    def _bootstrap(self, *, max_bootstraps: int | None = None) -> None:
        most = max_bootstraps or self.max_bootstrapped_demos
        self.name2traces: dict[str, list[dspy.Example]] = {name: [] for name in self.name2predictor}
        self.validation: list[dspy.Example] = []
        found = 0
        for example in self.trainset:
            if found >= most or self.work.spending.stopped:
                break
            found += any(self._bootstrap_one_example(example, attempt) for attempt in range(self.max_rounds))

    def _bootstrap_one_example(self, example: dspy.Example, round_idx: int = 0) -> bool:
        predictors = self.teacher.named_predictors()
        kept = {name: predictor.demos for name, predictor in predictors}
        try:
            with dspy.context(trace=[]):
                lm = dspy.settings.lm
                # Other samples, past the cache. Agents with models of their own heed this copy's rollout id too.
                with dspy.context(**({"lm": lm.copy(rollout_id=round_idx, temperature=1.0)} if round_idx else {})):
                    for name, predictor in predictors:
                        # A teacher must not be shown the answer to the question it is asked.
                        predictor.demos = [demo for demo in kept[name] if demo.get("question") != example.question]
                    prediction = self.teacher(**example.inputs())
                trace = list(dspy.settings.trace)
            good = self.metric(example, prediction, trace) >= self.metric_threshold
        except Exception:
            return False  # written down by the watch; the next example may fare better
        finally:
            for name, predictor in predictors:
                predictor.demos = kept[name]
        if good:
            for name, demo in self._choose(example, prediction, trace).items():
                self.name2traces[name].append(demo)
        return bool(good)

    def _choose(self, example: dspy.Example, prediction: dspy.Prediction, trace: Trace) -> dict[str, dspy.Example]:
        """Return one demonstration a role, from its calls in a debate that was won."""
        calls: dict[str, list[dspy.Example]] = {}
        for predictor, inputs, outputs in trace:
            name = self.predictor2name.get(id(predictor))
            if name is not None and admits(self.work, name, outputs, example, prediction):
                calls.setdefault(name, []).append(dspy.Example(augmented=True, **inputs, **dict(outputs)))
        return {
            name: random.Random(f"{self.seed}/{name}/{example.question}").choice(found) for name, found in calls.items()
        }

    def _train(self) -> Strategy:
        for name, predictor in self.student.named_predictors():
            found = self.name2traces[name][: self.max_bootstrapped_demos]
            predictor.demos = merged(found, self.work.worked.get(name, []), self.worked_demos)
        return self.student


def admits(
    work: Work, role: str, outputs: Mapping[str, Any], example: dspy.Example, prediction: dspy.Prediction
) -> bool:
    """Return whether one call of a role in a won debate is worth showing: its own answer or vote was right."""
    if role.rpartition(".")[2] == "vote" and "choice" in outputs:
        candidates = {candidate.number: candidate.answer for candidate in prediction.decision.candidates}
        return work.right(candidates.get(outputs["choice"]), example)
    return "answer" not in outputs or work.right(outputs["answer"], example)


def bootstrapped(
    work: Work, *, demos: int, worked: int, rounds: int = 1, shuffle: int | None = None
) -> dict[str, list[Any]]:
    """Return demonstrations by role from one pass over the training examples.

    Args:
        work: the compilation.
        demos: most bootstrapped demonstrations of each role.
        worked: see `BootstrapSizes`.
        rounds: see `BootstrapSizes`.
        shuffle: seed of the examples' order; None for their own order.
    """
    examples = list(work.train)
    if shuffle is not None:
        random.Random(f"{work.seed}/{shuffle}").shuffle(examples)
    seed = work.seed if shuffle is None else work.seed * 1000 + shuffle + 1
    teleprompter = RoleBootstrap(work, demos=demos, worked=worked, rounds=rounds, seed=seed)
    compiled = teleprompter.compile(fresh(work.program), teacher=fresh(work.teacher), trainset=examples)
    return {name: list(predictor.demos) for name, predictor in roles_of(compiled).items()}


def fresh(program: Strategy) -> Strategy:
    """Return a copy that teleprompters take for uncompiled: one that was compiled before may be compiled again."""
    copied = program.deepcopy()
    copied._compiled = False
    return copied


@TELEPROMPTERS.register("bootstrap")
class Bootstrap(Teleprompter):
    """`dspy.BootstrapFewShot`: the first training debates that come out right become demonstrations."""

    name: ClassVar[str] = "bootstrap"
    summary: ClassVar[str] = "bootstrap few-shot: debates that came out right become each role's demonstrations"
    Sizes: ClassVar[type[Sizes]] = BootstrapSizes

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(train * sizes.rounds)

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        demos = bootstrapped(work, demos=sizes.demos, worked=sizes.worked, rounds=sizes.rounds)
        note_empty(work, demos)
        return use_demos(work.program, demos)


class RandomSearchSizes(BootstrapSizes):
    """Sizes of `bootstrap-random-search`; see also `BootstrapSizes`.

    Attributes:
        candidates: how many sets of demonstrations are tried, besides none, those of the program as it came and those
            of the training examples in order.
    """

    candidates: int = Field(default=3, ge=0, le=64)


@TELEPROMPTERS.register("bootstrap-random-search")
class RandomSearch(Teleprompter):
    """`dspy.BootstrapFewShotWithRandomSearch`: the best of several bootstrapped sets on the dev examples."""

    name: ClassVar[str] = "bootstrap-random-search"
    summary: ClassVar[str] = "several sets of bootstrapped demonstrations, the best on the dev examples"
    Sizes: ClassVar[type[Sizes]] = RandomSearchSizes
    needs_dev: ClassVar[bool] = True

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(train * sizes.rounds * (sizes.candidates + 1) + dev * (sizes.candidates + 3))

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        sizes = work.sizes
        as_it_came = {name: list(predictor.demos) for name, predictor in roles_of(work.program).items()}
        best, best_score = as_it_came, -1.0
        for number in range(-3, sizes.candidates):
            if work.spending.stopped:
                break
            if number == -3:
                demos = as_it_came
            elif number == -2:
                demos = {name: [] for name in as_it_came}
            elif number == -1:
                demos = bootstrapped(work, demos=sizes.demos, worked=sizes.worked, rounds=sizes.rounds)
                note_empty(work, demos)
            else:
                size = random.Random(f"{work.seed}/size/{number}").randint(1, sizes.demos)
                demos = bootstrapped(work, demos=size, worked=sizes.worked, rounds=sizes.rounds, shuffle=number)
            if number > -3 and demos == as_it_came:
                continue
            score = work.evaluate(use_demos(fresh(work.program), demos))
            if score > best_score and not work.spending.stopped:
                best, best_score = demos, score
        return use_demos(work.program, best)


class OptunaSizes(BootstrapSizes):
    """Sizes of `bootstrap-optuna`; see also `BootstrapSizes`.

    Attributes:
        pool: how many demonstrations of each role are bootstrapped to choose from.
        trials: how many choices are tried, the program as it came not counted.
    """

    pool: int = Field(default=4, ge=1, le=32)
    trials: int = Field(default=6, ge=1, le=256)


@TELEPROMPTERS.register("bootstrap-optuna")
class OptunaChoice(Teleprompter):
    """`dspy.BootstrapFewShotWithOptuna`: Optuna chooses which demonstration each role shows.

    As in DSPy each role shows one; a role for which none was bootstrapped keeps its worked ones (DSPy fails there).
    """

    name: ClassVar[str] = "bootstrap-optuna"
    summary: ClassVar[str] = "Optuna chooses each role's demonstration from a bootstrapped pool, on the dev examples"
    Sizes: ClassVar[type[Sizes]] = OptunaSizes
    needs_dev: ClassVar[bool] = True

    def most_debates(self, sizes: Any, *, roles: int, train: int, dev: int) -> int:
        """See `Teleprompter.most_debates`."""
        return int(train * sizes.rounds + dev * (sizes.trials + 1))

    def run(self, work: Work) -> Strategy:
        """See `Teleprompter.run`."""
        import optuna

        sizes = work.sizes
        pool = bootstrapped(work, demos=sizes.pool, worked=0, rounds=sizes.rounds)
        note_empty(work, pool)
        as_it_came = {name: list(predictor.demos) for name, predictor in roles_of(work.program).items()}
        best, best_score = as_it_came, work.evaluate(fresh(work.program))

        def objective(trial: optuna.Trial) -> float:
            nonlocal best, best_score
            demos = {
                name: [found[trial.suggest_int(name, 0, len(found) - 1)]] if found else as_it_came[name]
                for name, found in pool.items()
            }
            score = work.evaluate(use_demos(fresh(work.program), demos))
            if work.spending.stopped:
                trial.study.stop()
            elif score > best_score:
                best, best_score = demos, score
            return score

        if any(pool.values()) and not work.spending.stopped:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
            study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=work.seed))
            study.optimize(objective, n_trials=sizes.trials)
        return use_demos(work.program, best)


def note_empty(work: Work, demos: Mapping[str, Sequence[Any]]) -> None:
    """Write down which roles no debate gave a demonstration.

    Raises:
        RunError: when no role got any although debates were held: the model solves none of the examples.
    """
    made = {name: sum(bool(demo.get("augmented")) for demo in found) for name, found in demos.items()}
    empty = [name for name, count in made.items() if not count]
    if len(empty) == len(made) and not work.spending.stopped:
        if failures := work.spending.failures:
            raise RunError(f"{len(failures)} debates failed and none was won; the first: {failures[0].error}")
        raise RunError(
            f"none of the {len(work.train)} training debates reached a score of {work.sizes.threshold:g}, so there is "
            "nothing to demonstrate: give more examples (--size train=...), a stronger teacher (--teacher-lm) or a "
            "lower --size threshold=..."
        )
    if empty:
        work.notes.append(f"no bootstrapped demonstration for {', '.join(empty)}")
