"""Intervals of scores, paired comparison of two runs, and how many examples a comparison needs.

Scores of two runs over the same examples are paired: only the examples on which they differ tell them apart, and a
paired test sees differences that an unpaired one cannot.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InputError

Method = Literal["wilson", "bca bootstrap", "percentile bootstrap", "newcombe"]

_RESAMPLES = 2000
#: BCa takes time by the square of the examples; with more than so many the percentiles are the same but for noise.
_LARGEST_BCA = 2000
_BATCH = 4_000_000
_BOOTSTRAPS: tuple[tuple[str, Method], ...] = (("BCa", "bca bootstrap"), ("percentile", "percentile bootstrap"))


@dataclass(frozen=True)
class Interval:
    """A point estimate with its confidence interval.

    Attributes:
        estimate: the point estimate.
        low: lower end.
        high: upper end.
        method: "wilson" (E. B. Wilson 1927, for shares), "bca bootstrap" (B. Efron 1987, for other means),
            "percentile bootstrap" where BCa is not defined (all values equal, fewer than two of them) or for ratios,
            "newcombe" (R. G. Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10, for the difference of
            two paired shares).
        n: how many examples it is computed from.
        level: its confidence, 0.95 for 95 %.
    """

    estimate: float
    low: float
    high: float
    method: Method
    n: int
    level: float = 0.95

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


def share_interval(successes: float, n: int, *, level: float = 0.95) -> Interval:
    """Return a share with its Wilson interval.

    Raises:
        InputError: when there are no examples, or more successes than examples.
    """
    if n < 1 or not 0 <= successes <= n:
        raise InputError(f"{successes} of {n} is no share; there must be examples, and no more successes than examples")
    z = _z(level)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # The ends are exact where all or none succeed; rounding must not move them past the estimate.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(p, low, high, "wilson", n, level)


def interval(values: Sequence[float], *, level: float = 0.95, seed: int = 0, resamples: int = _RESAMPLES) -> Interval:
    """Return the mean of some scores with its interval: Wilson where all are 0 or 1, else a bootstrap (BCa).

    Args:
        values: one score an example.
        level: the confidence.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Raises:
        InputError: when there are no values.
    """
    if not len(values):
        raise InputError("no scores to compute an interval from; there must be at least one example")
    if is_binary(values):
        return share_interval(sum(map(float, values)), len(values), level=level)
    return _mean_interval([float(value) for value in values], level, seed, resamples)


def is_binary(values: Sequence[float]) -> bool:
    """Return whether all scores are 0 or 1."""
    return all(value in (0, 1) for value in values)


def _mean_interval(values: list[float], level: float, seed: int, resamples: int) -> Interval:
    import numpy as np
    from scipy.stats import bootstrap

    n = len(values)
    mean = math.fsum(values) / n
    if len(set(values)) == 1:
        return Interval(mean, mean, mean, "percentile bootstrap", n, level)
    methods = _BOOTSTRAPS if n <= _LARGEST_BCA else _BOOTSTRAPS[1:]
    for method, name in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BCa warns where it is not defined; the percentiles are then taken
            found = bootstrap(
                (np.asarray(values),),
                np.mean,
                n_resamples=resamples,
                confidence_level=level,
                batch=max(1, _BATCH // n),
                method=method,
                rng=np.random.default_rng(seed),
            ).confidence_interval
        if math.isfinite(found.low) and math.isfinite(found.high):
            return Interval(mean, float(found.low), float(found.high), name, n, level)
    raise AssertionError("percentiles of finite means are finite")


def _z(level: float) -> float:
    from scipy.stats import norm

    if not 0 < level < 1:
        raise InputError(f"the confidence level is {level}; it must be between 0 and 1, such as 0.95")
    return float(norm.ppf((1 + level) / 2))


# -- paired comparison -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairedComparison:
    """Two runs compared on the same examples. Differences are the second minus the first.

    Attributes:
        n: examples that both have.
        first: mean score of the first run.
        second: mean score of the second run.
        difference: with its interval.
        p_value: two-sided, of no difference.
        test: "exact McNemar" for right/wrong scores (Q. McNemar 1947; the binomial test on the examples that only one
            has right), else "paired bootstrap".
        both: examples that both have right; None where scores are not all 0 or 1, as the next three.
        only_first: that only the first has right.
        only_second: that only the second has right.
        neither: that neither has right.
        needed: examples at which a difference as large as the observed one is found, at the level of `difference`, in
            80 of 100 studies (or the power asked for); None where no difference was observed.
    """

    n: int
    first: float
    second: float
    difference: Interval
    p_value: float
    test: Literal["exact McNemar", "paired permutation"]
    both: int | None
    only_first: int | None
    only_second: int | None
    neither: int | None
    needed: int | None


def compare_paired(
    first: Sequence[float],
    second: Sequence[float],
    *,
    level: float = 0.95,
    power: float = 0.8,
    seed: int = 0,
    resamples: int = 10_000,
) -> PairedComparison:
    """Compare the scores of two runs on the same examples, in the same order.

    Raises:
        InputError: when there are none, or the runs have different numbers of examples.
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} scores; a paired comparison needs one of each run an example")
    if not len(first):
        raise InputError("no examples in common; a paired comparison needs at least one")
    one, two = [float(value) for value in first], [float(value) for value in second]
    means = (math.fsum(one) / len(one), math.fsum(two) / len(two))
    if is_binary(one) and is_binary(two):
        return _compare_shares(one, two, means, level, power)
    differences = [b - a for a, b in zip(one, two, strict=True)]
    found = _mean_interval(differences, level, seed, resamples)
    return PairedComparison(
        n=len(one),
        first=means[0],
        second=means[1],
        difference=found,
        p_value=_sign_flip_p(differences, seed, resamples),
        test="paired permutation",
        both=None,
        only_first=None,
        only_second=None,
        neither=None,
        needed=examples_needed_for_mean(found.estimate, _deviation(differences), power=power, alpha=1 - level),
    )


