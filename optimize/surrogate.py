"""A model of the score over the search space: a Gaussian process that knows how noisy each trial's score is.

A trial's score is a mean over few examples, so that the highest one is as much luck as merit. Shapes that lie close
together score alike: the model weighs each score by its neighbours', and says where a better one may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .space import Dimension

#: Logarithms of the hyperparameters' prior means and deviations; length scales are in shares of a dimension's range.
LENGTH, LENGTH_SPREAD = math.log(0.5), 0.7
#: Most of what a shape does to the score is the sum of what its parts do; less is how they work together.
ALONE, TOGETHER, AMPLITUDE_SPREAD = math.log(0.8), math.log(0.5), 0.7
#: Trials answer the same questions, so that they differ by less than their scores' sampling errors say.
NOISE, NOISE_SPREAD = math.log(0.5), 1.0
#: Variance of the unknown mean, and what keeps matrices invertible; scores have variance 1.
_MEAN_VARIANCE, _JITTER = 1.0, 1e-6
#: Spread that scores have at least, so that a flat surface stays flat.
_LEAST_SPREAD = 0.02


class Encoder:
    """Turns configurations into points: a number becomes its place in its range, a choice one axis an option.

    Two different choices are as far apart as the ends of a range.

    Args:
        space: the dimensions, by name.
    """

    def __init__(self, space: Mapping[str, Dimension]) -> None:
        self.space = dict(space)
        #: The dimension that each column belongs to.
        self.groups: list[int] = []
        for index, dimension in enumerate(self.space.values()):
            self.groups += [index] * (len(dimension.choices) if dimension.kind == "choice" else 1)

    def __call__(self, settings: Sequence[Mapping[str, Any]]) -> NDArray[Any]:
        """Return one row a configuration."""
        return np.array([self._row(item) for item in settings], dtype=float).reshape(len(settings), len(self.groups))

    def _row(self, settings: Mapping[str, Any]) -> list[float]:
        row: list[float] = []
        for name, dimension in self.space.items():
            value = settings[name]
            if dimension.kind == "choice":
                row += [math.sqrt(0.5) * (choice == value) for choice in dimension.choices]
            else:
                width = dimension.high - dimension.low
                row.append((value - dimension.low) / width if width else 0.0)
        return row


@dataclass(frozen=True)
class Surrogate:
    """A fitted Gaussian process, see `fit`.

    Its kernel is a sum: one part for each dimension alone, and one for all of them together (both squared exponential).
    """

    points: NDArray[Any]
    values: NDArray[Any]
    noise: NDArray[Any]
    groups: NDArray[Any]
    scales: NDArray[Any]
    alone: float
    together: float
    centre: float
    spread: float

    def predict(self, points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the expected value at each point and its standard deviation."""
        from scipy.linalg import cho_factor, cho_solve

        factor = cho_factor(self._covariance(self.points) + np.diag(self.noise + _JITTER), lower=True)
        across = self._covariance(points)
        mean = across @ cho_solve(factor, (self.values - self.centre) / self.spread)
        known = np.einsum("ij,ji->i", across, cho_solve(factor, across.T))
        variance = np.maximum(self.alone + self.together + _MEAN_VARIANCE - known, 1e-12)
        return self.centre + self.spread * mean, self.spread * np.sqrt(variance)

    def with_pending(self, points: NDArray[Any]) -> Surrogate:
        """Return the model as it will be if what is under way at these points comes out as expected."""
        if not len(points):
            return self
        expected, _ = self.predict(points)
        return replace(
            self,
            points=np.vstack([self.points, points]),
            values=np.concatenate([self.values, expected]),
            noise=np.concatenate([self.noise, np.full(len(points), float(self.noise.mean()))]),
        )

    def _covariance(self, points: NDArray[Any]) -> NDArray[Any]:
        """Return the covariance of each of these points with each of the model's own."""
        squares = _squares(points, self.points, self.groups)
        parts = np.exp(-0.5 * squares / self.scales[:, None, None] ** 2)
        return self.alone * parts.mean(0) + self.together * _product(parts) + _MEAN_VARIANCE


def fit(points: NDArray[Any], groups: Sequence[int], values: Sequence[float], variances: Sequence[float]) -> Surrogate:
    """Return the model of some values: the most probable length scales, amplitudes and share of noise.

    Args:
        points: one row a value, see `Encoder`.
        groups: the dimension of each column.
        values: one each.
        variances: of the values' sampling errors; how much of them is noise between trials is fitted.
    """
    from scipy.optimize import minimize

    observed = np.asarray(values, dtype=float)
    centre, spread = float(observed.mean()), max(float(observed.std()), _LEAST_SPREAD)
    scaled = (observed - centre) / spread
    sampling = np.asarray(variances, dtype=float) / spread**2
    columns = np.asarray(groups)
    squares = _squares(points, points, columns)
    count = len(squares)
    prior = np.array([*[LENGTH] * count, ALONE, TOGETHER, NOISE])
    deviations = np.array([*[LENGTH_SPREAD] * count, AMPLITUDE_SPREAD, AMPLITUDE_SPREAD, NOISE_SPREAD])

    def loss(logs: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        """Return the negative logarithm of the posterior density and its gradient."""
        weights = np.exp(-2 * logs[:count])
        parts = np.exp(-0.5 * squares * weights[:, None, None])
        alone = np.exp(logs[count]) * parts / count
        together = np.exp(logs[count + 1]) * _product(parts)
        noise = np.exp(logs[count + 2]) * sampling
        covariance = alone.sum(0) + together + _MEAN_VARIANCE + np.diag(noise + _JITTER)
        try:
            inverse_root = np.linalg.inv(np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(logs)
        inverse = inverse_root.T @ inverse_root
        solved = inverse @ scaled
        away = (logs - prior) / deviations
        value = 0.5 * scaled @ solved - np.log(np.diag(inverse_root)).sum() + 0.5 * away @ away
        sides = 0.5 * (inverse - np.outer(solved, solved))
        lengths = (sides * (alone + _share(count) * together) * squares).sum((1, 2)) * weights
        amplitudes = [(sides * alone.sum(0)).sum(), (sides * together).sum(), (np.diag(sides) * noise).sum()]
        return float(value), np.array([*lengths, *amplitudes]) + away / deviations

    starts = [prior, prior - np.array([*[LENGTH_SPREAD] * count, 0.0, 0.0, 1.5])]
    found = min(
        (minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}) for start in starts),
        key=lambda result: float(result.fun),
    ).x
    tuned = np.exp(found)
    noise = tuned[count + 2] * sampling
    return Surrogate(
        points, observed, noise, columns, tuned[:count], float(tuned[count]), float(tuned[count + 1]), centre, spread
    )


def _squares(one: NDArray[Any], other: NDArray[Any], groups: NDArray[Any]) -> NDArray[Any]:
    """Return the squared distances between two sets of points in each dimension alone."""
    squares = np.zeros((int(groups.max()) + 1, len(one), len(other)))
    for column, group in enumerate(groups):
        squares[group] += (one[:, None, column] - other[None, :, column]) ** 2
    return squares


def _product(parts: NDArray[Any]) -> NDArray[Any]:
    """Return the kernel of all dimensions together.

    The more dimensions there are, the farther apart any two points lie: the length scales grow with the root of their
    number, so that points are as much alike as they are with two.
    """
    return parts.prod(0) ** _share(len(parts))


def _share(count: int) -> float:
    return 2 / max(count, 2)
