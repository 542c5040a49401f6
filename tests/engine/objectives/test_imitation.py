"""Imitation: highest at what was shown, and finite where the policy exposes hardly anything."""

import numpy as np
import pytest

from saferank.engine.objectives.imitation import LEAST, imitation
from saferank.engine.ragged import query_sums
from saferank.lab.simulate import simulate
from tests.engine.objectives.cases import EXAMINATION, LENGTHS, OFFSETS, Array, Case, exact, exposure_of, make_case


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(seed=14)


def other_exposures(rho: Array, count: int) -> list[Array]:
    """Random exposures with the same sum over each query."""
    rng = np.random.default_rng(15)
    found = []
    for _ in range(count):
        moved = rho * np.exp(rng.choice([0.01, 0.3, 3.0]) * rng.normal(size=len(rho))) + 1e-9
        scale = query_sums(rho, OFFSETS) / query_sums(moved, OFFSETS)
        found.append(moved * np.repeat(scale, LENGTHS))
    return found


def test_no_exposure_explains_the_log_better_than_what_was_counted(case: Case) -> None:
    objective = imitation(case.statistics, EXAMINATION)
    highest, slope = objective.value_and_row_slope(case.flat_rho_0)
    values = [objective.value_and_row_slope(other)[0] for other in other_exposures(case.flat_rho_0, 300)]
    assert max(values) < highest
    assert max(values) > highest - 1e-3  # some were close
    shown = case.flat_rho_0 > 0
    issued = np.repeat(case.statistics.interactions, LENGTHS) / case.statistics.total_interactions
    np.testing.assert_allclose(slope[shown], issued[shown])  # the same within a query: nothing is gained by moving


def test_on_average_no_policy_explains_a_log_better_than_the_one_that_made_it(case: Case) -> None:
    rng = np.random.default_rng(16)
    scores = np.maximum(case.logging_scores, -2.0)
    logs = [simulate(scores, OFFSETS, case.relevance, EXAMINATION, 2_000, rng) for _ in range(20)]
    objectives = [imitation(log, EXAMINATION) for log in logs]
    rho = exposure_of(scores)
    at_logging = np.array([objective.value_and_row_slope(rho)[0] for objective in objectives])
    for other in (exposure_of(scores + 0.3 * rng.normal(size=len(scores))), exposure_of(1.3 * scores)):
        less = at_logging - [objective.value_and_row_slope(other)[0] for objective in objectives]
        assert less.mean() > 5 * less.std() / np.sqrt(len(less))


def test_at_the_logging_scores_of_a_large_log_the_gradient_vanishes(case: Case) -> None:
    scores = np.maximum(case.logging_scores, -2.0)
    log = simulate(scores, OFFSETS, case.relevance, EXAMINATION, 10**8, np.random.default_rng(17))
    objective = exact(imitation(log, EXAMINATION))
    assert np.abs(objective.value_and_slope(scores)[1]).max() < 1e-4
    assert np.abs(objective.value_and_slope(case.scores)[1]).max() > 1e-2


@pytest.mark.parametrize("exposure", [0.0, LEAST / 7, LEAST, 3 * LEAST, 0.4])
def test_value_and_slope_are_finite_and_agree_at_any_exposure(case: Case, exposure: float) -> None:
    objective = imitation(case.statistics, EXAMINATION)
    rho = np.where(np.arange(len(case.scores)) % 2 == 0, exposure, 0.3)
    value, slope = objective.value_and_row_slope(rho)
    assert np.isfinite(value)
    step = 1e-4 * LEAST
    for row in np.flatnonzero(objective.reward)[:6]:
        nudge = np.zeros(len(rho))
        nudge[row] = step
        below, above = (objective.value_and_row_slope(rho + side * nudge)[0] for side in (-1, 1))
        assert (above - below) / (2 * step) == pytest.approx(slope[row], rel=1e-3, abs=1e-4)


def test_float32_exposure_loses_no_more_than_its_own_precision(case: Case) -> None:
    objective = imitation(case.statistics, EXAMINATION)
    rho = exposure_of(case.scores)
    assert objective.sums(rho.astype(np.float32))[0] == pytest.approx(objective.sums(rho)[0], rel=1e-7)
