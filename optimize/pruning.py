"""Stopping a trial early, as soon as what was seen says that it will not win.

Trials answer the same examples in the same order, so that a trial is compared with the best one example by example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna

from ..errors import InputError

#: A trial stops when the paired test against the best one is below this after at least so many examples. The test is
#: made after every third example: each look is one more chance of stopping a trial by accident.
P_THRESHOLD = 0.1
STARTUP = 6
LOOK_EVERY = 3
PRUNERS: tuple[str, ...] = ("wilcoxon", "halving", "none")


@dataclass(frozen=True)
class Finished:
    """A finished trial, as pruning sees it: its scores by example number, and its mean cost in each cost objective."""

    scores: Mapping[int, float]
    costs: tuple[float, ...] = ()


class TrialPruner(ABC):
    """Decides after each example whether a trial goes on."""

    @abstractmethod
    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Finished]) -> bool:
        """Return whether the trial should stop.

        Args:
            scores: this trial's score by example number so far.
            costs: its mean costs so far, in the order of the study's cost objectives.
            finished: the trials that answered all examples.
        """


class NeverPrune(TrialPruner):
    """Every trial answers every example."""

    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Finished]) -> bool:
        """Return False."""
        return False


class PairedPruner(TrialPruner):
    """Stops a trial that is worse than a finished one by a paired test on the examples both have answered.

    The test is the one-sided Wilcoxon signed-rank test with the zero split of Optuna's `WilcoxonPruner`; only a trial
    that is no dearer in any cost objective counts as a rival, so that the Pareto front keeps its cheap end. As in
    Optuna, a trial is never stopped while its mean is at least the rival's.

    Args:
        p_threshold: of the test. It is made after every example, so the true error rate is somewhat above it.
        startup: no trial stops before so many examples.
    """

    def __init__(self, p_threshold: float = P_THRESHOLD, startup: int = STARTUP) -> None:
        self.p_threshold = p_threshold
        self.startup = startup

    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Finished]) -> bool:
        """See the class."""
        if len(scores) < self.startup:
            return False
        rivals = [
            rival
            for rival in finished
            if len(rival.costs) == len(costs)
            and all(theirs <= ours for theirs, ours in zip(rival.costs, costs, strict=True))
        ]
        if not rivals:
            return False
        best = max(rivals, key=lambda rival: sum(rival.scores.values()) / len(rival.scores))
        common = [number for number in scores if number in best.scores]
        differences = [scores[number] - best.scores[number] for number in common]
        if len(differences) < self.startup or not any(differences):
            return False
        if sum(scores.values()) / len(scores) >= sum(best.scores.values()) / len(best.scores):
            return False
        from scipy import stats

        p = stats.wilcoxon(differences, alternative="less", zero_method="zsplit").pvalue
        return bool(p < self.p_threshold)


class HalvingPruner(TrialPruner):
    """Successive halving: at 1/4 and 1/2 of the examples only the better half of all trials so far goes on.

    Args:
        total: how many examples a whole trial answers.
        rungs: shares of the examples after which trials are compared.
    """

    def __init__(self, total: int, rungs: Sequence[float] = (0.25, 0.5)) -> None:
        self.rungs = {max(2, round(total * rung)) for rung in rungs}

    def hopeless(self, scores: Mapping[int, float], costs: Sequence[float], finished: Sequence[Finished]) -> bool:
        """See the class."""
        if len(scores) not in self.rungs:
            return False
        mine = sum(scores.values()) / len(scores)
        others = sorted(
            sum(rival.scores[number] for number in scores) / len(scores)
            for rival in finished
            if all(number in rival.scores for number in scores)
            and all(theirs <= ours for theirs, ours in zip(rival.costs, costs, strict=False))
        )
        return len(others) >= 2 and mine < others[len(others) // 2]


def paired_pruner(name: str, total: int) -> TrialPruner:
    """Return the rule for a study with cost objectives, where Optuna's pruners do not apply.

    Raises:
        InputError: for an unknown name.
    """
    if name == "wilcoxon":
        return PairedPruner()
    if name == "halving":
        return HalvingPruner(total)
    if name == "none":
        return NeverPrune()
    raise InputError(f"unknown pruner '{name}'. Known: {', '.join(PRUNERS)}")


def optuna_pruner(name: str, total: int) -> optuna.pruners.BasePruner:
    """Return Optuna's pruner for a study with the score alone as its objective.

    Wilcoxon compares example by example (a trial reports each example's score under the example's number); halving
    compares running means, which a trial reports after each example.

    Raises:
        InputError: for an unknown name.
    """
    if name == "wilcoxon":
        return optuna.pruners.WilcoxonPruner(p_threshold=P_THRESHOLD, n_startup_steps=STARTUP)
    if name == "halving":
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=max(2, total // 4), reduction_factor=2)
    if name == "none":
        return optuna.pruners.NopPruner()
    raise InputError(f"unknown pruner '{name}'. Known: {', '.join(PRUNERS)}")
