"""How the logging policy treated each document: counted from the log, or exact where the policy's scores are known."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine import plackett_luce
from saferank.engine.errors import UsageError
from saferank.engine.types.log_statistics import LogStatistics


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
    rankings = statistics.require_rankings()
    ranking, rows = rankings.ranking, rankings.rows(statistics.offsets)
    interactions = statistics.interactions[rankings.query]
    propensity = np.ones(len(ranking))
    for rank in range(statistics.cutoff - (ranks == "paper")):
        share = statistics.shown[rows[:, rank], rank] / interactions
        propensity *= np.where(ranking[:, rank] >= 0, share, 1.0)
    return propensity
