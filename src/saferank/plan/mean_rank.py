"""The production ranker as its log describes it, where its scores are not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saferank.engine.types.log_statistics import LogStatistics


def mean_rank_scores(statistics: LogStatistics) -> NDArray[np.float64]:
    """Return minus the mean rank of each document, where not being shown counts as rank K + 1."""
    beyond = statistics.cutoff + 1
    ranks = np.arange(1, beyond)
    interactions = np.repeat(statistics.interactions, np.diff(statistics.offsets))
    total = statistics.shown @ ranks + beyond * (interactions - statistics.times_shown)
    mean: NDArray[np.float64] = np.full(len(total), float(beyond))
    np.divide(total, interactions, out=mean, where=interactions > 0)
    return -mean
