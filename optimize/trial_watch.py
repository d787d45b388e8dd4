"""One trial under way: what its examples scored and cost, and whether it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.records import Record
from ..signatures.transcript import Usage
from ..tasks.base import Example
from .pruning import Rival, make_pruner
from .study import TrialResult


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


class TrialWatch:
    """Follows one trial's records and decides whether it goes on.

    Args:
        number: of the trial.
        examples: that a whole trial answers, in order.
        objectives: "score" first, then costs.
        pruner: name of the rule.
        others: the study's other trials.
        progress: is told of each example.
    """

    def __init__(
        self,
        number: int,
        examples: Sequence[Example],
        objectives: Sequence[str],
        pruner: str,
        others: Sequence[TrialResult],
        progress: SearchProgress,
    ) -> None:
        self.number = number
        self.scores: dict[int, float] = {}
        self.usage = Usage()
        self.hopeless = False
        self._numbers = {example.fingerprint: index for index, example in enumerate(examples)}
        self._cost_names = objectives[1:]
        self._progress = progress
        self._pruner = make_pruner(pruner, len(examples))
        self._rivals = [
            Rival(other.scores, self._objective_costs(other.costs)) for other in others if other.state == "complete"
        ]

    def _objective_costs(self, costs: Mapping[str, float | None]) -> tuple[float, ...]:
        return tuple(costs.get(name) or 0.0 for name in self._cost_names)

    @property
    def mean(self) -> float:
        """The mean score so far."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else 0.0

    def costs(self) -> dict[str, float | None]:
        """Return the mean costs so far, as if nothing had been cached."""
        usage, n = self.usage.uncached(), max(1, len(self.scores))
        return {
            "calls": usage.calls / n,
            "tokens": usage.tokens / n,
            "cost": None if usage.cost is None else usage.cost / n,
            "seconds": usage.seconds / n,
        }

    def on_record(self, record: Record) -> bool:
        """Take one record; returns whether the run goes on."""
        number = self._numbers[record.fingerprint]
        if number in self.scores or self.hopeless:
            return not self.hopeless
        self.scores[number] = record.score
        self.usage = self.usage + record.full_usage
        total = len(self._numbers)
        self._progress.example(self.number, len(self.scores), total, self.mean)
        # All examples answered: nothing is saved by calling it hopeless.
        if len(self.scores) < total:
            self.hopeless = self._pruner.hopeless(self.scores, self._objective_costs(self.costs()), self._rivals)
        return not self.hopeless

    def result(self, paid: Usage, settings: dict[str, Any]) -> TrialResult:
        """Return what was found."""
        return TrialResult(
            number=self.number,
            state="pruned" if self.hopeless else "complete",
            settings=settings,
            score=self.mean,
            n=len(self.scores),
            costs=self.costs(),
            calls=paid.calls,
            cached=paid.cached,
            tokens=paid.tokens,
            dollars=paid.cost,
            scores=self.scores,
        )
