"""A fitted curve with what an interval around it needs: each pair's gradient and curvature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEMORY = 1 << 22
"""Numbers held at once in a block of queries' curvatures."""

FURTHEST = 7.0
"""Largest change of log examination in a replicate, a factor of about 1000: a replicate that lost all clicks of a rank
does not determine that rank, and its Newton step may be any size."""


@dataclass(frozen=True, eq=False)
class CurveFit:
    """The logarithm of a curve at the maximum of a likelihood that is a sum over query-document pairs.

    With the relevance of each pair at its own maximum, a pair's log-likelihood as a function of log examination has,
    for both methods,

        gradient g,    Hessian -(diag(w) - w w' / total)
    """

    log_curve: Floats
    """0 at the first rank."""
    gradient: Floats
    """(pair, rank): g."""
    weight: Floats
    """(pair, rank): w."""
    total: Floats
    """Sum of the pair's w; infinite if its relevance is at its upper limit, and so does not change with the curve."""
    iterations: int
    converged: bool


def curvature(weight: Floats, total: Floats) -> Floats:
    """Return minus the Hessian of the log-likelihood, summed over the pairs: sum of diag(w) - w w' / total."""
    return np.diag(weight.sum(axis=0)) - weight.T @ (weight / total[:, None])


def bootstrap(fit: CurveFit, query: NDArray[np.int64], replicates: int, rng: np.random.Generator) -> Floats:
    """Return (replicate, rank): the log curve refitted to logs of resampled queries, by one Newton step each.

    Each query enters a replicate a Poisson(1) number of times; its pairs stay together. One step from the full
    log's maximum is as good as the refit but for terms that vanish faster than the interval does (Andrews, 2002,
    "Higher-order improvements of a computationally attractive k-step bootstrap", Econometrica 70). Gradient and
    Hessian are sums over queries, so two matrix products serve all replicates at once.
    """
    ranks = len(fit.log_curve)
    gradient, hessian = np.zeros((replicates, ranks)), np.zeros((replicates, ranks, ranks))
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    ends = np.append(starts[1:], len(query))
    first = 0
    while first < len(starts):
        last = max(first + 1, int(np.searchsorted(ends, starts[first] + MEMORY // ranks**2, side="right")))
        rows = slice(starts[first], ends[last - 1])
        local = starts[first:last] - starts[first]
        weight = fit.weight[rows]
        outer = weight[:, :, None] * (weight / fit.total[rows, None])[:, None, :]
        per_query = -np.add.reduceat(outer, local, axis=0)
        per_query[:, np.arange(ranks), np.arange(ranks)] += np.add.reduceat(weight, local, axis=0)
        times = rng.poisson(1.0, (replicates, last - first)).astype(np.float64)
        gradient += times @ np.add.reduceat(fit.gradient[rows], local, axis=0)
        hessian += (times @ per_query.reshape(last - first, -1)).reshape(hessian.shape)
        first = last
    # A replicate may lack a rank altogether: a trace of the full log keeps the system solvable, and that rank in place.
    hessian += 1e-6 * np.diag(fit.weight.sum(axis=0) + 1e-300)
    # The full log's gradient is 0, unless EM's curve is at its limit: the replicates are then held there, too.
    gradient -= fit.gradient.sum(axis=0)
    step = np.zeros((replicates, ranks))
    step[:, 1:] = np.linalg.solve(hessian[:, 1:, 1:], gradient[:, 1:, None])[:, :, 0]
    return fit.log_curve + np.clip(step, -FURTHEST, FURTHEST)
