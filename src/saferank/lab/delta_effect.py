"""What delta can do to exposure CRM: how far from the logging policy its optimum lies, by arithmetic."""

import math

import numpy as np
from numpy.typing import NDArray

from saferank.engine.delta import checked_delta
from saferank.engine.ragged import query_sums, within_queries

Floats = NDArray[np.float64]


def risk_weight(delta: float, interactions: float) -> float:
    """lambda = sqrt( (1 - delta) / (delta N) ): what the paper's risk multiplies the root of Z d2 by."""
    return math.sqrt((1.0 - checked_delta(delta)) / (delta * interactions))


def reward_spread(reward: Floats, logging_exposure: Floats, offsets: NDArray[np.int64], weight: Floats) -> float:
    """sigma = sqrt( sum_q weight_q sum_d rho_0(d) (r(d) - mean_q r)^2 ), the means with weights rho_0.

    `weight` is each query's share of the interactions. All that moving exposure among the documents of a query can
    gain, per root of the divergence that it costs.
    """
    squares = query_sums(logging_exposure * within_queries(reward, offsets, logging_exposure) ** 2, offsets)
    return math.sqrt(float(weight @ squares))


def optimal_shift(delta: float, interactions: float, spread: float) -> float:
    """How far the optimum of exposure CRM is from the logging policy, as a share of its exposure.

        sqrt( mean of (rho / rho_0 - 1)^2 ) = sigma / sqrt(lambda^2 - sigma^2),    infinite if lambda <= sigma

    With rho = rho_0 (1 + w) and the same total exposure, Z d2 = Z + sum rho_0 w^2. For sum rho_0 w^2 = t^2 the
    estimate rises most along w ~ r - mean, by t sigma; so the value is  t sigma - lambda sqrt(Z + t^2)  plus a
    constant, with its maximum at t = sqrt(Z) times the above. Exact as long as that rho is one that rankings can give;
    where it is not, the optimum is nearer.
    """
    weight = risk_weight(delta, interactions)
    return math.inf if weight <= spread else spread / math.sqrt(weight**2 - spread**2)


def interactions_to_move(delta: float, spread: float) -> float:
    """N from which on the risk no longer holds the policy: lambda = sigma at (1 - delta) / (delta sigma^2)."""
    return (1.0 - checked_delta(delta)) / (delta * spread**2)


def optimum(
    reward: Floats, logging_exposure: Floats, offsets: NDArray[np.int64], weight: Floats, delta: float, n: float
) -> Floats:
    """The exposure at the optimum, rho_0 (1 + w), if the shift is finite; see `optimal_shift`."""
    total = query_sums(logging_exposure, offsets)
    spread = reward_spread(reward, logging_exposure, offsets, weight)
    length = optimal_shift(delta, n, spread) * math.sqrt(float(weight @ total))
    return np.asarray(logging_exposure * (1.0 + length * within_queries(reward, offsets, logging_exposure) / spread))
