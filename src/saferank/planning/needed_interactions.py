"""How many interactions of a log certify a policy that is truly better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLIPS = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 50.0, math.inf)
"""Largest weights considered; a clip that is chosen on validation clicks finds about the best of them."""
POWER = 0.8


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

    def second_moment(self, weights: Floats) -> float:
        """E[X^2] = sum_d w(d)^2 P(c(d)) + sum over pairs of w(d) w(d') P(c(d), c(d')).

        The first sum is exact. The second is the mean over the drawn rankings, where clicks are independent given the
        ranking; the result is kept within what is proven, E[X]^2 <= E[X^2] <= min(K, 1 + Z max relevance) * first sum.
        """
        rate = self.relevance * self.logging_exposure
        single = self._per_query(weights**2 * rate)
        if self.rankings is None:
            pairs = self._per_query(weights * rate) ** 2 - self._per_query((weights * rate) ** 2)
        else:
            pairs = self._pairs(weights)
        ranks = np.minimum(np.diff(self.offsets), len(self.examination))
        total = np.concatenate([[0.0], np.cumsum(self.examination)])[ranks]
        constant = np.minimum(ranks, 1.0 + total * np.maximum.reduceat(self.relevance, self.offsets[:-1]))
        return float(np.clip(single + pairs, self._per_query(weights * rate) ** 2, constant * single) @ self.share)

    def _pairs(self, weights: Floats) -> Floats:
        assert self.rankings is not None
        rows = self.offsets[:-1, None, None] + np.maximum(self.rankings, 0)
        expected = np.where(self.rankings >= 0, (weights * self.relevance)[rows] * self.examination, 0.0)
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

        X = sum_d (min(rho(d) / rho_log(d), W) - 1) c(d),        N = (z_(1 - delta) + z_0.8)^2 Var X / (E X - shortfall)^2

    the least over clips W. E X is at most U(policy) - U(log); `shortfall` = U(now) - U(log) is what randomness costs,
    so that the policy has to beat the ranker as it is now, not the randomised one. A document that is not logged has
    the weight -1. Asymptotic: a bound that is valid for any N, or at every look, needs more.
    """
    ratio = np.divide(exposure, traffic.logging_exposure, out=np.zeros(len(exposure)), where=traffic.logging_exposure > 0)
    factor = (NormalDist().inv_cdf(1.0 - delta) + NormalDist().inv_cdf(POWER)) ** 2
    best = Needed(math.inf, None)
    for clip in CLIPS:
        weights = np.minimum(ratio, clip) - 1.0
        mean = traffic.mean(weights)
        if mean <= shortfall:
            continue
        variance = max(traffic.second_moment(weights) - mean**2, 0.0)
        needed = factor * variance / (mean - shortfall) ** 2
        if needed < best.interactions:
            best = Needed(needed, None if math.isinf(clip) else clip)
    return best
