"""The examination curve: the chance that each rank is examined."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError

Constant = Literal["paper", "proven"]
"""c in a risk term: the paper's 1, or min(K, 1 + Z) (see `risk_constant`), with which it is a bound."""


def inverse_rank(cutoff: int = 5, power: float = 2.0) -> NDArray[np.float64]:
    """Examination 1 / k^power for the ranks k = 1 .. cutoff.

    The defaults are the users that the paper simulates, and say nothing about those of a log.
    """
    if cutoff < 1:
        raise UsageError(f"got cutoff {cutoff}, but a ranking has at least 1 rank.")
    if not 0.0 <= power < np.inf:
        raise UsageError(f"got power {power}, but examination 1/k^power needs a number from 0 up.")
    return np.arange(1, cutoff + 1, dtype=np.float64) ** -float(power)


def check_probabilities(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return values as a flat float64 array, or raise if one is not in [0, 1]."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise UsageError(f"{name} must be flat, got shape {array.shape}.")
    bad = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))
    if len(bad):
        raise UsageError(f"{name}[{bad[0]}] is {array[bad[0]]:g}, but a probability lies between 0 and 1.")
    return array


def examination_of_ranks(rank: NDArray[np.int32], examination: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the examination of each rank, counted from 1; 0 beyond the last one."""
    return np.where(rank <= len(examination), examination[np.minimum(rank, len(examination)) - 1], 0.0)


def total_examination(examination: NDArray[np.float64], documents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Z of queries with so many documents: the sum of the examination over the ranks that a list fills."""
    ranks = np.minimum(documents, len(examination))
    return np.concatenate([[0.0], np.cumsum(examination)])[ranks]


def risk_constant(examination: NDArray[np.float64], documents: NDArray[np.int64]) -> NDArray[np.float64]:
    """c = min(K, 1 + Z) of queries with so many documents, K being the ranks that a list fills.

    E[X^2] <= c sum_d w(d)^2 rho_0(d) for X = sum_d w(d) c(d), the weighted clicks of one interaction, if clicks are
    position-based and independent given the ranking y: split E[X^2 | y] into the variance and the squared mean, and
    use Cauchy-Schwarz on the latter. The paper's c = 1 leaves out the squared mean (docs/guarantees.md).
    """
    return np.minimum(np.minimum(documents, len(examination)), 1.0 + total_examination(examination, documents))
