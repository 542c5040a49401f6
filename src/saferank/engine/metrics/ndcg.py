"""Discounted cumulative gain: of the ranking by score, and its exact expectation under a policy.

    DCG@k = sum over ranks r = 1..k of gain(label at rank r) / log2(r + 1)
    NDCG@k = DCG@k / (DCG@k of the ranking by label)

Järvelin & Kekäläinen (TOIS 2002); exponential gain: Burges et al. (ICML 2005). All functions return one
value per query; `offsets[q]:offsets[q + 1]` are the documents of query q in the flat arrays.

A query without any relevant document has no NDCG: its value is NaN. Leave such queries out before
(`RankingData.with_relevant_document`) or skip them (`numpy.nanmean`). Counted as 0, they
only measure how many of them there are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.metrics.by_score import (
    Ties,
    checked,
    checked_cutoff,
    exposure_by_score,
    longest_list,
    sum_per_query,
)

Gain = Literal["exponential", "linear"]


def discounts(cutoff: int) -> NDArray[np.float64]:
    """Weight of each rank in DCG: 1 / log2(rank + 1), rank = 1..cutoff."""
    return 1.0 / np.log2(np.arange(2, checked_cutoff(cutoff) + 2))


def gains(labels: ArrayLike, gain: Gain = "exponential") -> NDArray[np.float64]:
    """Worth of a label: 2^label - 1 ("exponential") or the label itself ("linear")."""
    worth = np.asarray(labels, dtype=np.float64)
    if gain == "exponential":
        return np.asarray(np.exp2(worth) - 1.0)
    if gain == "linear":
        return worth
    raise UsageError(f"gain={gain!r} is unknown; choose 'exponential' or 'linear'.")


def ideal_dcg(
    labels: ArrayLike, offsets: ArrayLike, cutoff: int = 5, *, gain: Gain = "exponential"
) -> NDArray[np.float64]:
    """DCG@cutoff of the ranking by label: the highest that each query allows."""
    return dcg_by_score(labels, labels, offsets, cutoff, gain=gain)


def dcg_by_score(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    gain: Gain = "exponential",
    ties: Ties = "average",
) -> NDArray[np.float64]:
    """DCG@cutoff of each query, ranked by descending score; for `ties` see `ndcg_by_score`."""
    scores, labels, offsets = checked(scores, labels, offsets)
    exposure = exposure_by_score(scores, offsets, discounts(cutoff), ties)
    return sum_per_query(exposure * gains(labels, gain), offsets)


def ndcg_by_score(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    gain: Gain = "exponential",
    ties: Ties = "average",
) -> NDArray[np.float64]:
    """NDCG@cutoff of each query, ranked by descending score; NaN without a relevant document.

    ties="average" is the mean over all orders of tied documents, as in scikit-learn: a constant scorer
    gets what a random ranking gets, however the file happens to be sorted. ties="position" keeps tied
    documents in the order given: what a stable sort would show.
    """
    dcg = dcg_by_score(scores, labels, offsets, cutoff, gain=gain, ties=ties)
    return _normalised(dcg, ideal_dcg(labels, offsets, cutoff, gain=gain))


def expected_dcg(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    gain: Gain = "exponential",
) -> NDArray[np.float64]:
    """Expected DCG@cutoff of each query under the Plackett-Luce policy with these scores.

    DCG is linear in the placement of documents, so its expectation is an exposure:

        E[DCG] = sum_d gain(d) rho(d),  rho with the DCG discounts as examination
    """
    from saferank.engine.plackett_luce import exposure

    scores, labels, offsets = checked(scores, labels, offsets)
    rho = exposure(scores, offsets, discounts(cutoff)[: longest_list(offsets)])
    return sum_per_query(rho * gains(labels, gain), offsets)


def expected_ndcg(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    gain: Gain = "exponential",
) -> NDArray[np.float64]:
    """Expected NDCG@cutoff of each query under the Plackett-Luce policy; NaN without a relevant document."""
    dcg = expected_dcg(scores, labels, offsets, cutoff, gain=gain)
    return _normalised(dcg, ideal_dcg(labels, offsets, cutoff, gain=gain))


def _normalised(dcg: NDArray[np.float64], ideal: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(dcg, ideal, out=np.full_like(dcg, np.nan), where=ideal > 0)
