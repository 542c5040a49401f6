"""Objectives whose rows are logged rankings: sums of the probability that the policy gives to each."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.objective import Array, Objective


@dataclass(frozen=True, eq=False)
class ActionObjective(Objective):
    """A value to maximise, through the probability pi of each logged ranking y_i.

        value = sum_i reward_i pi(y_i) - sqrt( sum_i risk_weight_i pi(y_i)^2 )

    The logged rankings are a uniform sample of the log's, at most so many per query, each standing for N_q / M_q:
    at 10^9 interactions nearly every one has a ranking of its own, and no table of them fits into memory.
    """

    _: KW_ONLY
    ranking_offsets: NDArray[np.int64]
    """The rankings of query q are ranking_offsets[q]:ranking_offsets[q + 1]."""
    rankings: NDArray[np.int32]

    @property
    def row_offsets(self) -> NDArray[np.int64]:
        """The rows of a query are its rankings."""
        return self.ranking_offsets

    def view(self, scores: Array, queries: Array) -> Array:
        """Return pi(y_i) of the given queries' rankings."""
        from saferank.engine.plackett_luce.ranking_probability import log_probabilities

        flat = np.asarray(scores, np.float64)
        return np.exp(log_probabilities(flat, self.offsets, self.ranking_offsets, self.rankings, queries))

    def pull_back(self, scores: Array, x: Array, slope: Array, queries: Array) -> Array:
        """Return d/d scores of sum_i slope_i pi(y_i), by d pi = pi d log pi."""
        from saferank.engine.plackett_luce.ranking_probability import log_probability_vjp

        out = np.zeros(len(scores))
        flat = np.asarray(scores, np.float64)
        log_probability_vjp(flat, self.offsets, self.ranking_offsets, self.rankings, queries, slope * x, out)
        return out
