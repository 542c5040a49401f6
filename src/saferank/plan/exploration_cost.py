"""What showing other rankings costs, from the clicks of a log."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics
from saferank.plan.relevance_posterior import RelevancePosterior

Floats = NDArray[np.float64]

LARGEST_WEIGHT = 10.0
"""Weights of clicks are cut here in the upper limit, which only raises it: a lucky click must not make it small."""


@dataclass(frozen=True)
class ExplorationCost:
    """Clicks per interaction that a policy earns less than the one that made the log; negative if it earns more."""

    estimate: float
    """Under the posterior mean of the relevances, those of never-shown documents included."""
    at_most: float
    """Upper confidence limit that takes never-shown documents to earn no click at all."""


def exploration_cost(
    exposure: Floats,
    statistics: LogStatistics,
    patterns: ClickPatterns,
    posterior: RelevancePosterior,
    examination: Floats,
    *,
    confidence: float = 0.95,
) -> ExplorationCost:
    """Return the cost of a policy with this exposure.

        estimate = (1/N) sum_q N_q sum_d relevance(d) (rho_log(d) - rho(d)),    rho_log(d) = examined(d) / N_q
        at_most  = mean of X_i + z * standard error,    X_i = sum_d c_i(d) (1 - min(rho(d) / rho_log(d), 10))

    The second weights the clicks of the log itself. Given what was shown it is not below the cost in expectation, for
    position-based clicks under this examination, however the log was made; the normal quantile z is asymptotic.
    """
    examined = statistics.shown @ examination
    interactions = np.repeat(statistics.interactions, np.diff(statistics.offsets)).astype(np.float64)
    lost = posterior.mean * (examined - exposure * interactions)
    ratio = np.divide(exposure * interactions, examined, out=np.zeros(len(examined)), where=examined > 0)
    terms = patterns.sums(1.0 - np.minimum(ratio, LARGEST_WEIGHT))
    total = patterns.total_interactions
    mean = float(terms @ patterns.interactions) / total
    variance = float((terms - mean) ** 2 @ patterns.interactions) / max(total - 1, 1)
    return ExplorationCost(
        estimate=float(lost.sum()) / statistics.total_interactions,
        at_most=mean + NormalDist().inv_cdf(confidence) * float(np.sqrt(variance / total)),
    )
