"""Stopping a trial early, as soon as what was seen says that it will not win.

Trials answer the same examples in the same order, so that a trial is compared with others example by example.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import InputError

#: A trial stops when the paired test against the best one is below this after at least so many examples. The test is
#: made after every third example: each look is one more chance of stopping a trial by accident.
P_THRESHOLD = 0.1
STARTUP = 6
LOOK_EVERY = 3
PRUNERS: tuple[str, ...] = ("wilcoxon", "halving", "none")
#: The test is exact up to so many examples that differ, and by the normal distribution beyond.
MOST_EXACT = 60


@dataclass(frozen=True)
class Rival:
    """A finished trial, as pruning sees it: its scores by example number, and its mean cost in each cost objective."""

    scores: Mapping[int, float]
    costs: tuple[float, ...] = ()

    def cheaper_than(self, costs: Sequence[float]) -> bool:
        """Return whether this trial is no dearer in any cost objective."""
        return all(theirs <= ours for theirs, ours in zip(self.costs, costs, strict=True))


class TrialPruner(ABC):
    """Decides after each example whether a trial goes on.

    Only a trial that is no dearer in any cost objective counts as a rival, so that a Pareto front keeps its cheap end.
    Optuna's own pruners know one objective only, and `WilcoxonPruner` takes a third of a second a look where scores
    are tied (SciPy then enumerates permutations).
    """

    @abstractmethod
    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Rival]) -> bool:
        """Return whether the trial should stop.

        Args:
            scores: this trial's score by example number so far.
            costs: its mean costs so far, in the order of the study's cost objectives.
            finished: the trials that answered all examples.
        """


class NeverPrune(TrialPruner):
    """Every trial answers every example."""

    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Rival]) -> bool:
        """Return False."""
        return False


class WilcoxonPruner(TrialPruner):
    """Stops a trial that is worse than the best one by a paired test on the examples both have answered.

    The test and its use are those of Optuna's `WilcoxonPruner`: one-sided signed ranks, zeros split, and a trial is
    never stopped while its mean is at least the best one's.

    Args:
        p_threshold: of the test.
        startup: no trial stops before so many examples.
        every: the test is made after every so many examples.
    """

    def __init__(self, p_threshold: float = P_THRESHOLD, startup: int = STARTUP, every: int = LOOK_EVERY) -> None:
        self.p_threshold = p_threshold
        self.startup = startup
        self.every = every

    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Rival]) -> bool:
        """See the class."""
        if len(scores) < self.startup or len(scores) % self.every:
            return False
        rivals = [rival for rival in finished if rival.cheaper_than(costs)]
        if not rivals:
            return False
        best = max(rivals, key=lambda rival: _mean(rival.scores))
        if _mean(scores) >= _mean(best.scores):
            return False
        differences = [scores[number] - best.scores[number] for number in scores if number in best.scores]
        return len(differences) >= self.startup and signed_rank_p(differences) < self.p_threshold


def _mean(scores: Mapping[int, float]) -> float:
    return sum(scores.values()) / len(scores)


def signed_rank_p(differences: Sequence[float]) -> float:
    """Return the p-value of Wilcoxon's signed-rank test against "the differences are not below zero".

    Zeros keep their ranks and stay out of the sum (J. W. Pratt, JASA 54, 1959). The distribution is that of all ways to
    sign the ranks that are there, ties included: exact for up to `MOST_EXACT` differences that are not zero.
    """
    import numpy as np
    from scipy.stats import norm, rankdata

    values = np.round(np.asarray(differences, dtype=float), 12)
    # Tied ranks are halves: doubled, they are whole numbers, and sums of them can be counted.
    doubled = np.round(2 * rankdata(np.abs(values))).astype(int)
    ranks, positive = doubled[values != 0], values[values != 0] > 0
    if not len(ranks):
        return 1.0
    total = int(ranks[positive].sum())
    if len(ranks) > MOST_EXACT:
        spread = math.sqrt(float((ranks.astype(float) ** 2).sum())) / 2
        return float(norm.cdf((total + 1 - ranks.sum() / 2) / spread))
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = 0.5 * ways[rank:] + 0.5 * ways[: len(ways) - rank]
        ways[:rank] *= 0.5
    return float(min(1.0, ways[: total + 1].sum()))


class HalvingPruner(TrialPruner):
    """Successive halving: at 1/4 and 1/2 of the examples only the better half of all trials so far goes on.

    The first two trials are never stopped (K. Jamieson and A. Talwalkar, AISTATS 2016, in the form for trials that come
    one by one).

    Args:
        total: how many examples a whole trial answers.
        rungs: shares of the examples after which trials are compared.
    """

    def __init__(self, total: int, rungs: Sequence[float] = (0.25, 0.5)) -> None:
        self.rungs = {max(2, round(total * rung)) for rung in rungs}

    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Rival]) -> bool:
        """See the class."""
        if len(scores) not in self.rungs:
            return False
        others = sorted(
            sum(rival.scores[number] for number in scores) / len(scores)
            for rival in finished
            if rival.cheaper_than(costs) and all(number in rival.scores for number in scores)
        )
        return len(others) >= 2 and _mean(scores) < others[len(others) // 2]


def make_pruner(name: str, total: int) -> TrialPruner:
    """Return a rule by name.

    Args:
        name: one of `PRUNERS`.
        total: how many examples a whole trial answers.

    Raises:
        InputError: for an unknown name.
    """
    if name == "wilcoxon":
        return WilcoxonPruner()
    if name == "halving":
        return HalvingPruner(total)
    if name == "none":
        return NeverPrune()
    raise InputError(f"unknown pruner '{name}'. Known: {', '.join(PRUNERS)}")
