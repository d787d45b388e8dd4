"""Confidence intervals of corpus scores, whatever a task computes them from."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..metrics.statistics import interval
from ..tasks.base import Scored, Task
from .records import Interval

#: Resamples of the bootstrap that computes a task's whole table again each time.
_RESAMPLES = 500
_SEED = 0


def score_intervals(task: Task, scored: Sequence[Scored], scores: dict[str, float | None]) -> dict[str, Interval]:
    """Return a 95 % interval for each corpus score that has a value.

    A score that is the mean of single examples' scores (of those that have one: `easy` has only easy puzzles) gets the
    interval of that mean: Wilson's where all are 0 or 1, else a bootstrap. Any other (`cell` is a ratio of sums) gets
    the percentiles of the task's score over resampled examples.

    Args:
        task: computed the scores.
        scored: the examples.
        scores: the corpus scores.
    """
    alone = [task.aggregate([item]) for item in scored]
    found: dict[str, Interval] = {}
    ratios: list[str] = []
    for name, value in scores.items():
        values = [single for table in alone if (single := table.get(name)) is not None]
        if value is None or not values:
            continue
        if abs(sum(values) / len(values) - value) < 1e-9:
            found[name] = Interval.of(interval(values))
        else:
            ratios.append(name)
    if ratios:
        found |= _resampled(task, scored, ratios)
    return {name: found[name] for name in scores if name in found}


def _resampled(task: Task, scored: Sequence[Scored], names: Sequence[str]) -> dict[str, Interval]:
    draw = random.Random(_SEED)
    values: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_RESAMPLES):
        table = task.aggregate(draw.choices(scored, k=len(scored)))
        for name in names:
            if (value := table.get(name)) is not None:
                values[name].append(value)
    found = {}
    for name, drawn in values.items():
        if drawn:
            ordered = sorted(drawn)
            low, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.025, 0.975))
            found[name] = Interval(low=low, high=high, method="percentile bootstrap", n=len(scored))
    return found
