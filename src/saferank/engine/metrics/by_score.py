"""The ranking by descending score: which documents it puts where, and how much weight that gives them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.ragged import ranks_by_score

Ties = Literal["average", "position"]


def checked(
    scores: ArrayLike, labels: ArrayLike, offsets: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the flat arrays of a metric as such, or say what about them cannot be measured."""
    scores = np.asarray(scores, dtype=np.float64)
    labels = np.asarray(labels, dtype=np.float64)
    offsets = np.asarray(offsets, dtype=np.int64)
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise UsageError("offsets must start at 0 and never fall, with one entry more than there are queries.")
    for name, values in (("scores", scores), ("labels", labels)):
        if values.shape != (offsets[-1],):
            raise UsageError(f"{name} have shape {values.shape}, but offsets end at {offsets[-1]}.")
    if len(bad := np.flatnonzero(np.isnan(scores) | (scores == np.inf))):
        raise UsageError(f"document {bad[0]} has score {scores[bad[0]]}; a score is a number or -inf.")
    if len(bad := np.flatnonzero(~np.isfinite(labels) | (labels < 0))):
        raise UsageError(f"document {bad[0]} has label {labels[bad[0]]}; a label is a number from 0 up.")
    return scores, labels, offsets


def checked_cutoff(cutoff: int) -> int:
    """Return the cutoff, or raise unless it is at least 1."""
    if cutoff < 1:
        raise UsageError(f"cutoff is {cutoff}, but a ranking has at least 1 rank.")
    return cutoff


def longest_list(offsets: NDArray[np.int64]) -> int:
    """Documents of the longest query: a policy needs no more ranks than that, whatever the cutoff."""
    return int(np.diff(offsets).max(initial=1))


def sum_per_query(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum the documents' values within each query; a query without documents has sum 0."""
    queries = len(offsets) - 1
    query = np.repeat(np.arange(queries), np.diff(offsets))
    return np.bincount(query, weights=values, minlength=queries).astype(np.float64, copy=False)


def tied_ranks(
    scores: NDArray[np.float64], offsets: NDArray[np.int64], ties: Ties
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last rank, counted from 1, that each document can take in the ranking of its query.

    Tied documents share the ranks of their group with ties="average"; with ties="position" they keep
    the order in which they are given, so that first and last rank agree.
    """
    if ties not in ("average", "position"):
        raise UsageError(f"ties={ties!r} is unknown; choose 'average' or 'position'.")
    rank = ranks_by_score(scores, offsets).astype(np.int64)
    if ties == "position" or len(scores) == 0:
        return rank, rank
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.empty(len(scores), dtype=np.int64)
    order[offsets[:-1][query] + rank - 1] = np.arange(len(scores))
    begins = np.ones(len(scores), dtype=np.bool_)
    begins[1:] = (np.diff(query) != 0) | (scores[order][1:] != scores[order][:-1])
    group = np.empty(len(scores), dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    first = rank[order][begins][group]
    return first, first + np.bincount(group)[group] - 1


def exposure_by_score(
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    examination: NDArray[np.float64],
    ties: Ties,
) -> NDArray[np.float64]:
    """Examination of each document in the ranking by descending score; tied documents share theirs.

    The limit of the Plackett-Luce exposure as scores are multiplied by an ever larger constant, if
    ties="average". Documents with score -inf are left out of the ranking, as they are by the policy.
    """
    first, last = tied_ranks(scores, offsets, ties)
    cumulated = np.concatenate([[0.0], np.cumsum(examination)])
    cutoff = len(examination)
    shared = cumulated[np.minimum(last, cutoff)] - cumulated[np.minimum(first - 1, cutoff)]
    return np.where(scores == -np.inf, 0.0, shared / (last - first + 1))
