"""Rules that keep the logging policy unless a bound shows that the learned one is better: SEA and GENSPEC."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.delta import checked_delta
from saferank.engine.objectives.action_ips import stands_for
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.types.log_statistics import LogStatistics


@dataclass(frozen=True)
class Bounded:
    """A mean over interactions, and the width of its one-sided confidence bounds."""

    mean: float
    width: float


def bounded_clicks(log: LogStatistics, weight: NDArray[np.float64], delta: float) -> Bounded:
    """Return the mean of X_i = sum_d weight(d) c_i(d), with the width of Maurer and Pontil (COLT 2009, Theorem 4).

        sqrt( 2 V ln(2/delta) / N ) + 7 b ln(2/delta) / (3 (N - 1)),    b = K (max(weight, 0) - min(weight, 0))

    V is the sample variance. The mean comes from the counts of all N interactions, V from the single ones that the log
    retains, each standing for N_q / M_q.
    """
    rankings = log.require_rankings()
    n = log.total_interactions
    mean = float(weight @ log.clicks) / max(n, 1)
    if n < 2:
        return Bounded(mean, math.inf)
    terms = np.where(rankings.clicks, weight[rankings.rows(log.offsets)], 0.0).sum(axis=1)
    times = stands_for(log)
    centre = float(times @ terms) / n
    variance = float(times @ np.square(terms - centre)) / (n - 1)
    span = log.cutoff * (max(float(weight.max()), 0.0) - min(float(weight.min()), 0.0))
    logarithm = math.log(2.0 / checked_delta(delta))
    return Bounded(mean, math.sqrt(2.0 * variance * logarithm / n) + 7.0 * span * logarithm / (3.0 * (n - 1)))


def sea(log: LogStatistics, ratio: NDArray[np.float64], delta: float) -> bool:
    """Whether the lower bound of the new policy is above the upper bound of the logging policy, each at delta/2.

    The deployment rule of Safe Exploration (Jagerman, Markov & de Rijke, TOIS 2020). `ratio` is rho(d) / rho_0(d).
    """
    new, current = bounded_clicks(log, ratio, delta / 2), bounded_clicks(log, np.ones_like(ratio), delta / 2)
    return new.mean - new.width > current.mean + current.width


def genspec(log: LogStatistics, ratio: NDArray[np.float64], delta: float) -> bool:
    """Whether the lower bound of the difference to the logging policy is above 0.

    The rule by which GENSPEC (Oosterhuis & de Rijke, WWW 2021) leaves the logging policy for the general one. It also
    specialises on single queries; here test queries have no clicks, so there is nothing to specialise on.
    """
    gain = bounded_clicks(log, ratio - 1.0, delta)
    return gain.mean - gain.width > 0


DEPLOYMENT_RULES: dict[str, Callable[[LogStatistics, NDArray[np.float64], float], bool]] = {
    "sea": sea,
    "genspec": genspec,
}


def exposure_ratio(
    log: LogStatistics, exposure: NDArray[np.float64], logging_exposure: NDArray[np.float64]
) -> NDArray[np.float64]:
    """rho(d) / max(rho_0(d), tau), tau as in training: raising rho_0 only lowers the estimate of the new policy."""
    ratio: NDArray[np.float64] = exposure / np.maximum(logging_exposure, training_clip(log.total_interactions))
    return ratio