def _compare_shares(
    first: list[float], second: list[float], means: tuple[float, float], level: float, power: float
) -> PairedComparison:
    from scipy.stats import binomtest

    n = len(first)
    both = sum(a == b == 1 for a, b in zip(first, second, strict=True))
    neither = sum(a == b == 0 for a, b in zip(first, second, strict=True))
    only_first = int(sum(first)) - both
    only_second = int(sum(second)) - both
    apart = only_first + only_second
    p_value = float(binomtest(only_second, apart, 0.5).pvalue) if apart else 1.0
    difference = paired_share_difference(both, only_first, only_second, neither, level=level)
    return PairedComparison(
        n=n,
        first=means[0],
        second=means[1],
        difference=difference,
        p_value=p_value,
        test="exact McNemar",
        both=both,
        only_first=only_first,
        only_second=only_second,
        neither=neither,
        needed=examples_needed(difference.estimate, apart / n, power=power, alpha=1 - level),
    )


def paired_share_difference(
    both: int, only_first: int, only_second: int, neither: int, *, level: float = 0.95
) -> Interval:
    """Return the second share minus the first, over the same examples, with Newcombe's interval (method 10).

    The Wilson intervals of both shares are combined by squares, with the correlation between the runs.

    Raises:
        InputError: when there are no examples.
    """
    n = both + only_first + only_second + neither
    if n < 1:
        raise InputError("no examples in common; a paired comparison needs at least one")
    one = share_interval(both + only_first, n, level=level)
    two = share_interval(both + only_second, n, level=level)
    phi = _correlation(both, only_first, only_second, neither)
    difference = (only_second - only_first) / n
    down = _combined(two.estimate - two.low, one.high - one.estimate, phi)
    up = _combined(two.high - two.estimate, one.estimate - one.low, phi)
    return Interval(difference, max(-1.0, difference - down), min(1.0, difference + up), "newcombe", n, level)


def _combined(one: float, two: float, phi: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * phi * one * two + two * two))


