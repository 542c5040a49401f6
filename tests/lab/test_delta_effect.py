"""What delta can do, by arithmetic, against the objective that is trained."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.click_models.position_based import inverse_rank
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.propensity.logging_exposure import known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.delta_effect import interactions_to_move, optimal_shift, optimum, reward_spread, risk_weight

OFFSETS = np.array([0, 4, 7])
EXAMINATION = inverse_rank(3)
RHO_0 = known_logging_exposure([0.3, -0.2, 0.9, 0.0, 0.5, -0.4, 0.1], OFFSETS, EXAMINATION)
SHOWN = np.array([[20, 10, 10], [10, 20, 10], [20, 20, 20], [10, 10, 20], [15, 10, 15], [15, 10, 15], [10, 20, 10]])
LOG = LogStatistics(OFFSETS, np.array([60, 40]), SHOWN, np.minimum(SHOWN, [[5, 3, 2]]))


def reward_of() -> NDArray[np.float64]:
    """r(d): a unit of exposure's estimated clicks, per interaction of its query."""
    return LOG.clicks / RHO_0 / np.repeat(LOG.interactions, np.diff(OFFSETS))


@pytest.mark.parametrize("delta", [0.01, 1e-3, 1e-5])
def test_at_the_optimum_no_exposure_can_be_moved_to_advantage(delta: float) -> None:
    """In every query the slope of the objective is the same for all documents, and the value higher than around."""
    objective = exposure_crm(LOG, RHO_0, EXAMINATION, delta=delta, constant="paper", floor=0.0)
    weight = LOG.interactions / 100
    best = optimum(reward_of(), RHO_0, OFFSETS, weight, delta, 100)
    value, slope = objective.value_and_row_slope(best)
    for query in range(2):
        of = slope[OFFSETS[query] : OFFSETS[query + 1]]
        assert np.ptp(of) < 1e-9 < np.ptp(objective.value_and_row_slope(RHO_0)[1][OFFSETS[query] : OFFSETS[query + 1]])
    assert value > objective.value_and_row_slope(RHO_0)[0]
    spread = reward_spread(reward_of(), RHO_0, OFFSETS, weight)
    share = np.sum(np.repeat(weight, np.diff(OFFSETS)) * (best - RHO_0) ** 2 / RHO_0)
    share /= np.sum(np.repeat(weight, np.diff(OFFSETS)) * RHO_0)
    assert math.sqrt(share) == pytest.approx(optimal_shift(delta, 100, spread))


def test_the_risk_gives_way_at_a_number_of_interactions_that_delta_sets() -> None:
    needed = interactions_to_move(0.01, 0.04)
    assert needed == pytest.approx(99 / 0.04**2)
    assert risk_weight(0.01, needed) == pytest.approx(0.04)
    assert optimal_shift(0.01, needed, 0.04) == math.inf > optimal_shift(0.01, 0.9 * needed, 0.04) > 1
