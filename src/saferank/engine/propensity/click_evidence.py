"""What the clicks say about the relevance of each document, and how much that weighs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.types.log_statistics import LogStatistics


@dataclass(frozen=True, eq=False)
class ClickEvidence:
    """One value per document."""

    relevance: NDArray[np.float64]
    """clicks / examined: unbiased for position-based clicks; 0 where nothing was examined."""
    weight: NDArray[np.float64]
    """How much it counts in a regression, in expected clicks; 0 where nothing was examined."""


def click_evidence(log: LogStatistics, examination: NDArray[np.float64]) -> ClickEvidence:
    """Return clicks / examined, weighted by the inverse of its variance around what a regression can predict.

        examined(d) = sum_k examination[k] shown(d, k)
        weight(d)   = m * m (1 - m) / (v + m (1 - m) / examined(d))

    m is the mean relevance of what was examined, and v how far documents differ from it, by the method of moments: the
    spread of clicks / examined beyond what chance explains. With few clicks the weight grows with what was examined;
    with many, every document counts the same, and not the best shown ones alone.
    """
    examined = log.shown @ np.asarray(examination, np.float64)
    clicks, seen = log.clicks.astype(np.float64), examined > 0
    relevance = np.divide(clicks, examined, out=np.zeros(len(clicks)), where=seen)
    total = examined.sum()
    mean = min(float(clicks.sum() / total), 0.99) if total > 0 else 0.0
    if mean <= 0:
        return ClickEvidence(relevance, np.zeros(len(clicks)))
    spread = float(examined @ (relevance - mean) ** 2 - mean * seen.sum()) / total
    noise = np.divide(mean * (1 - mean), examined, out=np.full(len(clicks), np.inf), where=seen)
    return ClickEvidence(relevance, mean * mean * (1 - mean) / (max(spread, 0.0) + noise))
