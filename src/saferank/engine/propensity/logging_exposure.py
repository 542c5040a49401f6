"""How the logging policy treated each document: counted from the log, or exact where the policy's scores are known."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine import plackett_luce
from saferank.engine.errors import UsageError
from saferank.engine.jit import jit
from saferank.engine.ragged import check_scores
from saferank.engine.types.log_statistics import LogStatistics

Array = NDArray[Any]


def examined(statistics: LogStatistics, examination: ArrayLike) -> NDArray[np.float64]:
    """Expected number of times that each document was examined: sum_k examination[k] * shown(d, k)."""
    weights = np.asarray(examination, dtype=np.float64)
    if weights.shape != (statistics.cutoff,):
        raise UsageError(f"examination of shape {weights.shape} for a log of {statistics.cutoff} ranks.")
    total = np.zeros(statistics.documents)
    for rank, weight in enumerate(weights):
        total += weight * statistics.shown[:, rank]
    return total


def estimated_logging_exposure(statistics: LogStatistics, examination: ArrayLike) -> NDArray[np.float64]:
    """Frequency estimate of the logging exposure (Gupta et al., SIGIR 2023, section 6).

        rho_0(d) = examined(d) / N_q = sum_k examination[k] * shown(d, k) / N_q,    and 0 where q was never issued

    Unbiased for each query that was issued; 0 for a document that was never shown.
    """
    total = examined(statistics, examination)
    interactions = np.repeat(statistics.interactions, np.diff(statistics.offsets))
    return np.divide(total, interactions, out=total, where=interactions > 0)


def known_logging_exposure(scores: ArrayLike, offsets: ArrayLike, examination: ArrayLike) -> NDArray[np.float64]:
    """Exact exposure under the Plackett-Luce logging policy with these scores."""
    return plackett_luce.exposure(np.asarray(scores), offsets, examination).astype(np.float64)


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
    if statistics.rankings is None:
        raise UsageError("the last rank's exposure needs single rankings; simulate with keep_rankings.")
    values = check_scores(scores).astype(np.float64)
    if values.shape != (statistics.documents,):
        raise UsageError(f"scores of shape {values.shape} for a log of {statistics.documents} documents.")
    weights = np.array(examination, dtype=np.float64)
    last, weights[-1] = weights[-1], 0.0
    counted = estimated_logging_exposure(statistics, weights)
    kept = np.repeat(np.maximum(statistics.kept, 1), np.diff(statistics.offsets))
    sums = _last_rank_sums(values, statistics.offsets, statistics.rankings.query, statistics.rankings.ranking)
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


def action_propensity(statistics: LogStatistics, *, ranks: Literal["all", "paper"] = "all") -> NDArray[np.float64]:
    """Estimated probability of each of the log's kept rankings, as if its ranks were filled independently.

        pi_0(y) = product over k of shown(y_k, k) / N_q

    Over all ranks that y fills (`all`, the default), so that with one rank it is the frequency of what was shown,
    and with more the frequency of the whole display if its ranks were independent. The paper prints the product up
    to rank K - 1 (`paper`), which leaves the choice of the last document out: right for permutations of all
    documents, whose last one is given by the others, but too large by that factor for a top K of longer lists.
    """
    if ranks not in ("all", "paper"):
        raise UsageError(f"ranks must be 'all' or 'paper', got {ranks!r}.")
    if statistics.rankings is None:
        raise UsageError("action propensities need single rankings; simulate with keep_rankings.")
    ranking = statistics.rankings.ranking
    rows = statistics.rankings.rows(statistics.offsets)
    interactions = statistics.interactions[statistics.rankings.query]
    propensity = np.ones(len(ranking))
    for rank in range(statistics.cutoff - (ranks == "paper")):
        share = statistics.shown[rows[:, rank], rank] / interactions
        propensity *= np.where(ranking[:, rank] >= 0, share, 1.0)
    return propensity
