"""Exact placement and exposure under a Plackett-Luce policy, and the exact gradient: no ranking is sampled.

Exact up to quadrature error, which is stated: `tolerance` (relative, in the L2 norm over a query's documents; by
default 1e-4 in float32 and 1e-9 in float64) chooses the number of nodes from the range of the scores, or `nodes`
gives it. Computed in float32 for float32 scores, else in float64, with threads over queries.

Scores may be anything but NaN and +inf; a document with score -inf is never placed. Lists shorter than the cutoff
fill as many ranks as they have documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.plackett_luce.exposure_kernel import (
    exp_constants,
    exposure_kernel,
    exposure_vjp_kernel,
    placement_kernel,
)
from saferank.engine.ragged import check_examination, check_offsets, check_scores, over_queries

Array = NDArray[Any]


def placement(
    scores: ArrayLike,
    offsets: ArrayLike,
    cutoff: int,
    *,
    nodes: int | None = None,
    tolerance: float | None = None,
) -> Array:
    """P(rank(d) = k) for each document d (a row) and k = 1 .. cutoff (a column).

    A row sums to the chance that d is shown at all; a column, over one query, to 1 if its list reaches that rank.
    """
    scores, offsets = check_scores(scores), check_offsets(offsets)
    if cutoff < 1:
        raise UsageError(f"cutoff must be at least 1, got {cutoff}.")
    out = np.zeros((len(scores), cutoff), scores.dtype)
    count, cut = accuracy(nodes, tolerance, scores.dtype)
    constants = exp_constants(scores.dtype)

    def run(rows: slice, local: Array) -> None:
        placement_kernel(scores[rows].astype(np.float64), local, cutoff, count, cut, constants, out[rows])

    over_queries(run, scores, offsets, work=cutoff * cutoff)
    return out


def exposure(
    scores: ArrayLike,
    offsets: ArrayLike,
    examination: ArrayLike,
    *,
    nodes: int | None = None,
    tolerance: float | None = None,
) -> Array:
    """Expected examination of each document under a Plackett-Luce policy.

        rho(d) = sum_k examination[k] * P(rank(d) = k)

    By quadrature, with as many nodes per query as `tolerance` needs (1e-4 in float32, 1e-9 in float64), or `nodes`.
    """
    scores, offsets = check_scores(scores), check_offsets(offsets)
    weights = check_examination(examination, scores.dtype)
    out = np.zeros(len(scores), scores.dtype)
    count, cut = accuracy(nodes, tolerance, scores.dtype)
    constants = exp_constants(scores.dtype)

    def run(rows: slice, local: Array) -> None:
        exposure_kernel(scores[rows].astype(np.float64), local, weights, count, cut, constants, out[rows])

    over_queries(run, scores, offsets, work=len(weights))
    return out


def exposure_vjp(
    scores: ArrayLike,
    offsets: ArrayLike,
    examination: ArrayLike,
    cotangent: ArrayLike,
    *,
    nodes: int | None = None,
    tolerance: float | None = None,
) -> Array:
    """Gradient of sum_d cotangent(d) * exposure(d) with respect to the scores.

    With cotangent = d(objective) / d(exposure), this is the gradient of any objective that is a function of exposure.
    """
    return _vjp(scores, offsets, examination, cotangent, nodes, tolerance, None)


def exposure_vjp_with_curvature(
    scores: ArrayLike,
    offsets: ArrayLike,
    examination: ArrayLike,
    cotangent: ArrayLike,
    *,
    nodes: int | None = None,
    tolerance: float | None = None,
) -> tuple[Array, Array]:
    """Gradient of sum_i cotangent(i) * exposure(i) with respect to the scores, and a curvature for Newton steps.

        gradient(d) = sum_i v(i) d rho(i) / d s(d)        curvature(d) = sum_i v(i) |d rho(i) / d s(d)|

    over the documents i of d's query, v(i) being the cotangent less the smallest of the query. Exposure sums to the
    same over a query whatever the scores, so that subtraction leaves the gradient as it is. The curvature is not the
    second derivative, which has both signs, but what a document's score moves in all, gains and losses added. It is at
    least the absolute gradient, so a Newton step is at most one unit, and far less where gains and losses cancel.
    Holds if examination falls with the rank: then a higher score never adds to the exposure of another document.
    """
    offsets = check_offsets(offsets)
    pull = np.asarray(cotangent, dtype=np.float64)
    if len(pull) == offsets[-1] > 0:
        pull = pull - np.repeat(np.minimum.reduceat(pull, offsets[:-1]), np.diff(offsets))
    scores = check_scores(scores)
    curvature = np.zeros(len(scores), scores.dtype)
    return _vjp(scores, offsets, examination, pull, nodes, tolerance, curvature), curvature


def _vjp(
    scores: ArrayLike,
    offsets: ArrayLike,
    examination: ArrayLike,
    cotangent: ArrayLike,
    nodes: int | None,
    tolerance: float | None,
    curvature: Array | None,
) -> Array:
    """Return the gradient, and add the curvature to `curvature` unless it is None."""
    scores, offsets = check_scores(scores), check_offsets(offsets)
    weights = check_examination(examination, scores.dtype)
    pull = np.ascontiguousarray(cotangent, dtype=scores.dtype)
    if pull.shape != scores.shape:
        raise UsageError(f"cotangent must have the shape of scores, {scores.shape}, got {pull.shape}.")
    out = np.zeros(len(scores), scores.dtype)
    count, cut = accuracy(nodes, tolerance, scores.dtype)
    constants = exp_constants(scores.dtype)

    def run(rows: slice, local: Array) -> None:
        given = scores[rows].astype(np.float64)
        apart = None if curvature is None else curvature[rows]
        exposure_vjp_kernel(given, local, weights, pull[rows], count, cut, constants, out[rows], apart)

    over_queries(run, scores, offsets, work=3 * len(weights))
    return out


def accuracy(nodes: int | None, tolerance: float | None, dtype: Any) -> tuple[int, float]:
    """Return the node count (0: to be chosen per query) and the tolerance, defaults filled in."""
    if nodes is not None and nodes < 2:
        raise UsageError(f"nodes must be at least 2, got {nodes}.")
    if tolerance is None:
        tolerance = 1e-4 if dtype == np.float32 else 1e-9
    if not 0 < tolerance < 1:
        raise UsageError(f"tolerance must be between 0 and 1, got {tolerance}.")
    return nodes or 0, float(tolerance)
