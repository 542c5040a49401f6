"""Counterfactual risk minimisation with whole rankings as actions."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from saferank.engine.delta import checked_delta
from saferank.engine.objectives.action_ips import action_ips, stands_for
from saferank.engine.objectives.action_objective import ActionObjective
from saferank.engine.types.log_statistics import LogStatistics


def action_crm(
    log: LogStatistics, propensity: NDArray[np.float64], *, delta: float = 0.01, clip: float = 0.0
) -> ActionObjective:
    """Action IPS minus the width of its bound, with the action-based divergence (Wu & Wang 2018, as in the paper).

        U-hat_action - sqrt( (1/N) ((1-delta)/delta) d2 ),    d2 = (1/N) sum_i (N_q / M_q) (pi(y_i) / pi_0(y_i))^2

    pi_0 is raised to `clip` in both terms. In the divergence alone unclipped, rare rankings would dominate it: it is
    smallest for a policy that gives no chance to what was logged.
    """
    estimate = action_ips(log, propensity, clip=clip)
    scale = (1.0 - checked_delta(delta)) / delta / max(log.total_interactions, 1) ** 2
    return replace(estimate, risk_weight=scale * stands_for(log) / np.maximum(propensity, clip) ** 2)
