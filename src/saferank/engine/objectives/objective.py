"""What every objective is: a sum to maximise, minus the root of a sum of squares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.ragged import flat_rows, offsets_of, query_sums

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """A value to maximise, as a function of the scores of all documents.

        value = sum_i reward_i x_i - sqrt( sum_i risk_weight_i x_i^2 )

    Each row i belongs to one query, and x_i is what the policy does there: the exposure of a document
    (`ExposureObjective`), or the probability of a logged ranking (`ActionObjective`). A method of this package is a
    choice of rows, rewards and risk weights, one file each; one of another form overrides `terms`, `value`,
    `estimate`, `slope` and `active`. The sums go over queries, so a mini-batch of queries gives an unbiased part of
    each.
    """

    offsets: NDArray[np.int64]
    """The documents of query q are offsets[q]:offsets[q + 1]."""
    reward: NDArray[np.float64]
    """What a unit of x_i is worth."""
    risk_weight: NDArray[np.float64] | None = None
    """What the square of x_i adds to the squared risk; None if there is no risk term."""

    @property
    def row_offsets(self) -> NDArray[np.int64]:
        """The rows of query q are row_offsets[q]:row_offsets[q + 1]."""
        return self.offsets

    @abstractmethod
    def view(self, scores: Array, queries: Array) -> Array:
        """Return x of the given queries' rows; `scores` are those of the same queries' documents, flat."""

    @abstractmethod
    def pull_back(self, scores: Array, x: Array, slope: Array, queries: Array) -> Array:
        """Return the vector-Jacobian product: d/d scores of sum_i slope_i x_i, over the given queries."""

    @property
    def active(self) -> NDArray[np.int64]:
        """Queries on which the value depends; the log says nothing about the others."""
        counts = self.reward != 0 if self.risk_weight is None else (self.reward != 0) | (self.risk_weight > 0)
        before = np.concatenate([[0], np.cumsum(counts)])
        return np.flatnonzero(np.diff(before[self.row_offsets]) > 0)

    def terms(self, x: Array, queries: Array) -> Array:
        """Return each given query's part of the two sums that the value is made of: (2, queries).

        Here the estimate and the squared risk; a ratio would have its numerator and its denominator.
        """
        rows = flat_rows(self.row_offsets, queries)
        offsets = offsets_of(np.diff(self.row_offsets)[queries])
        parts = np.zeros((2, len(queries)))
        parts[0] = query_sums(self.reward[rows] * x, offsets)
        if self.risk_weight is not None:
            parts[1] = query_sums(self.risk_weight[rows] * np.square(x, dtype=np.float64), offsets)
        return parts

    def value(self, sums: Array) -> float:
        """Return the value, given the sums of `terms` over all queries."""
        return self.estimate(sums) - math.sqrt(sums[1])

    def estimate(self, sums: Array) -> float:
        """Return the value without the risk term."""
        return float(sums[0])

    def slope(self, x: Array, sums: Array, queries: Array) -> Array:
        """Return d value / d x of the given queries' rows, the value being linearised at `sums`.

        d value = d estimate - d(squared risk) / (2 risk). With the sums held, that is a plain sum over queries, and a
        mini-batch's part of it is unbiased.
        """
        rows = flat_rows(self.row_offsets, queries)
        slope: Array = self.reward[rows]
        if self.risk_weight is None or sums[1] <= 0:
            return slope
        return slope - self.risk_weight[rows] * x / math.sqrt(sums[1])

    def sums(self, x: Array) -> Array:
        """Return the sums over all queries, given x of all rows."""
        sums: Array = self.terms(x, np.arange(len(self.offsets) - 1)).sum(axis=1)
        return sums

    def value_and_row_slope(self, x: Array) -> tuple[float, Array]:
        """Return the value and its derivative with respect to every x_i."""
        sums = self.sums(x)
        return self.value(sums), self.slope(x, sums, np.arange(len(self.offsets) - 1))

    def value_and_slope(self, scores: Array) -> tuple[float, Array]:
        """Return the value and its derivative with respect to every score."""
        queries = np.arange(len(self.offsets) - 1)
        x = self.view(scores, queries)
        value, slope = self.value_and_row_slope(x)
        return value, self.pull_back(scores, x, slope, queries)

    def slope_and_curvature(self, scores: Array) -> tuple[Array, Array]:
        """Return the derivative with respect to every score, and a curvature that is at least its absolute value.

        Here that value itself: a Newton step is then of one unit wherever there is a slope.
        """
        slope = self.value_and_slope(scores)[1]
        return slope, np.abs(slope)
