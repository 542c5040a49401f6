"""A fitted curve with what an interval around it needs: how each pair pulls at it, and how firmly it holds it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MEMORY = 1 << 22
"""Numbers held at once in a block of queries' curvatures."""

FURTHEST = 7.0
"""Logarithm of the factor, about 1000, by which a replicate may leave the estimate: one that lost a rank's clicks knows
nothing, and its Newton step may be any size."""


@dataclass(frozen=True, eq=False)
class CurveFit:
    """The logarithm of a curve at the maximum of a likelihood that is a sum over pairs.

    With its relevance at its own maximum, a pair's part of the likelihood has in log examination, for both methods,

        gradient  pull,    Hessian  -(diag(hold) - hold hold' / total)
    """

    log_curve: NDArray[np.float64]
    """0 at the first rank."""
    pull: NDArray[np.float64]
    """(pair, rank)."""
    hold: NDArray[np.float64]
    """(pair, rank)."""
    total: NDArray[np.float64]
    """Sum of the pair's hold; infinite if its relevance stands at its limit and does not give way."""
    iterations: int
    converged: bool


def curvature(hold: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus the Hessian of the likelihood, summed over the pairs."""
    return np.diag(hold.sum(axis=0)) - hold.T @ (hold / total[:, None])


def bootstrap(
    fit: CurveFit, query: NDArray[np.int64], replicates: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return (replicate, rank): the log curve refitted to logs of resampled queries, by one Newton step each.

    Each query enters a replicate a Poisson(1) number of times; its pairs stay together. One step from the full
    log's maximum is as good as the refit but for terms that vanish faster than the interval does (Andrews, 2002,
    "Higher-order improvements of a computationally attractive k-step bootstrap", Econometrica 70). Gradient and
    Hessian are sums over queries, so all replicates together take two products of matrices, and no pass over the
    pairs each.
    """
    ranks = len(fit.log_curve)
    pull, hold = np.zeros((replicates, ranks)), np.zeros((replicates, ranks, ranks))
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    ends = np.append(starts[1:], len(query))
    first = 0
    while first < len(starts):
        last = max(first + 1, int(np.searchsorted(ends, starts[first] + MEMORY // ranks**2, side="right")))
        rows = slice(starts[first], ends[last - 1])
        local = starts[first:last] - starts[first]
        of_pair = fit.hold[rows]
        outer = of_pair[:, :, None] * (of_pair / fit.total[rows, None])[:, None, :]
        hessian = -np.add.reduceat(outer, local, axis=0)
        hessian[:, np.arange(ranks), np.arange(ranks)] += np.add.reduceat(of_pair, local, axis=0)
        times = rng.poisson(1.0, (replicates, last - first)).astype(np.float64)
        pull += times @ np.add.reduceat(fit.pull[rows], local, axis=0)
        hold += (times @ hessian.reshape(last - first, -1)).reshape(hold.shape)
        first = last
    # A replicate may lack a rank altogether: a trace of the full log keeps the system solvable, and that rank in place.
    hold += 1e-6 * np.diag(fit.hold.sum(axis=0) + 1e-300)
    # 0 for all pairs together, unless EM's curve stands at its limit: what holds it there holds the replicates, too.
    pull -= fit.pull.sum(axis=0)
    step = np.zeros((replicates, ranks))
    step[:, 1:] = np.linalg.solve(hold[:, 1:, 1:], pull[:, 1:, None])[:, :, 0]
    return fit.log_curve + np.clip(step, -FURTHEST, FURTHEST)
