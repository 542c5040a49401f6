"""What each held-out interaction says about the improvement: the paired difference to the logging policy."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import risk_constant
from saferank.engine.ragged import place_in_query, query_of_document
from saferank.engine.types.click_patterns import ClickPatterns

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Differences:
    """Terms X_i, whose mean estimates U(new) - U(logging), as distinct values with how often each was seen.

        X_i = sum_d (rho(d) / rho_0(d) - 1) c_i(d)

    Where users repeat, a term is the sum over the interactions of one user (a unit), and `sizes` says how many those
    are, or count as. The mean is per interaction in either case; what is independent are the terms.
    """

    values: Floats
    counts: NDArray[np.int64] | Floats
    """Whole numbers, unless values were condensed."""
    low: float
    high: float
    """Limits of one interaction's X."""
    second_moment: dict[str, float] = field(default_factory=dict)
    """See `second_moments`."""
    sizes: Floats | None = None
    """Interactions of each term; 1 if None."""
    guess: float = 1.0
    """Variance of a term that was guessed beforehand, from other interactions. A wrong one costs width only."""
    salt: str = ""
    """Distinguishes this log from others with the same terms; seeds the random order in which a bound takes them."""

    @cached_property
    def terms(self) -> int:
        """Number of independent terms."""
        return round(float(self.counts.sum()))

    @cached_property
    def interactions(self) -> int:
        """N, the number of interactions."""
        return self.terms if self.sizes is None else round(float(self.counts @ self.sizes))

    @cached_property
    def mean(self) -> float:
        """The estimate of the improvement, in clicks per interaction; 0 if there is no interaction."""
        return float(self.values @ self.counts) / self.interactions if self.interactions else 0.0

    @cached_property
    def variance(self) -> float:
        """Sample variance of a term around the mean times its size, divided by n - 1; NaN below two terms."""
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

    def at_most(self, per_unit: float) -> Differences:
        """Return the terms with each unit counted as at most so many interactions: larger ones are scaled down."""
        if self.sizes is None or per_unit == math.inf:
            return self
        scale = np.minimum(per_unit / self.sizes, 1.0)
        return replace(self, values=self.values * scale, sizes=self.sizes * scale)


def paired_differences(
    patterns: ClickPatterns,
    weights: Floats,
    *,
    low: float,
    high: float,
    second_moment: dict[str, float],
) -> Differences:
    """Return the terms of patterns, by the weight rho/rho_0 - 1 of each document; one per unit if there are units."""
    sums = patterns.sums(weights)
    counts: NDArray[np.int64]
    if patterns.unit is None:
        values, place = np.unique(sums, return_inverse=True)
        counts = np.bincount(place.ravel(), patterns.interactions, len(values)).astype(np.int64)
        return Differences(values, counts, low, high, second_moment, salt=_salt(patterns))
    units = int(patterns.unit.max(initial=-1)) + 1
    values = np.bincount(patterns.unit, sums * patterns.interactions, units).astype(np.float64)
    sizes = np.bincount(patterns.unit, patterns.interactions, units).astype(np.float64)
    seen = sizes > 0
    terms, counts = np.unique(np.stack([values[seen], sizes[seen]]), axis=1, return_counts=True)
    return Differences(terms[0], counts, low, high, second_moment, sizes=terms[1], salt=_salt(patterns))


def _salt(patterns: ClickPatterns) -> str:
    """Return a digest of how often each query was issued, and each document clicked; segments do not change it."""
    digest = hashlib.sha256()
    clicks = np.bincount(patterns.documents, np.repeat(patterns.interactions, np.diff(patterns.offsets)))
    for values in (np.bincount(patterns.query, patterns.interactions), clicks):
        digest.update(values.astype(np.int64).tobytes())
    return digest.hexdigest()


def extreme_sums(weights: Floats, offsets: NDArray[np.int64], cutoff: int) -> tuple[float, float]:
    """Return the least and the largest sum of weights that at most `cutoff` documents of one query can have."""
    return least_sum(weights, offsets, cutoff), -least_sum(-weights, offsets, cutoff)


def least_sum(weights: Floats, offsets: NDArray[np.int64], cutoff: int) -> float:
    """Return the least sum of weights that at most `cutoff` documents of one query can have."""
    order, shown = np.lexsort((weights, query_of_document(offsets))), place_in_query(offsets) < cutoff
    least = np.where(shown, np.minimum(weights[order], 0.0), 0.0)
    return float(np.add.reduceat(least, offsets[:-1]).min(initial=0.0))


def second_moments(
    weights: Floats, logging_exposure: Floats, offsets: NDArray[np.int64], examination: Floats, per_query: Floats
) -> dict[str, float]:
    """Upper limits of E[X^2], averaged over the queries as they were issued (`per_query` times each).

    c sum_d (rho(d)/rho_0(d) - 1)^2 rho_0(d),    c = min(K, 1 + Z) ("proven", see `risk_constant`), or 1 ("paper")
    """
    divergence = np.add.reduceat(np.square(weights) * logging_exposure, offsets[:-1])
    constant = risk_constant(examination, np.diff(offsets))
    total = max(per_query.sum(), 1.0)
    return {
        "paper": float(divergence @ per_query / total),
        "proven": float((constant * divergence) @ per_query / total),
    }


def effective_number(counts: NDArray[np.int64], weights: Floats) -> float:
    """Kish's (sum w)^2 / sum w^2, each weight counted so many times: how many equal weights they are worth."""
    squares = float(counts @ np.square(weights))
    return float(counts @ weights) ** 2 / squares if squares > 0 else 0.0
