"""What showing other rankings costs, from the clicks of a log."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from saferank.engine.bounds.differences import Differences
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
"""Of the upper limit of a cost."""
LARGEST_WEIGHT = 10.0
"""Weights of clicks are clipped here in the upper limit, which only raises it: a lucky click must not make it small."""


@dataclass(frozen=True, eq=False)
class RelevancePosterior:
    """Relevance of each document by empirical Bayes.

        relevance(d) = typical(d) * theta,    theta ~ Gamma(trust + clicks(d), rate trust + expected(d))

    `typical` is the mean relevance at the ranks where the document was shown, `expected` the clicks that a typical
    document would have had there, and v = 1 / trust the variance of relevance / typical between documents, by moments.
    For a document that was never shown, the trend over the shown ranks is extrapolated to its rank by score.

    Holds for position-based clicks, taken as Poisson: where a third of what is examined is clicked, means are shrunk
    by some 10% too much. An infinite trust: documents at the same ranks differ no more than by chance.
    """

    typical: Floats
    clicks: NDArray[np.int64]
    expected: Floats
    trust: float

    @property
    def mean(self) -> Floats:
        """Posterior mean of each relevance, at most 1."""
        if math.isinf(self.trust):
            return np.minimum(self.typical, 1.0)
        return np.minimum(self.typical * (self.clicks + self.trust) / (self.expected + self.trust), 1.0)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw relevances from the posterior: unlike their means, they differ as much as documents really do."""
        if math.isinf(self.trust):
            return self.mean
        theta = rng.gamma(self.clicks + self.trust) / (self.expected + self.trust)
        return np.minimum(self.typical * theta, 1.0)


def relevance_posterior(
    statistics: LogStatistics, examination: Floats, rank_by_score: NDArray[np.int32]
) -> RelevancePosterior:
    """Return the posterior given the counts of a log under this examination; ranks by score count from 1."""
    examined = statistics.shown.sum(axis=0) * examination
    at_rank = np.divide(statistics.clicked.sum(axis=0), examined, out=np.zeros(len(examination)), where=examined > 0)
    shown = (statistics.shown @ at_rank) / np.maximum(statistics.times_shown, 1)
    typical = np.where(statistics.times_shown > 0, shown, _trend(at_rank, examined, rank_by_score))
    expected = typical * (statistics.shown @ examination)
    # E[(clicks - expected)^2] = expected - squares + v (expected^2 - squares), with at most one click each time.
    squares = typical**2 * (statistics.shown @ examination**2)
    excess = float(((statistics.clicks - expected) ** 2 - expected + squares).sum())
    information = float((expected**2 - squares).sum())
    trust = information / excess if excess > 0.0 and information > 0.0 else math.inf
    return RelevancePosterior(typical, statistics.clicks, expected, trust)


def _trend(at_rank: Floats, examined: Floats, rank: NDArray[np.int32]) -> Floats:
    """Mean relevance at a rank: log relevance linear in rank, falling or level, fitted to the clicks of each rank.

    Half a click is added to each rank that was examined, so that one without any counts as low, not as unknown.
    """
    ranks = np.arange(1, len(at_rank) + 1, dtype=np.float64)
    clicks = np.where(examined > 0, at_rank * examined + 0.5, 0.0)  # a log rate has variance 1 / clicks
    if clicks.sum() == 0.0:
        return np.zeros(len(rank))
    logs = np.log(clicks / np.maximum(examined, 1.0), out=np.zeros(len(ranks)), where=clicks > 0)
    centre, level = np.average(ranks, weights=clicks), np.average(logs, weights=clicks)
    curvature = float(clicks @ (ranks - centre) ** 2)
    slope = min(float(clicks @ ((ranks - centre) * (logs - level))) / curvature, 0.0) if curvature > 0 else 0.0
    trend: Floats = np.exp(level + slope * (np.maximum(rank, len(ranks)) - centre))
    return trend


def exploration_cost(
    exposure: Floats,
    statistics: LogStatistics,
    patterns: ClickPatterns,
    posterior: RelevancePosterior,
    examination: Floats,
) -> tuple[float, float]:
    """Return the clicks per interaction that a policy with this exposure loses against the log, and an upper limit.

        estimate = (1/N) sum_q N_q sum_d relevance(d) (rho_log(d) - rho(d)),    rho_log(d) = examined(d) / N_q
        at_most  = mean of X_i + z * standard error,    X_i = sum_d c_i(d) (1 - min(rho(d) / rho_log(d), 10))

    Both are negative for a gain, and the second is not below the first. The first rests on the posterior mean of the
    relevances, those of never-shown documents included. The second weights the clicks of the log itself, as if
    never-shown documents were never clicked. Given what was shown it is not below the cost in expectation, for
    position-based clicks under this examination, however the log was made; the normal quantile z is asymptotic.
    """
    examined = statistics.shown @ examination
    interactions = np.repeat(statistics.interactions, np.diff(statistics.offsets)).astype(np.float64)
    lost = posterior.mean * (examined - exposure * interactions)
    ratio = np.divide(exposure * interactions, examined, out=np.zeros(len(examined)), where=examined > 0)
    terms = patterns.sums(1.0 - np.minimum(ratio, LARGEST_WEIGHT))
    paired = Differences(terms, patterns.interactions, low=-math.inf, high=math.inf)
    error = math.sqrt(paired.variance / paired.interactions)
    estimate = float(lost.sum()) / statistics.total_interactions
    return estimate, max(estimate, paired.mean + NormalDist().inv_cdf(CONFIDENCE) * error)
