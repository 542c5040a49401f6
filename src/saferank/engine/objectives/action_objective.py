"""The form that the action-based objectives have: sums over logged rankings of their probability ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.exposure_objective import root_slope
from saferank.engine.plackett_luce.ranking_probability import log_probabilities, log_probability_vjp
from saferank.engine.ragged import flat_rows

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ActionObjective:
    """A value to maximise, as a function of scores, through the probability pi of each logged ranking y_i.

        value(s) = sum_i reward_i pi(y_i) - sqrt( sum_i spread_i pi(y_i)^2 )

    The logged rankings are a uniform sample of the log's, at most so many a query, each standing for N_q / M_q:
    at 10^9 interactions nearly every one has a ranking of its own, and no table of them fits into memory.
    """

    offsets: NDArray[np.int64]
    bounds: NDArray[np.int64]
    """The rankings of query q are bounds[q]:bounds[q + 1]."""
    rankings: NDArray[np.int32]
    reward: NDArray[np.float64]
    spread: NDArray[np.float64] | None = None

    @property
    def active(self) -> NDArray[np.int64]:
        """Queries on which the value depends."""
        counts = (self.reward != 0) if self.spread is None else (self.reward != 0) | (self.spread > 0)
        before = np.concatenate([[0], np.cumsum(counts)])
        return np.flatnonzero(np.diff(before[self.bounds]) > 0)

    def probabilities(self, scores: Array, queries: Array) -> Array:
        """Return pi(y_i) of the given queries' rankings; `scores` are those of the same queries, flat."""
        return np.exp(
            log_probabilities(np.asarray(scores, np.float64), self.offsets, self.bounds, self.rankings, queries)
        )

    def rows(self, queries: Array) -> Array:
        """Return which rankings belong to the given queries."""
        return flat_rows(self.bounds, queries)

    def estimate(self, probability: Array, rows: Any = slice(None)) -> float:
        """Return the linear part, over the given rankings."""
        return float(self.reward[rows] @ probability)

    def squared_risk(self, probability: Array, rows: Any = slice(None)) -> float:
        """Return the sum under the root, over the given rankings."""
        return 0.0 if self.spread is None else float(self.spread[rows] @ probability**2)

    def score_slope(self, scores: Array, probability: Array, root_slope: float, queries: Array) -> Array:
        """Return d value / d scores of the given queries, the root replaced by `root_slope` times its argument."""
        rows = self.rows(queries)
        pull = self.reward[rows] * probability
        if self.spread is not None:
            pull = pull - 2.0 * root_slope * self.spread[rows] * probability**2
        out = np.zeros(len(scores))
        log_probability_vjp(
            np.asarray(scores, np.float64), self.offsets, self.bounds, self.rankings, queries, pull, out
        )
        return out

    def value_and_slope(self, scores: Array) -> tuple[float, Array]:
        """Return the value and its derivative with respect to every score."""
        queries = np.arange(len(self.offsets) - 1)
        probability = self.probabilities(scores, queries)
        squared = self.squared_risk(probability)
        slope = self.score_slope(scores, probability, root_slope(squared), queries)
        return self.estimate(probability) - math.sqrt(squared), slope