def _correlation(both: int, only_first: int, only_second: int, neither: int) -> float:
    """Return the phi coefficient, corrected for continuity where it is positive; 0 where it is not defined."""
    n = both + only_first + only_second + neither
    product = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    if product == 0:
        return 0.0
    excess = both * neither - only_first * only_second
    return (max(excess - n / 2, 0.0) if excess > 0 else float(excess)) / math.sqrt(product)


def _sign_flip_p(differences: list[float], seed: int, resamples: int) -> float:
    """Return the two-sided p-value of a zero mean, by giving each example's difference either sign.

    All sign patterns are counted where there are no more of them than `resamples`, else a random sample of them.
    """
    import numpy as np

    data = np.abs(np.asarray(differences))
    data = data[data > 0]
    if not len(data):
        return 1.0
    observed = abs(math.fsum(differences)) - 1e-12
    if 2 ** min(len(data), 40) <= resamples:
        signs = 1 - 2 * ((np.arange(2 ** len(data))[:, None] >> np.arange(len(data))) & 1)
        return float((np.abs(signs @ data) >= observed).mean())
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH // len(data))
    extreme = done = 0
    while done < resamples:
        size = min(batch, resamples - done)
        signs = rng.choice((-1.0, 1.0), size=(size, len(data)))
        extreme += int((np.abs(signs @ data) >= observed).sum())
        done += size
    return (extreme + 1) / (resamples + 1)


def _deviation(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))


# -- how many examples -----------------------------------------------------------------------------------------------


def examples_needed(difference: float, discordance: float, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """Return how many examples a McNemar test needs to find a difference of two paired shares.

    R. J. Connor, Biometrics 43 (1987) 207-211: n = (z_a sqrt(p) + z_b sqrt(p - d^2))^2 / d^2.

    Args:
        difference: d, between the shares.
        discordance: p, the share of examples on which one run is right and the other wrong; at least |d|.
        power: how often the difference is to be found.
        alpha: how often a difference may be found where there is none.

    Returns:
        The number of examples; None for no difference, which no number shows.

    Raises:
        InputError: when the discordance is less than the difference or more than 1.
    """
    if difference == 0:
        return None
    if not abs(difference) - 1e-12 <= discordance <= 1:
        raise InputError(
            f"a discordance of {discordance:g} cannot hold a difference of {difference:g}; "
            "it must be at least that and at most 1"
        )
    za, zb = _quantiles(power, alpha)
    spread = math.sqrt(max(0.0, discordance - difference**2))
    return max(1, math.ceil((za * math.sqrt(discordance) + zb * spread) ** 2 / difference**2 - 1e-9))


def examples_needed_for_mean(
    difference: float, deviation: float, *, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """Return how many examples a paired test of means needs: ((z_a + z_b) s / d)^2; None for no difference.

    Args:
        difference: d, of the means.
        deviation: s, standard deviation of the examples' differences.
        power: how often the difference is to be found.
        alpha: how often a difference may be found where there is none.
    """
    if difference == 0:
        return None
    za, zb = _quantiles(power, alpha)
    return max(2, math.ceil(((za + zb) * deviation / difference) ** 2 - 1e-9))


def _quantiles(power: float, alpha: float) -> tuple[float, float]:
    from scipy.stats import norm

    if not (0 < power < 1 and 0 < alpha < 1):
        raise InputError(f"power {power:g} and alpha {alpha:g} must be between 0 and 1")
    return float(norm.ppf(1 - alpha / 2)), float(norm.ppf(power))


# -- several comparisons ---------------------------------------------------------------------------------------------


def holm(p_values: Mapping[Any, float]) -> dict[Any, float]:
    """Return p-values adjusted for being several (S. Holm 1979); they hold the chance of any false finding.

    Args:
        p_values: by the name of the comparison; the order does not matter.
    """
    ordered = sorted(p_values, key=lambda name: p_values[name])
    adjusted: dict[Any, float] = {}
    least = 0.0
    for rank, name in enumerate(ordered):
        least = max(least, min(1.0, (len(ordered) - rank) * p_values[name]))
        adjusted[name] = least
    return {name: adjusted[name] for name in p_values}
