"""What each held-out interaction says about the improvement: the paired difference to the logging policy."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.types.click_patterns import ClickPatterns

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Differences:
    """Terms X_i, whose mean estimates U(new) - U(logging), as distinct values with how often each was seen.

        X_i = sum_d (rho(d) / rho_0(d) - 1) c_i(d)

    Where users repeat, a term is the sum over the interactions of one user (a unit), and `sizes` says how many those
    are. The mean is per interaction in either case; what is independent are the terms.
    """

    values: Floats
    counts: NDArray[np.int64] | Floats
    """Whole numbers, unless values were condensed."""
    low: float
    high: float
    """Limits of one interaction's X."""
    second_moment: dict[str, float] = field(default_factory=dict)
    """Upper limit of E[X^2] by the exposure divergence, with the constant `paper` and with `proven`."""
    sizes: Floats | None = None
    """Interactions of each term; 1 if None."""
    guess: float = 1.0
    """Variance of a term that was guessed beforehand, from other interactions. A wrong one costs width only."""
    salt: str = ""
    """What tells this log from others with the same terms: a bound that takes them in some order draws it by this."""

    @cached_property
    def terms(self) -> int:
        """How many independent terms there are."""
        return round(float(self.counts.sum()))

    @cached_property
    def interactions(self) -> int:
        """N: how many interactions there are."""
        return self.terms if self.sizes is None else round(float(self.counts @ self.sizes))

    @cached_property
    def mean(self) -> float:
        """The estimate of the improvement, in clicks per interaction; 0 if there is no interaction."""
        return float(self.values @ self.counts) / self.interactions if self.interactions else 0.0

    @cached_property
    def variance(self) -> float:
        """Sample variance of a term around the mean of its size, with n - 1 below; NaN below two terms."""
        if self.terms < 2:
            return float("nan")
        expected = self.mean if self.sizes is None else self.mean * self.sizes
        return float(np.square(self.values - expected) @ self.counts) / (self.terms - 1)

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN below two terms."""
        return math.sqrt(self.variance * self.terms) / self.interactions

    @property
    def largest_size(self) -> float:
        """Interactions of the largest term."""
        return 1.0 if self.sizes is None else float(self.sizes.max(initial=1.0))

    def negated(self) -> Differences:
        """Return -X: a lower bound of its mean is minus an upper bound of the mean of X."""
        return replace(self, values=-self.values, low=-self.high, high=-self.low)


def weighted_differences(
    patterns: ClickPatterns,
    weights: Floats,
    *,
    low: float,
    high: float,
    second_moment: dict[str, float] | None = None,
) -> Differences:
    """Return the terms of patterns whose clicked documents weigh so much; one per unit where patterns have units."""
    sums = patterns.sums(weights)
    counts: NDArray[np.int64]
    if patterns.unit is None:
        values, place = np.unique(sums, return_inverse=True)
        counts = np.bincount(place.ravel(), patterns.interactions, len(values)).astype(np.int64)
        return Differences(values, counts, low, high, second_moment or {}, salt=_salt(patterns))
    units = int(patterns.unit.max(initial=-1)) + 1
    values = np.bincount(patterns.unit, sums * patterns.interactions, units).astype(np.float64)
    sizes = np.bincount(patterns.unit, patterns.interactions, units).astype(np.float64)
    seen = sizes > 0
    terms, counts = np.unique(np.stack([values[seen], sizes[seen]]), axis=1, return_counts=True)
    return Differences(terms[0], counts, low, high, second_moment or {}, sizes=terms[1], salt=_salt(patterns))


def _salt(patterns: ClickPatterns) -> str:
    """Return a digest of which documents were clicked together, how often."""
    digest = hashlib.sha256()
    for values in (patterns.query, patterns.documents, patterns.interactions):
        digest.update(values.tobytes())
    return digest.hexdigest()


def paired_differences(
    patterns: ClickPatterns,
    offsets: NDArray[np.int64],
    exposure: Floats,
    logging_exposure: Floats,
    examination: Floats,
    *,
    clip: float = 0.0,
) -> Differences:
    """Return the differences of the given held-out interactions, the logging exposure being known.

    Unbiased for position-based clicks if `logging_exposure` is that of the policy that made the log and clip = 0.
    Clipping it up to `clip` only lowers X where rho > 0, so a lower bound stays one. A document with rho_0 = 0 gets
    the weight -1, as if clipped to infinity: if it was shown after all, it counts against the new policy.
    """
    if clip < 0:
        raise UsageError(f"got clip {clip}, but an exposure to clip up to cannot be negative.")
    weights = difference_weights(exposure, logging_exposure, clip)
    cutoff = len(examination)
    per_query = np.bincount(patterns.query, patterns.interactions, len(offsets) - 1).astype(np.float64, copy=False)
    possible = logging_exposure > 0
    return weighted_differences(
        patterns,
        weights,
        low=float(extreme_sums(np.where(possible, weights, -1.0), offsets, cutoff).min(initial=0.0)),
        high=float(-extreme_sums(np.where(possible, -weights, 1.0), offsets, cutoff).min(initial=0.0)),
        second_moment=second_moments(weights, logging_exposure, offsets, examination, per_query),
    )


def difference_weights(exposure: Floats, logging_exposure: Floats, clip: float = 0.0) -> Floats:
    """rho / max(rho_0, clip) - 1, and -1 where rho_0 = 0."""
    ratio = np.zeros(len(exposure))
    np.divide(exposure, np.maximum(logging_exposure, clip), out=ratio, where=logging_exposure > 0)
    return ratio - 1.0


def extreme_sums(weights: Floats, offsets: NDArray[np.int64], cutoff: int) -> Floats:
    """Return for each query the least sum that a set of at most `cutoff` of its documents can have."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((weights, query))
    within = np.arange(len(weights)) - np.repeat(offsets[:-1], np.diff(offsets))
    least = np.where(within < cutoff, np.minimum(weights[order], 0.0), 0.0)
    sums: Floats = np.add.reduceat(least, offsets[:-1])
    return sums


def second_moments(
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
