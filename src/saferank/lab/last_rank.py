"""The logging exposure with the last rank from the policy's scores, as the paper's authors compute it later on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.jit import jit
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.ragged import check_scores
from saferank.engine.types.log_statistics import LogStatistics

Array = NDArray[Any]


def last_rank_known_exposure(
    statistics: LogStatistics, scores: ArrayLike, examination: ArrayLike
) -> NDArray[np.float64]:
    """Frequency estimate of the logging exposure, but for the last rank, which the Plackett-Luce scores give.

        rho_0(d) = sum_{k<K} examination[k] shown(d, k) / N_q  +  examination[K] mean_y P(d at rank K | y_1 .. y_{K-1})

    The mean goes over the query's rankings y that the log retains, and P is the logging policy's own choice among what
    y has not shown yet. So did the code that the paper's authors published with their later paper (CIKM 2024). Unbiased
    as the plain frequencies are, but positive for every document of a query that was issued, if it could be shown.
    Lists that end before rank K have no last rank to replace.
    """
    rankings = statistics.require_rankings()
    values = check_scores(scores).astype(np.float64)
    if values.shape != (statistics.documents,):
        raise UsageError(f"scores of shape {values.shape} for a log of {statistics.documents} documents.")
    weights = np.array(examination, dtype=np.float64)
    last, weights[-1] = weights[-1], 0.0
    counted = estimated_logging_exposure(statistics, weights)
    kept = np.repeat(np.maximum(statistics.kept, 1), np.diff(statistics.offsets))
    sums = _last_rank_sums(values, statistics.offsets, rankings.query, rankings.ranking)
    return np.asarray(counted + last * sums / kept)


@jit
def _last_rank_sums(scores: Array, offsets: Array, queries: Array, rankings: Array) -> Array:
    """Return, for each document, the sum over its query's rankings of its chance to be chosen for the last rank."""
    sums = np.zeros(len(scores))
    last = rankings.shape[1] - 1
    for i in range(len(rankings)):
        if rankings[i, last] < 0:
            continue
        first, end = offsets[queries[i]], offsets[queries[i] + 1]
        left = scores[first:end].copy()
        for rank in range(last):
            left[rankings[i, rank]] = -np.inf
        left = np.exp(left - left.max())
        sums[first:end] += left / left.sum()
    return sums
