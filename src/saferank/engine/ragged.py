"""Checks of ragged arrays, ranks within their queries, and threads over them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError

Array = NDArray[Any]
_SMALLEST_TASK = 1 << 14  # documents * work: below that a second thread costs more than it brings
_pool: ThreadPoolExecutor | None = None


def check_scores(scores: ArrayLike) -> Array:
    """Return scores as a contiguous float32 or float64 array, or raise if one is NaN or +inf."""
    array = np.asarray(scores)
    array = np.ascontiguousarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)
    if array.ndim != 1:
        raise UsageError(f"scores must be flat, one a document, got shape {array.shape}.")
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
        raise UsageError("examination must be a list of at least one finite number, one a rank.")
    return array


def ranks_by_score(scores: Array, offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the rank of each document within its query by descending score, from 1; ties keep their order."""
    lengths = np.diff(offsets)
    order = np.lexsort((-scores, np.repeat(np.arange(len(lengths)), lengths)))
    rank = np.empty(len(scores), np.int32)
    rank[order] = np.arange(len(scores)) - np.repeat(offsets[:-1], lengths) + 1
    return rank


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """Threads to use: SAFERANK_THREADS, or else one a core."""
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
    global _pool
    if _pool is None or _pool._max_workers != count:
        _pool = ThreadPoolExecutor(count, thread_name_prefix="saferank")
    return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_forget_pool)
