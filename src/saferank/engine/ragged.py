"""Ragged arrays: documents of all queries lie flat, and `offsets[q]:offsets[q + 1]` are those of query q.

Offsets, sums per query, checks, and threads over queries.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Array = NDArray[Any]
_SMALLEST_TASK = 1 << 14  # documents * work: below that a second thread costs more than it brings
_pool: ThreadPoolExecutor | None = None


def offsets_of(lengths: ArrayLike) -> NDArray[np.int64]:
    """Where each list begins if lists of these lengths lie one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def query_of_document(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index of the query that each document belongs to."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def place_in_query(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each document among those of its query, from 0."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def flat_rows(offsets: NDArray[np.int64], queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the given queries' documents in the flat arrays, query after query."""
    lengths = np.diff(offsets)[queries]
    rows: NDArray[np.int64] = np.repeat(offsets[:-1][queries], lengths) + place_in_query(offsets_of(lengths))
    return rows


def query_indices(queries: ArrayLike) -> NDArray[np.int64]:
    """Indices of chosen queries, given as such or as a boolean mask over all of them."""
    chosen = np.asarray(queries)
    return np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)


def query_sums(values: Array, offsets: NDArray[np.int64], *, dtype: Any = None) -> Array:
    """Sum over the documents of each query (first axis); 0 for a query without a document.

    Values of type bool need a `dtype`, such as `np.int64`, to be counted.
    """
    some = np.diff(offsets) > 0
    if len(some) and some.all():
        return np.add.reduceat(values, offsets[:-1], axis=0, dtype=dtype)
    sums = np.zeros((len(some), *values.shape[1:]), dtype or values.dtype)
    if some.any():
        sums[some] = np.add.reduceat(values, offsets[:-1][some], axis=0, dtype=dtype)
    return sums


def within_queries(values: Array, offsets: NDArray[np.int64], weight: Array | None = None) -> Array:
    """Return the values less their mean over the query, weighted if there are weights."""
    weight = np.ones(len(values)) if weight is None else weight
    mean = query_sums(weight * values, offsets) / np.maximum(query_sums(weight, offsets), np.finfo(np.float64).tiny)
    centred: Array = values - np.repeat(mean, np.diff(offsets))
    return centred


def check_scores(scores: ArrayLike) -> Array:
    """Return scores as a contiguous float32 or float64 array, or raise if one is NaN or +inf."""
    array = np.asarray(scores)
    array = np.ascontiguousarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)
    if array.ndim != 1:
        raise UsageError(f"scores must be flat, one per document, got shape {array.shape}.")
    if len(array) and not array.max() < np.inf:
        bad = int(np.flatnonzero(~(array < np.inf))[0])
        raise UsageError(f"scores[{bad}] is {array[bad]}; a score must be a number below infinity.")
    return array


def check_offsets(offsets: ArrayLike) -> NDArray[np.int64]:
    """Return offsets as int64, or raise unless they start at 0 and rise: no query is empty."""
    array = np.ascontiguousarray(offsets, dtype=np.int64)
    if array.ndim != 1 or len(array) < 1 or array[0] != 0 or np.any(np.diff(array) < 1):
        raise UsageError("offsets must start at 0 and rise, one entry more than queries; no query may be empty.")
    return array


def check_examination(examination: ArrayLike, dtype: Any) -> Array:
    """Return examination as a flat array of at least one finite weight, or raise."""
    array = np.ascontiguousarray(examination, dtype=dtype)
    if array.ndim != 1 or len(array) == 0 or not np.isfinite(array).all():
        raise UsageError("examination must be a list of at least one finite number, one per rank.")
    return array


def ranks_by_score(scores: Array, offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the rank of each document within its query by descending score, from 1; ties keep their order."""
    order = np.lexsort((-scores, query_of_document(offsets)))
    rank = np.empty(len(scores), np.int32)
    rank[order] = place_in_query(offsets) + 1
    return rank


def tie_groups(scores: Array, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each document the best rank, from 1, of those of its query with its score, and their number."""
    query, rank = query_of_document(offsets), ranks_by_score(scores, offsets).astype(np.int64)
    order = offsets[query] + rank - 1  # place of the document if all were sorted
    by_place = np.empty(len(order), np.int64)
    by_place[order] = np.arange(len(order))
    begins = np.ones(len(order), np.bool_)
    same_query = query[by_place[1:]] == query[by_place[:-1]]
    begins[1:] = ~same_query | (scores[by_place[1:]] != scores[by_place[:-1]])
    group = (np.cumsum(begins) - 1)[order]
    return rank[by_place[np.flatnonzero(begins)]][group], np.bincount(group)[group]


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """Threads to use: SAFERANK_THREADS, or else one per core."""
    return int(os.environ.get("SAFERANK_THREADS", 0)) or core_count()


def over_queries(
    run: Callable[[slice, NDArray[np.int64]], None], scores: Array, offsets: NDArray[np.int64], *, work: int
) -> None:
    """Call run(documents, their offsets counted from 0) for runs of whole queries, on several threads.

    Each query is computed alone, so the result does not depend on the number of threads.
    """
    if offsets[-1] != len(scores):
        raise UsageError(f"offsets end at {offsets[-1]}, but there are {len(scores)} scores.")
    queries = len(offsets) - 1
    threads = thread_count()
    tasks = int(min(queries, 4 * threads, 1 + len(scores) * work // _SMALLEST_TASK))
    if len(scores) == 0:
        return
    if tasks == 1 or threads == 1:
        run(slice(0, len(scores)), offsets)
        return
    cuts = np.searchsorted(offsets, np.linspace(0, len(scores), tasks + 1))
    cuts[0], cuts[-1] = 0, queries
    pieces = [(a, b) for a, b in pairwise(cuts) if b > a]
    futures = [
        _threads(threads).submit(run, slice(offsets[a], offsets[b]), offsets[a : b + 1] - offsets[a]) for a, b in pieces
    ]
    for future in futures:
        future.result()


def _threads(count: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    global _pool
    if _pool is None or _pool._max_workers != count:
        _pool = ThreadPoolExecutor(count, thread_name_prefix="saferank")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_forget_pool)
