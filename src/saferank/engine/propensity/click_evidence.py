"""What the clicks say about the relevance of each document, and how much weight that has in a regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.types.log_statistics import LogStatistics

LARGEST_MEAN = 0.99
"""Mean relevance is lowered to it: the variance m (1 - m) must not vanish."""


@dataclass(frozen=True, eq=False)
class ClickEvidence:
    """One value per document."""

    relevance: NDArray[np.float64]
    """clicks / examined: unbiased for position-based clicks; 0 where nothing was examined."""
    weight: NDArray[np.float64]
    """Weight in a regression, in expected clicks; 0 where nothing was examined."""


def click_evidence(
    log: LogStatistics, examination: NDArray[np.float64], beta: NDArray[np.float64] | None = None
) -> ClickEvidence:
    """Return clicks / examined, weighted by the inverse of its variance around what a regression can predict.

        examined(d) = sum_k examination[k] shown(d, k)
        weight(d)   = m * m (1 - m) / (v + m (1 - m) / examined(d))

    m is the mean relevance of what was examined, and v the variance of relevance between documents, by the method of
    moments: what is left of that of clicks / examined without the part that chance has, for a relevance of m,

        v = max(0, sum_d examined(d) ((clicks(d) / examined(d) - m)^2 - chance(d))) / sum_d examined(d)
        chance(d) = sum_k shown(d, k) examination[k] m (1 - examination[k] m) / examined(d)^2

    With few clicks the weight is m examined(d), the expected clicks; with many, all documents approach the same
    weight, so that those shown most often do not dominate the regression. Without any click all weights are 0. With
    trust bias, alpha = examination - beta takes the place of examination, clicks(d) - sum_k beta[k] shown(d, k) that of
    clicks, and both variances grow as those of a click with chance alpha[k] m + beta[k] do.
    """
    alpha = examination if beta is None else examination - beta
    times, squared = examined(log, alpha), examined(log, np.square(alpha))
    clicks, seen, total = log.clicks.astype(np.float64), times > 0, times.sum()
    if beta is not None:
        clicks -= examined(log, beta)
    relevance = np.divide(clicks, times, out=np.zeros(len(clicks)), where=seen)
    mean = min(float(clicks[seen].sum() / total), LARGEST_MEAN) if total > 0 else 0.0
    if mean <= 0:
        return ClickEvidence(relevance, np.zeros(len(clicks)))
    by_trust = np.zeros(len(clicks))
    if beta is not None:
        np.divide(examined(log, beta * (1 - beta - 2 * mean * alpha)), times, out=by_trust, where=seen)
    by_chance = float(np.sum(mean * (1 - mean * squared[seen] / times[seen]) + by_trust[seen]))
    variance = max(float(times @ (relevance - mean) ** 2) - by_chance, 0.0) / total
    noise = np.divide(mean * (1 - mean) + by_trust, times, out=np.full(len(clicks), np.inf), where=seen)
    return ClickEvidence(relevance, mean * mean * (1 - mean) / (variance + noise))
