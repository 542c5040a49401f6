"""Reciprocal rank: of the ranking by score, and its exact expectation under a policy.

    RR@k = 1 / (rank of the first relevant document), or 0 if that is beyond rank k

A document is relevant if its label is at least `threshold`. One value per query; 0 for a query without
any relevant document.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.metrics.by_score import Ties, checked, checked_cutoff, longest_list, tied_ranks


def reciprocal_rank_by_score(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    threshold: float = 1.0,
    ties: Ties = "average",
) -> NDArray[np.float64]:
    """RR@cutoff of each query, ranked by descending score; for `ties` see `ndcg_by_score`.

    Where r of m tied documents are relevant, the places of the tie are filled one by one: the next holds
    a relevant document with probability r / (places left), as long as none has come before.
    """
    cutoff = checked_cutoff(cutoff)
    scores, labels, offsets = checked(scores, labels, offsets)
    first, last = tied_ranks(scores, offsets, ties)
    relevant = np.flatnonzero((labels >= threshold) & (scores > -np.inf))
    values = np.zeros(len(offsets) - 1)
    if len(relevant) == 0:
        return values
    queries, starts, counts = _runs(np.searchsorted(offsets, relevant, side="right") - 1)
    begin = np.minimum.reduceat(first[relevant], starts)
    places = np.minimum.reduceat(last[relevant], starts) - begin + 1
    in_tie = np.add.reduceat(first[relevant] == np.repeat(begin, counts), starts, dtype=np.int64)

    none_yet = np.ones(len(queries))
    for place in range(min(cutoff, int(places.max()))):
        relevant_here = np.minimum(in_tie / np.maximum(places - place, 1), 1.0)
        rank = begin + place
        values[queries] += np.where(rank <= cutoff, none_yet * relevant_here / rank, 0.0)
        none_yet *= 1.0 - relevant_here
    return values


def expected_reciprocal_rank(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    threshold: float = 1.0,
) -> NDArray[np.float64]:
    """Expected RR@cutoff of each query under the Plackett-Luce policy with these scores.

    Not linear in exposure. But in a race of exponential clocks the first of the relevant documents
    arrives like a single document whose weight is the sum of theirs, independently of the others. So

        E[RR] = sum_k P(rank(merged) = k) / k

    where `merged` competes with the documents that are not relevant.
    """
    from saferank.engine.plackett_luce import placement

    cutoff = checked_cutoff(cutoff)
    scores, labels, offsets = checked(scores, labels, offsets)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    shown = scores > -np.inf
    relevant = np.flatnonzero(shown & (labels >= threshold))
    values = np.zeros(len(offsets) - 1)
    if len(relevant) == 0:
        return values
    queries, starts, counts = _runs(query[relevant])
    peak = np.maximum.reduceat(scores[relevant], starts)
    weight = np.add.reduceat(np.exp(scores[relevant] - np.repeat(peak, counts)), starts)

    merged = relevant[starts]
    merged_scores = scores.copy()
    merged_scores[merged] = peak + np.log(weight)
    has_relevant = np.isin(np.arange(len(values)), queries)
    kept = shown & (labels < threshold) & has_relevant[query]
    kept[merged] = True
    merged_offsets = np.concatenate([[0], np.cumsum(np.bincount(query[kept])[queries])])
    row = np.cumsum(kept)[merged] - 1
    ranks = min(cutoff, longest_list(merged_offsets))
    at_rank = placement(merged_scores[kept], merged_offsets, ranks)[row]
    values[queries] = at_rank @ (1.0 / np.arange(1, ranks + 1))
    return values


def _runs(
    query: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct values of a sorted array, where the run of each begins, and how long it is."""
    queries, starts, counts = np.unique(query, return_index=True, return_counts=True)
    return queries, starts, counts
