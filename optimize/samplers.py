"""What is tried next: Optuna's samplers by name, and one of our own for small, noisy, costly searches."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from ..errors import InputError, MissingDependencyError
from ..registry import nearest
from .space import COUNTS, Dimension, size
from .study import TrialResult, paired_score, read_trials, sampling_variance
from .surrogate import Encoder, Surrogate, fit

SAMPLERS: tuple[str, ...] = ("gp", "tpe", "nsga2", "nsga3", "cmaes", "grid", "random")
#: Up to so many points are all weighed; of a larger space, a random sample of half as many and neighbours of the best.
MOST_CANDIDATES = 4096
#: The first points are the farthest from all before them, out of so many drawn at random: of all points, the farthest
#: ones are corners, and the more dimensions there are, the less corners say of what lies between them.
DRAWN = 32
#: How much being cheap counts: the expected improvement is divided by the cost to this power.
THRIFT = 0.5
#: Share of its cost that a trial is taken to have at least, however much of it is in the cache.
LEAST_SHARE = 0.15


def make_sampler(
    name: str, seed: int, trials: int, space: Mapping[str, Dimension], objectives: Sequence[str]
) -> optuna.samplers.BaseSampler:
    """Return a sampler by name.

    Args:
        name: one of `SAMPLERS`.
        seed: two searches with the same seed make the same choices from the same results.
        trials: how many there will be; TPE and CMA-ES spread a third of them, five at least, at random first.
        space: what is searched.
        objectives: "score", and the costs that are minimised with it.

    Raises:
        InputError: for an unknown name, or one that does not fit the search.
        MissingDependencyError: when the sampler's package is missing.
    """
    if name == "gp":
        return SurrogateSampler(space, objectives, seed)
    if name not in SAMPLERS:
        raise InputError(f"unknown sampler '{name}'.{nearest(name, list(SAMPLERS))} Known: {', '.join(SAMPLERS)}")
    with warnings.catch_warnings():
        # What they call experimental is their interface.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return _optuna_sampler(name, seed, trials, space, objectives)


def _optuna_sampler(
    name: str, seed: int, trials: int, space: Mapping[str, Dimension], objectives: Sequence[str]
) -> optuna.samplers.BaseSampler:
    startup, population = max(5, trials // 3), max(4, trials // 3)
    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, multivariate=True, constant_liar=True)
    if name == "nsga2":
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=population)
    if name == "nsga3":
        return optuna.samplers.NSGAIIISampler(seed=seed, population_size=population)
    if name == "cmaes":
        return _cmaes(seed, startup, space, objectives)
    return optuna.samplers.RandomSampler(seed=seed)


def _cmaes(
    seed: int, startup: int, space: Mapping[str, Dimension], objectives: Sequence[str]
) -> optuna.samplers.BaseSampler:
    import importlib.util

    if len(objectives) > 1:
        raise InputError("the sampler 'cmaes' knows one objective; use gp, tpe, nsga2 or nsga3 for a Pareto front")
    numbers = [name for name, dimension in space.items() if dimension.kind != "choice"]
    if len(numbers) < 2 or len(numbers) < len(space):
        raise InputError("the sampler 'cmaes' searches numbers only, two of them at least; use gp or tpe")
    if importlib.util.find_spec("cmaes") is None:
        raise MissingDependencyError("the sampler 'cmaes' needs its package: pip install \"townhall[search]\"")
    return optuna.samplers.CmaEsSampler(seed=seed, n_startup_trials=startup, with_margin=True)


class SurrogateSampler(optuna.samplers.BaseSampler):
    """Bayesian optimisation on a `surrogate`: the trial whose expected improvement is greatest for its cost.

    It begins with the strategy's defaults and points spread over the space, dear ones more thinly. Every trial counts
    by the examples it answered, stopped ones too; what other workers are trying is taken to come out as expected.
    Replies in the cache make a trial cheap: fewer rounds of a shape that was tried cost almost nothing. With costs
    among the objectives, what counts is the improvement on those that are no dearer, so that the whole Pareto front is
    pushed outwards.

    Args:
        space: what is searched.
        objectives: "score" first, then costs.
        seed: of all that is drawn.
    """

    def __init__(self, space: Mapping[str, Dimension], objectives: Sequence[str], seed: int) -> None:
        self.space = dict(space)
        self.objectives = list(objectives)
        self.startup = max(5, len(self.space) + 3)
        self._random = np.random.default_rng(seed)
        self._fallback = optuna.samplers.RandomSampler(seed=seed)
        self._encode = Encoder(space)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the dimensions, which are chosen together."""
        return {name: dimension.distribution() for name, dimension in self.space.items()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the settings to try."""
        if set(self.space) <= set(trial.system_attrs.get("fixed_params", {})):
            return {}
        others = [other for other in read_trials(study) if other.number != trial.number]
        return self.propose(others)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a value at random, for a dimension that is not of the space."""
        return self._fallback.sample_independent(study, trial, param_name, param_distribution)

    def propose(self, trials: Sequence[TrialResult]) -> dict[str, Any]:
        """Return the settings to try after these trials."""
        done = [trial for trial in trials if trial.state in ("complete", "pruned") and trial.n]
        pending = [trial for trial in trials if trial.state == "running" and set(self.space) <= set(trial.settings)]
        refused = [trial for trial in trials if trial.state == "failed" and trial.invalid]
        tried = [trial.settings for trial in (*done, *pending, *refused)]
        keys = {_key(settings) for settings in tried}
        candidates = [point for point in self._candidates(done) if _key(point) not in keys]
        if not candidates:
            return tried[-1]
        points = self._encode(candidates)
        if len(done) + len(pending) < self.startup or not done:
            return candidates[self._farthest(points, tried, self._rough_costs(candidates))]
        model = self._model(done, pending)
        mean, deviation = model.predict(points)
        gain = _log_improvement(mean, deviation, self._to_beat(model, done, pending, points))
        prices = self._uncached(self._expected_costs("calls", done, points), candidates, done)
        return candidates[int(np.argmax(gain - THRIFT * np.log(prices)))]

    def _farthest(self, points: NDArray[Any], tried: Sequence[Mapping[str, Any]], prices: NDArray[Any]) -> int:
        """Return the point that is farthest from all before it for its price: the greatest squared distance a call."""
        drawn = self._random.choice(len(points), size=min(DRAWN, len(points)), replace=False)
        if not tried:
            return int(drawn[0])
        gaps = points[drawn][:, None, :] - self._encode(tried)[None, :, :]
        return int(drawn[np.argmax((gaps**2).sum(-1).min(1) / prices[drawn])])

    def _rough_costs(self, candidates: Sequence[Mapping[str, Any]]) -> NDArray[Any]:
        """Return what a question costs at each point, roughly: calls grow with how many speak and how often."""
        counts = [name for name in COUNTS if name in self.space]
        return np.array([math.prod(float(point[name]) for name in counts) for point in candidates])

    def _model(self, done: Sequence[TrialResult], pending: Sequence[TrialResult]) -> Surrogate:
        """Return the model of the score."""
        whole = [trial.scores for trial in done if trial.state == "complete"]
        values = [paired_score(trial.scores, whole) for trial in done]
        variance = sampling_variance([trial.scores for trial in done])
        points = self._encode([trial.settings for trial in done])
        model = fit(points, self._encode.groups, values, [variance / trial.n for trial in done])
        return model.with_pending(self._encode([trial.settings for trial in pending]))

    def _to_beat(
        self, model: Surrogate, done: Sequence[TrialResult], pending: Sequence[TrialResult], points: NDArray[Any]
    ) -> NDArray[Any]:
        """Return the score that each point has to beat: the best one of what is no dearer than it will be."""
        expected, _ = model.predict(model.points)
        allowed = np.ones((len(points), len(expected)), dtype=bool)
        for name in self.objectives[1:]:
            costs = self._expected_costs(name, done, np.vstack([points, model.points]))
            allowed &= costs[len(points) :][None, :] <= costs[: len(points), None] * (1 + 1e-6)
        return np.where(allowed, expected[None, :], float(expected.min())).max(1)

    def _expected_costs(self, name: str, done: Sequence[TrialResult], points: NDArray[Any]) -> NDArray[Any]:
        """Return what a question costs at each point as if nothing was cached; ones where that is not known."""
        known = np.array([trial.costs.get(name) or 0.0 for trial in done])
        if not (known > 0).all():
            return np.ones(len(points))
        # Calls are products of counts, so that their logarithm is smooth; and they are known almost exactly.
        tried = self._encode([trial.settings for trial in done])
        expected, _ = fit(tried, self._encode.groups, list(np.log(known)), [1e-4] * len(known)).predict(points)
        return np.exp(np.minimum(expected, math.log(float(known.max())) + 1.0))

    def _uncached(
        self, costs: NDArray[Any], candidates: Sequence[Mapping[str, Any]], done: Sequence[TrialResult]
    ) -> NDArray[Any]:
        """Return the part of each point's cost that is not in the cache already."""
        costs = costs.copy()
        if "rounds" not in self.space or not done:
            return costs
        total = max(trial.n for trial in done)
        held: dict[str, dict[float, float]] = {}
        for trial in done:
            held.setdefault(_shape(trial.settings), {})[trial.settings["rounds"]] = trial.n / total
        for index, point in enumerate(candidates):
            tried = held.get(_shape(point), {})
            known = max((min(rounds / point["rounds"], 1.0) * share for rounds, share in tried.items()), default=0.0)
            costs[index] *= max(1.0 - known, LEAST_SHARE)
        return costs

    def _candidates(self, done: Sequence[TrialResult]) -> list[dict[str, Any]]:
        if size(self.space) <= MOST_CANDIDATES:
            return all_points(self.space)
        found = [random_point(self.space, int(self._random.integers(2**31))) for _ in range(MOST_CANDIDATES // 2)]
        for trial in sorted(done, key=lambda trial: -(trial.score or 0.0))[:5]:
            for name, dimension in self.space.items():
                found += [{**trial.settings, name: value} for value in dimension.values()]
        return list({_key(point): point for point in found}.values())


def random_point(space: Mapping[str, Dimension], seed: int) -> dict[str, Any]:
    """Return one point of a space."""
    drawn = random.Random(seed)
    return {name: drawn.choice(dimension.values()) for name, dimension in space.items()}


def all_points(space: Mapping[str, Dimension], seed: int | None = None) -> list[dict[str, Any]]:
    """Return every point of a space, shuffled where a seed is given."""
    names = list(space)
    found = [
        dict(zip(names, values, strict=True))
        for values in itertools.product(*(dimension.values() for dimension in space.values()))
    ]
    if seed is not None:
        random.Random(seed).shuffle(found)
    return found


def _log_improvement(mean: NDArray[Any], deviation: NDArray[Any], best: NDArray[Any]) -> NDArray[Any]:
    """Return the logarithm of the expected improvement over `best`."""
    from scipy.special import ndtr

    z = (mean - best) / deviation
    improvement = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) + z * ndtr(z)
    return np.log(np.maximum(improvement, 1e-300)) + np.log(deviation)


def _key(settings: Mapping[str, Any]) -> str:
    return repr(sorted(settings.items()))


def _shape(settings: Mapping[str, Any]) -> str:
    return _key({name: value for name, value in settings.items() if name != "rounds"})
