"""How many interactions of a log certify a policy that is truly better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLIPS = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 50.0, 100.0, 1000.0, math.inf)
"""Largest weights considered; a clip that is chosen on validation clicks finds about the best of them."""
POWER = 0.8
NEVER = 1e12
"""Interactions from which on the answer is that no log will do."""


@dataclass(frozen=True, eq=False)
class Traffic:
    """A share of the interactions for each query, relevances, and the rankings that one way of logging shows."""

    offsets: NDArray[np.int64]
    share: Floats
    """Of each query; they add up to 1."""
    relevance: Floats
    examination: Floats
    logging_exposure: Floats
    rankings: NDArray[np.int64] | None = None
    """(query, sample, rank) -> document, -1 for none, drawn from the logging policy; None if it cannot be drawn from:
    clicks of one impression are then taken to be uncorrelated."""

    def mean(self, weights: Floats) -> float:
        """E[X] of X = sum_d weight(d) c(d), c the clicks of an interaction."""
        return float(self._per_query(weights * self.relevance * self.logging_exposure) @ self.share)

    def second_moment(self, weights: Floats, *, drawn: bool = True) -> float:
        """E[X^2] = sum_d w(d)^2 P(c(d)) + sum over pairs of w(d) w(d') P(c(d), c(d')).

        The first sum is exact. The second is the mean over the drawn rankings, where clicks are independent given the
        ranking (without `drawn`: as if clicks were uncorrelated, which is quicker). The result is kept within what is
        proven for each query, E[X]^2 <= E[X^2] <= min(K, 1 + Z max relevance) * first sum.
        """
        rate = self.relevance * self.logging_exposure
        single, mean = self._per_query(weights**2 * rate), self._per_query(weights * rate)
        if drawn and self.rankings is not None:
            pairs = self._pairs(weights, self.rankings)
        else:
            pairs = mean**2 - self._per_query((weights * rate) ** 2)
        return float(np.clip(single + pairs, mean**2, self._constant * single) @ self.share)

    @cached_property
    def _constant(self) -> Floats:
        ranks = np.minimum(np.diff(self.offsets), len(self.examination))
        total = np.concatenate([[0.0], np.cumsum(self.examination)])[ranks]
        largest = np.maximum.reduceat(self.relevance, self.offsets[:-1])
        constant: Floats = np.minimum(ranks, 1.0 + total * largest)
        return constant

    def _pairs(self, weights: Floats, rankings: NDArray[np.int64]) -> Floats:
        rows = self.offsets[:-1, None, None] + np.maximum(rankings, 0)
        expected = np.where(rankings >= 0, (weights * self.relevance)[rows] * self.examination, 0.0)
        cross: Floats = (expected.sum(axis=2) ** 2 - (expected**2).sum(axis=2)).mean(axis=1)
        return cross

    def _per_query(self, values: Floats) -> Floats:
        sums: Floats = np.add.reduceat(values, self.offsets[:-1])
        return sums


@dataclass(frozen=True)
class Needed:
    """Interactions that certify, and the clip of the weights at which so few do."""

    interactions: float
    """Infinite if no number does."""
    clip: float | None
    """None: no clip."""


def needed_interactions(exposure: Floats, traffic: Traffic, *, shortfall: float, delta: float) -> Needed:
    """Return how many interactions certify, four times in five, that a policy beats the production ranker.

        X = sum_d (min(rho(d) / rho_log(d), W) - 1) c(d),    N = (z_(1 - delta) + z_0.8)^2 Var X / (E X - shortfall)^2

    the least over clips W. E X is at most U(policy) - U(log). `shortfall` = U(now) - U(log) is what randomness costs:
    the policy has to beat the ranker as it is now, not the randomised one; where that is better than now, the policy
    has to beat that. A document that is not logged has the weight -1. Asymptotic: a bound that holds for any N, or at
    every look, needs more.
    """
    logged = traffic.logging_exposure
    ratio = np.divide(exposure, logged, out=np.zeros(len(exposure)), where=logged > 0)
    least = max(shortfall, 0.0)
    factor = (NormalDist().inv_cdf(1.0 - delta) + NormalDist().inv_cdf(POWER)) ** 2

    def needed(clip: float, *, drawn: bool) -> float:
        weights = np.minimum(ratio, clip) - 1.0
        mean = traffic.mean(weights)
        if mean <= least:
            return math.inf
        return factor * max(traffic.second_moment(weights, drawn=drawn) - mean**2, 0.0) / (mean - least) ** 2

    clip = min(CLIPS, key=lambda clip: needed(clip, drawn=False))
    number = needed(clip, drawn=True)
    return Needed(number, None if math.isinf(clip) else clip) if number < NEVER else Needed(math.inf, None)
