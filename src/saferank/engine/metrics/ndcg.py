"""Discounted cumulative gain: of the ranking by score, and its exact expectation under a policy.

    DCG@k = sum over ranks r = 1..k of gain(label at rank r) / log2(r + 1)
    NDCG@k = DCG@k / (DCG@k of the ranking by label)

Järvelin & Kekäläinen (TOIS 2002); exponential gain: Burges et al. (ICML 2005). All functions return one value per
query; `offsets[q]:offsets[q + 1]` are the documents of query q in the flat arrays.

The NDCG of a query without a relevant document is NaN: leave such queries out (`RankingData.with_relevant_document`),
or average with `numpy.nanmean`. The code that the authors of the paper published later gives them 0 and keeps them in
the mean, which scales the mean by the share of the other queries.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine import plackett_luce
from saferank.engine.errors import UsageError
from saferank.engine.ragged import check_offsets, check_scores, query_of_document, tie_groups

Gain = Literal["exponential", "linear"]
Floats = NDArray[np.float64]


def discounts(cutoff: int) -> Floats:
    """Weight of each rank in DCG: 1 / log2(rank + 1), rank = 1..cutoff."""
    if cutoff < 1:
        raise UsageError(f"cutoff is {cutoff}, but a ranking has at least 1 rank.")
    return 1.0 / np.log2(np.arange(2, cutoff + 2))


def gains(labels: ArrayLike, gain: Gain = "exponential") -> Floats:
    """Gain of each label: 2^label - 1 ("exponential") or the label itself ("linear")."""
    values = np.asarray(labels, dtype=np.float64)
    if gain == "exponential":
        return np.asarray(np.exp2(values) - 1.0)
    if gain == "linear":
        return values
    raise UsageError(f"gain={gain!r} is unknown; choose 'exponential' or 'linear'.")


def dcg_by_score(
    scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike, cutoff: int = 5, *, gain: Gain = "exponential"
) -> Floats:
    """DCG@cutoff of each query, ranked by descending score: the mean over all orders of tied documents."""
    scores, labels, offsets = _checked(scores, labels, offsets)
    return _sum_per_query(_exposure_by_score(scores, offsets, discounts(cutoff)) * gains(labels, gain), offsets)


def expected_dcg(
    scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike, cutoff: int = 5, *, gain: Gain = "exponential"
) -> Floats:
    """Expected DCG@cutoff of each query under the Plackett-Luce policy with these scores.

    DCG is linear in the placement of documents, so its expectation is an exposure:

        E[DCG] = sum_d gain(d) rho(d),  rho with the DCG discounts as examination
    """
    scores, labels, offsets = _checked(scores, labels, offsets)
    longest = int(np.diff(offsets).max(initial=1))  # no query fills more ranks, whatever the cutoff
    return _sum_per_query(
        plackett_luce.exposure(scores, offsets, discounts(cutoff)[:longest]) * gains(labels, gain), offsets
    )


def ideal_dcg(labels: ArrayLike, offsets: ArrayLike, cutoff: int = 5, *, gain: Gain = "exponential") -> Floats:
    """DCG@cutoff of the ranking by label: the highest that each query allows."""
    return dcg_by_score(labels, labels, offsets, cutoff, gain=gain)


def ndcg_by_score(
    scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike, cutoff: int = 5, *, gain: Gain = "exponential"
) -> Floats:
    """NDCG@cutoff of each query, ranked by descending score; NaN without a relevant document.

    The mean over all orders of tied documents, as in scikit-learn: a constant scorer gets what a random ranking gets,
    however the file happens to be sorted.
    """
    dcg = dcg_by_score(scores, labels, offsets, cutoff, gain=gain)
    return _normalised(dcg, ideal_dcg(labels, offsets, cutoff, gain=gain))


def expected_ndcg(
    scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike, cutoff: int = 5, *, gain: Gain = "exponential"
) -> Floats:
    """Expected NDCG@cutoff of each query under the Plackett-Luce policy; NaN without a relevant document."""
    dcg = expected_dcg(scores, labels, offsets, cutoff, gain=gain)
    return _normalised(dcg, ideal_dcg(labels, offsets, cutoff, gain=gain))


def normalised_gains(labels: ArrayLike, offsets: ArrayLike, cutoff: int = 5) -> Floats:
    """Exponential gain of each document, divided by the ideal DCG@cutoff of its query; 0 without a relevant document.

    Their sum, weighted by exposure with the DCG discounts as examination, is the expected NDCG.
    """
    ideal = np.repeat(ideal_dcg(labels, offsets, cutoff), np.diff(np.asarray(offsets)))
    return np.divide(gains(labels), ideal, out=np.zeros_like(ideal), where=ideal > 0)


def _normalised(dcg: Floats, ideal: Floats) -> Floats:
    return np.divide(dcg, ideal, out=np.full_like(dcg, np.nan), where=ideal > 0)


def _checked(scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike) -> tuple[Floats, Floats, NDArray[np.int64]]:
    scores = check_scores(np.asarray(scores, dtype=np.float64))
    labels = np.asarray(labels, dtype=np.float64)
    offsets = check_offsets(offsets)
    for name, values in (("scores", scores), ("labels", labels)):
        if values.shape != (offsets[-1],):
            raise UsageError(f"{name} have shape {values.shape}, but offsets end at {offsets[-1]}.")
    if len(bad := np.flatnonzero(~np.isfinite(labels) | (labels < 0))):
        raise UsageError(f"document {bad[0]} has label {labels[bad[0]]}; a label is a number from 0 up.")
    return scores, labels, offsets


def _sum_per_query(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    return np.bincount(query_of_document(offsets), values, len(offsets) - 1).astype(np.float64, copy=False)


def _exposure_by_score(scores: Floats, offsets: NDArray[np.int64], examination: Floats) -> Floats:
    """Examination of each document in the ranking by descending score; tied documents share theirs.

    The limit of the Plackett-Luce exposure as scores are multiplied by an ever larger constant. Documents with score
    -inf are left out of the ranking, as they are by the policy.
    """
    first, size = tie_groups(scores, offsets)
    cumulated = np.concatenate([[0.0], np.cumsum(examination)])
    before, last = (np.minimum(rank, len(examination)) for rank in (first - 1, first - 1 + size))
    return np.where(scores == -np.inf, 0.0, (cumulated[last] - cumulated[before]) / size)
