"""What each held-out interaction says about the improvement: the paired difference to the logging policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from saferank.data.click_patterns import ClickPatterns
from saferank.errors import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Differences:
    """Terms X_i, whose mean estimates U(new) - U(logging), as distinct values with how often each was seen.

        X_i = sum_d (rho(d) / rho_0(d) - 1) c_i(d)

    `low` and `high` are limits of X that the two policies alone decide, whatever is clicked: X >= low >= -K always.
    """

    values: Floats
    counts: NDArray[np.int64] | Floats
    """Whole numbers, unless values were condensed."""
    low: float
    high: float
    second_moment: dict[str, float]
    """Upper limit of E[X^2] by the exposure divergence, with the constant `paper` and with `proven`."""
    unsupported_exposure: float = 0.0
    """Share of the new policy's exposure on documents that the logging policy never shows, so far as is known."""
    clipped_clicks: float = 0.0
    """Share of the clicks whose weight was lowered by clipping rho_0 up."""

    @cached_property
    def interactions(self) -> int:
        """N: how many interactions there are."""
        return round(float(self.counts.sum()))

    @cached_property
    def mean(self) -> float:
        """The estimate of the improvement, in clicks per interaction; 0 if there is no interaction."""
        return float(self.values @ self.counts) / self.interactions if self.interactions else 0.0

    @cached_property
    def variance(self) -> float:
        """Sample variance, with N - 1 in the denominator; NaN below two interactions."""
        if self.interactions < 2:
            return float("nan")
        return float(np.square(self.values - self.mean) @ self.counts) / (self.interactions - 1)

    def negated(self) -> Differences:
        """Return -X: a lower bound of its mean is minus an upper bound of the mean of X."""
        return replace(self, values=-self.values, low=-self.high, high=-self.low)


def paired_differences(
    patterns: ClickPatterns,
    offsets: NDArray[np.int64],
    exposure: Floats,
    logging_exposure: Floats,
    examination: Floats,
    *,
    clip: float = 0.0,
) -> Differences:
    """Return the differences of the given held-out interactions.

    Unbiased for position-based clicks if `logging_exposure` is that of the policy that made the log and clip = 0.
    Clipping it up to `clip` only lowers X where rho > 0, so a lower bound stays one. A document with rho_0 = 0 gets
    the weight -1, as if clipped to infinity: if it was shown after all, it counts against the new policy.
    """
    if clip < 0:
        raise UsageError(f"got clip {clip}, but an exposure to clip up to cannot be negative.")
    weights = difference_weights(exposure, logging_exposure, clip)
    values, place = np.unique(patterns.sums(weights), return_inverse=True)
    queries, cutoff = len(offsets) - 1, len(examination)
    per_query = np.bincount(patterns.query, patterns.interactions, queries).astype(np.float64, copy=False)
    possible = logging_exposure > 0
    low = _extreme_sums(np.where(possible, weights, -1.0), offsets, cutoff)
    high = _extreme_sums(np.where(possible, -weights, 1.0), offsets, cutoff)
    clicks = patterns.interactions.repeat(np.diff(patterns.bounds))
    clipped = logging_exposure[patterns.documents] < clip
    exposed = np.add.reduceat(exposure, offsets[:-1]) @ per_query
    unsupported = np.add.reduceat(np.where(possible, 0.0, exposure), offsets[:-1]) @ per_query
    return Differences(
        values=values,
        counts=np.bincount(place.ravel(), weights=patterns.interactions, minlength=len(values)).astype(np.int64),
        low=float(low.min(initial=0.0)),
        high=float(-high.min(initial=0.0)),
        second_moment=_second_moments(weights, logging_exposure, offsets, examination, per_query),
        unsupported_exposure=float(unsupported / exposed) if exposed > 0 else 0.0,
        clipped_clicks=float(clicks[clipped].sum() / max(clicks.sum(), 1)),
    )


def difference_weights(exposure: Floats, logging_exposure: Floats, clip: float = 0.0) -> Floats:
    """rho / max(rho_0, clip) - 1, and -1 where rho_0 = 0."""
    ratio = np.zeros(len(exposure))
    np.divide(exposure, np.maximum(logging_exposure, clip), out=ratio, where=logging_exposure > 0)
    return ratio - 1.0


def _extreme_sums(weights: Floats, offsets: NDArray[np.int64], cutoff: int) -> Floats:
    """Return for each query the least sum that a set of at most `cutoff` of its documents can have."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((weights, query))
    within = np.arange(len(weights)) - np.repeat(offsets[:-1], np.diff(offsets))
    least = np.where(within < cutoff, np.minimum(weights[order], 0.0), 0.0)
    sums: Floats = np.add.reduceat(least, offsets[:-1])
    return sums


def _second_moments(
    weights: Floats, logging_exposure: Floats, offsets: NDArray[np.int64], examination: Floats, per_query: Floats
) -> dict[str, float]:
    """E[X^2] <= c sum_d (rho/rho_0 - 1)^2 rho_0, averaged over the queries as they were issued.

    c = min(K, 1 + Z) holds ("proven"): split E[X^2 | y] into the variance and the squared mean given the ranking y,
    and use Cauchy-Schwarz on the latter. c = 1 ("paper") leaves out the squared mean.
    """
    divergence = np.add.reduceat(np.square(weights) * logging_exposure, offsets[:-1])
    ranks = np.minimum(np.diff(offsets), len(examination))
    constant = np.minimum(ranks, 1.0 + np.concatenate([[0.0], np.cumsum(examination)])[ranks])
    total = max(per_query.sum(), 1.0)
    return {
        "paper": float(divergence @ per_query / total),
        "proven": float((constant * divergence) @ per_query / total),
    }
