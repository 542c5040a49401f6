"""What every objective is: a sum to maximise, minus the root of a sum of squares."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.ragged import query_sums
from saferank.engine.types.ranking_data import flat_rows

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """A value to maximise, as a function of the scores of all documents.

        value = sum_i reward_i x_i - sqrt( sum_i risk_weight_i x_i^2 )

    Each row i belongs to one query, and x_i is what the policy does there: the exposure of a document
    (`ExposureObjective`), or the probability of a logged ranking (`ActionObjective`). A method of this package is a
    choice of rows, rewards and risk weights, one file each. Both sums go over queries, so a mini-batch of queries
    gives an unbiased part of either.
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

    def per_query(self, x: Array, queries: Array) -> tuple[Array, Array]:
        """Return each given query's part of the estimate, and of the squared risk."""
        rows = flat_rows(self.row_offsets, queries)
        lengths = np.diff(self.row_offsets)[queries]
        estimates = query_sums(self.reward[rows] * x, lengths)
        if self.risk_weight is None:
            return estimates, np.zeros(len(queries))
        return estimates, query_sums(self.risk_weight[rows] * np.square(x, dtype=np.float64), lengths)

    def estimate(self, x: Array) -> float:
        """Return the linear part, over all rows."""
        return float(self.reward @ x)

    def squared_risk(self, x: Array) -> float:
        """Return the sum under the root, over all rows."""
        return 0.0 if self.risk_weight is None else float(self.risk_weight @ np.square(x, dtype=np.float64))

    def value(self, x: Array) -> float:
        """Return the value, over all rows."""
        return self.estimate(x) - math.sqrt(self.squared_risk(x))

    def slope(self, x: Array, root_slope: float, queries: Array) -> Array:
        """Return d value / d x of the given queries' rows, the root replaced by `root_slope` times its argument.

        sqrt(A) = min over lam > 0 of lam A + 1 / (4 lam), attained at lam = 1 / (2 sqrt(A)): with lam held, the
        objective is a plain sum over queries, and a mini-batch's part of it is unbiased.
        """
        rows = flat_rows(self.row_offsets, queries)
        slope: Array = self.reward[rows]
        return slope if self.risk_weight is None else slope - 2.0 * root_slope * self.risk_weight[rows] * x

    def score_slope(self, scores: Array, x: Array, root_slope: float, queries: Array) -> Array:
        """Return d value / d scores of the given queries' documents, with the root as in `slope`."""
        return self.pull_back(scores, x, self.slope(x, root_slope, queries), queries)

    def value_and_row_slope(self, x: Array) -> tuple[float, Array]:
        """Return the value and its derivative with respect to every x_i."""
        queries = np.arange(len(self.offsets) - 1)
        return self.value(x), self.slope(x, root_slope(self.squared_risk(x)), queries)

    def value_and_slope(self, scores: Array) -> tuple[float, Array]:
        """Return the value and its derivative with respect to every score."""
        queries = np.arange(len(self.offsets) - 1)
        x = self.view(scores, queries)
        value, slope = self.value_and_row_slope(x)
        return value, self.pull_back(scores, x, slope, queries)


def root_slope(squared_risk: float) -> float:
    """d sqrt(A) / d A = 1 / (2 sqrt(A)); 0 where there is no risk."""
    return 0.5 / math.sqrt(squared_risk) if squared_risk > 0 else 0.0
