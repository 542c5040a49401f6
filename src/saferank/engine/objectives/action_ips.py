"""Inverse propensity scoring with whole rankings as actions: standard IPS, not designed for ranking."""

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.action_objective import ActionObjective
from saferank.engine.ragged import offsets_of
from saferank.engine.types.log_statistics import LogStatistics


def action_ips(log: LogStatistics, propensity: NDArray[np.float64], *, clip: float = 0.0) -> ActionObjective:
    """Action-based IPS (Gupta et al., SIGIR 2023, Eq. for U-hat_action), on the rankings that the log retains.

        (1/N) sum_i (N_q / M_q) clicks_i pi(y_i) / max(pi_0(y_i), clip)

    M_q of the query's N_q interactions are retained, a uniform sample, each standing for N_q / M_q of them.
    """
    rankings = log.require_rankings(in_order=True)
    clicks = rankings.clicks.sum(axis=1, dtype=np.float64)
    reward = stands_for(log) * clicks / np.maximum(propensity, clip) / max(log.total_interactions, 1)
    return ActionObjective(log.offsets, reward, ranking_offsets=offsets_of(log.kept), rankings=rankings.ranking)


def stands_for(log: LogStatistics) -> NDArray[np.float64]:
    """Return N_q / M_q of each kept ranking: how many of the query's interactions it stands for."""
    if log.rankings is None:
        return np.empty(0)
    return (log.interactions / np.maximum(log.kept, 1))[log.rankings.query]
