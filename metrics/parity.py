"""Equity between groups: accuracy by group and its parity, and how a set of models completes each other.

Parity is the measure of "Multiple LLM Agents Debate for Equitable Cultural Alignment" (arXiv 2505.24671): a group's
accuracy over the best group's. It is a general metric: any field may group the examples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from .statistics import Interval, interval

#: Groups of fewer examples than this are flagged as tiny.
TINY = 5


@dataclass(frozen=True)
class GroupAccuracy:
    """One group's part in a report.

    Attributes:
        n: its examples, blanks included.
        numerator: the sum of its own scores: how many it has right, where scores are 0 or 1.
        accuracy: numerator over n; None for an empty group.
        interval: of the accuracy; None for an empty group.
        parity: accuracy over the best group's; None where that is 0, or the group is empty.
        flags: "empty" (no examples), "tiny" (few of them: the figures mean little), "zero" (none right).
    """

    n: int
    numerator: float
    accuracy: float | None
    interval: Interval | None
    parity: float | None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParityReport:
    """Accuracy and equity over groups.

    Attributes:
        groups: by name, in the order given.
        best: the groups with the highest accuracy; empty when all are 0.
        mean_parity: mean over the groups that have a parity, each group counting once; None when none has.
        min_parity: the least; None likewise.
        spread: highest accuracy minus lowest; None without examples.
        deviation: standard deviation of the groups' accuracies (of these groups, not an estimate for others).
    """

    groups: dict[str, GroupAccuracy]
    best: tuple[str, ...]
    mean_parity: float | None
    min_parity: float | None
    spread: float | None
    deviation: float | None


def group_report(
    values: Mapping[str, Sequence[float]], *, tiny: int = TINY, level: float = 0.95, seed: int = 0
) -> ParityReport:
    """Return accuracy with intervals, parity and spread over groups.

    Args:
        values: the examples' scores by group, in [0, 1]; a blank is a 0.
        tiny: groups of fewer examples are flagged.
        level: confidence of the intervals (Wilson where scores are 0 or 1, else bootstrap).
        seed: of the bootstrap.
    """
    accuracies = {name: math.fsum(found) / len(found) for name, found in values.items() if len(found)}
    highest = max(accuracies.values(), default=0.0)
    groups = {}
    for name, found in values.items():
        accuracy = accuracies.get(name)
        numerator = math.fsum(found)
        groups[name] = GroupAccuracy(
            n=len(found),
            numerator=numerator,
            accuracy=accuracy,
            interval=interval(found, level=level, seed=seed) if len(found) else None,
            parity=accuracy / highest if accuracy is not None and highest > 0 else None,
            flags=_flags(len(found), numerator, tiny),
        )
    parities = [group.parity for group in groups.values() if group.parity is not None]
    spread = list(accuracies.values())
    mean = math.fsum(spread) / len(spread) if spread else 0.0
    return ParityReport(
        groups=groups,
        best=tuple(name for name, accuracy in accuracies.items() if accuracy == highest > 0),
        mean_parity=math.fsum(parities) / len(parities) if parities else None,
        min_parity=min(parities, default=None),
        spread=max(spread) - min(spread) if spread else None,
        deviation=math.sqrt(math.fsum((one - mean) ** 2 for one in spread) / len(spread)) if spread else None,
    )


def _flags(n: int, numerator: float, tiny: int) -> tuple[str, ...]:
    if n == 0:
        return ("empty",)
    return tuple(name for name, holds in (("tiny", n < tiny), ("zero", numerator == 0)) if holds)


# -- the change of a parity ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParityChange:
    """How a group's parity differs between two runs over the same examples.

    Attributes:
        group: its name.
        before: its parity in the first run, with an interval.
        after: in the second.
        change: after minus before, with an interval from the same resampled examples.
    """

    group: str
    before: Interval
    after: Interval
    change: Interval

    def __str__(self) -> str:
        percent = f"{100 * self.change.level:g} % interval"
        return (
            f"{self.group} {self.before.estimate:.2f} -> {self.after.estimate:.2f} "
            f"({self.change.estimate:+.2f}, {percent} {self.change.low:+.2f} to {self.change.high:+.2f})"
        )


def parity_change(
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    group: str,
    *,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 2000,
) -> ParityChange:
    """Compare a group's parity in two runs, by a paired bootstrap.

    Every group's examples are drawn anew (with replacement, within the group, the same examples for both runs), and
    both parities are computed again, each against its own best group. The intervals are percentiles.

    Args:
        before: scores of the first run by group.
        after: scores of the second run by group, over the same examples in the same order.
        group: whose parity is compared.
        level: the confidence.
        seed: of the bootstrap.
        resamples: of the bootstrap; those in which no group has anything right have no parity and are left out.

    Raises:
        InputError: for a group that is not there, groups or examples that differ, or a run with nothing right.
    """
    _check_pairs(before, after, group)
    import numpy as np

    rng = np.random.default_rng(seed)
    names = [name for name in before if len(before[name])]
    means = np.zeros((2, len(names), resamples))
    for position, name in enumerate(names):
        scores = np.asarray([before[name], after[name]], dtype=float)
        size = scores.shape[1]
        step = max(1, 4_000_000 // size)
        for start in range(0, resamples, step):
            drawn = rng.integers(size, size=(min(step, resamples - start), size))
            means[:, position, start : start + step] = scores[:, drawn].mean(axis=2)
    best = means.max(axis=1)
    usable = (best > 0).all(axis=0)
    parities = means[:, names.index(group)][:, usable] / best[:, usable]
    tail = 50 * (1 - level)
    n = len(before[group])

    def with_interval(estimate: float, drawn: Any) -> Interval:
        low, high = np.percentile(drawn, [tail, 100 - tail])
        return Interval(estimate, float(low), float(high), "percentile bootstrap", n, level)

    first, second = _parity_of(before, group), _parity_of(after, group)
    return ParityChange(
        group=group,
        before=with_interval(first, parities[0]),
        after=with_interval(second, parities[1]),
        change=with_interval(second - first, parities[1] - parities[0]),
    )


def _check_pairs(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]], group: str) -> None:
    for name in {*before, *after}:
        one, two = len(before.get(name, ())), len(after.get(name, ()))
        if one != two:
            raise InputError(f"group '{name}' has {one} examples before and {two} after; they must be the same ones")
    if not len(before.get(group, ())):
        known = ", ".join(name for name in before if len(before[name]))
        raise InputError(f"no group '{group}' with examples. Groups: {known or 'none'}")
    for run, scores in (("first", before), ("second", after)):
        if not any(any(found) for found in scores.values()):
            raise InputError(f"the {run} run has nothing right in any group; there is no parity to compare")


def _parity_of(values: Mapping[str, Sequence[float]], group: str) -> float:
    accuracies = {name: math.fsum(found) / len(found) for name, found in values.items() if len(found)}
    return accuracies[group] / max(accuracies.values())


# -- sets of models --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Complementarity:
    """What a set of models has right together, over the same examples.

    Attributes:
        n: examples.
        accuracy: of each model, by name.
        best: the most accurate one; the first of several.
        oracle: share that some model has right: the upper bound of choosing the right model each time.
        exactly_one: share that exactly one model has right.
        all_right: share that every model has right.
        none_right: share that no model has right.
        pair_gains: for each pair of models, its oracle minus the accuracy of its better one.
    """

    n: int
    accuracy: dict[str, float]
    best: str
    oracle: float
    exactly_one: float
    all_right: float
    none_right: float
    pair_gains: dict[tuple[str, str], float]


def complementarity(right: Mapping[str, Sequence[float]]) -> Complementarity:
    """Return what models have right together and apart.

    Args:
        right: for each model whether it has each example right (1 or True; a score counts as right when it is 1).

    Raises:
        InputError: for no models, no examples, or models with different numbers of examples.
    """
    flags = _flags_of(right)
    n = len(next(iter(flags.values())))
    counts = [sum(column) for column in zip(*flags.values(), strict=True)]
    accuracy = {name: sum(column) / n for name, column in flags.items()}
    gains = {
        (one, two): sum(a or b for a, b in zip(flags[one], flags[two], strict=True)) / n
        - max(accuracy[one], accuracy[two])
        for one, two in itertools.combinations(flags, 2)
    }
    return Complementarity(
        n=n,
        accuracy=accuracy,
        best=max(accuracy, key=lambda name: accuracy[name]),
        oracle=sum(count > 0 for count in counts) / n,
        exactly_one=sum(count == 1 for count in counts) / n,
        all_right=sum(count == len(flags) for count in counts) / n,
        none_right=sum(count == 0 for count in counts) / n,
        pair_gains=gains,
    )


def oracle(right: Mapping[str, Sequence[float]]) -> float:
    """Return the share of examples that some model has right; see `complementarity` for arguments and errors."""
    flags = _flags_of(right)
    columns = list(zip(*flags.values(), strict=True))
    return sum(any(column) for column in columns) / len(columns)


def unanimous_wrong(answers: Mapping[str, Sequence[str | None]], gold: Sequence[str]) -> float:
    """Return the share of examples on which all models give the same wrong answer: what no debate starts from.

    Args:
        answers: each model's answers as voting buckets; None for a blank, which is no answer to agree on.
        gold: the right answers' buckets.

    Raises:
        InputError: for no models, no examples, or different numbers of them.
    """
    columns = list(answers.values())
    if not columns or not gold or any(len(column) != len(gold) for column in columns):
        raise InputError(
            f"{len(gold)} gold answers and {sorted({len(column) for column in columns})} answers of {len(columns)} "
            "models; there must be at least one of each, and as many answers a model as gold answers"
        )
    same = sum(
        len(set(row)) == 1 and row[0] is not None and row[0] != right
        for *row, right in zip(*columns, gold, strict=True)
    )
    return same / len(gold)


def _flags_of(right: Mapping[str, Sequence[float]]) -> dict[str, list[bool]]:
    lengths = {len(column) for column in right.values()}
    if not right or lengths == {0}:
        raise InputError("no models or no examples; there must be at least one of each")
    if len(lengths) > 1:
        raise InputError(f"models with {sorted(lengths)} examples; all must be scored on the same ones")
    return {name: [value == 1 for value in column] for name, column in right.items()}
