"""What every objective must do: follow its equation, give its derivative, and come apart into mini-batches."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.objectives.action_objective import ActionObjective
from saferank.engine.objectives.exposure_objective import ExposureObjective, root_slope
from saferank.engine.plackett_luce import exposure_vjp
from saferank.engine.ragged import flat_rows
from tests.engine.objectives.cases import EXAMINATION, METHODS, OFFSETS, Case, Method, argument, exposure_of, make_case

pytestmark = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
BATCHES = [np.array([3, 0]), np.array([5]), np.array([4, 2, 1])]


@pytest.fixture(scope="module", params=range(2))
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(request.param)


def test_the_value_is_that_of_the_equation(method: Method, case: Case) -> None:
    assert method.value(case, case.scores) == pytest.approx(method.equation(case, case.scores), rel=1e-12)


def test_the_slope_is_the_numerical_derivative_of_the_value(method: Method, case: Case) -> None:
    """With respect to exposure; for the action-based ones, to scores."""
    objective, step = method.make(case), 1e-6
    at = argument(objective, case.scores)
    expected = [
        (objective.value_and_slope(at + nudge)[0] - objective.value_and_slope(at - nudge)[0]) / (2 * step)
        for nudge in step * np.eye(len(at))
    ]
    np.testing.assert_allclose(objective.value_and_slope(at)[1], expected, rtol=0, atol=1e-8)


def test_the_slope_by_scores_is_the_numerical_derivative_of_the_equation(method: Method, case: Case) -> None:
    objective = method.make(case)
    step = 1e-5
    expected = [
        (method.equation(case, case.scores + nudge) - method.equation(case, case.scores - nudge)) / (2 * step)
        for nudge in step * np.eye(len(case.scores))
    ]
    if isinstance(objective, ActionObjective):
        found = objective.value_and_slope(case.scores)[1]
    else:
        slope = objective.value_and_slope(exposure_of(case.scores))[1]
        found = exposure_vjp(case.scores, OFFSETS, EXAMINATION, slope)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_mini_batches_add_up_to_the_whole(method: Method, case: Case) -> None:
    objective = method.make(case)
    scores, exposure = case.scores, exposure_of(case.scores)
    slope, estimate, squared = np.zeros(len(scores)), 0.0, 0.0
    whole = exposure if isinstance(objective, ExposureObjective) else objective.probabilities(scores, np.arange(6))
    held = root_slope(objective.squared_risk(whole))
    for queries in BATCHES:
        documents = flat_rows(OFFSETS, queries)
        if isinstance(objective, ActionObjective):
            rows = objective.rows(queries)
            part = objective.probabilities(scores[documents], queries)
            slope[documents] = objective.score_slope(scores[documents], part, held, queries)
        else:
            rows, part = documents, exposure[documents]
            slope[documents] = objective.slope(part, held, documents)
        estimate += objective.estimate(part, rows)
        squared += objective.squared_risk(part, rows)
    value, expected = objective.value_and_slope(argument(objective, scores))
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-15)
    assert estimate - squared**0.5 == pytest.approx(value, rel=1e-12)


def test_active_queries_are_those_that_matter(method: Method, case: Case) -> None:
    assert set(method.make(case).active.tolist()) == method.active


def test_other_queries_do_not_change_the_value(method: Method, case: Case) -> None:
    inactive = [query for query in range(6) if query not in method.active]
    moved = case.scores.copy()
    moved[flat_rows(OFFSETS, np.array(inactive))] *= -1
    assert method.value(case, moved) == pytest.approx(method.value(case, case.scores), rel=1e-14)


def test_without_risk_no_objective_is_smaller_and_crm_is_strictly(method: Method, case: Case) -> None:
    for scores in (case.scores, case.logging_scores, np.zeros(len(case.scores))):
        estimate, value = method.value(case, scores, risk=False), method.value(case, scores)
        assert value < estimate - 1e-3 if method.crm else value == estimate


@pytest.mark.parametrize("times", [4, 1_000_000])
def test_risk_falls_with_the_root_of_the_interactions_and_the_estimate_stays(
    method: Method, case: Case, times: int
) -> None:
    """All counts times m; the kept rankings stay, and each stands for m times as many interactions."""
    log = case.statistics
    statistics = replace(
        log, interactions=log.interactions * times, shown=log.shown * times, clicked=log.clicked * times
    )
    before, after = _parts(method, case), _parts(method, replace(case, statistics=statistics))
    assert after[0] == pytest.approx(before[0], rel=1e-12)
    assert after[1] == pytest.approx(before[1] / times**0.5, rel=1e-12)
    assert (before[1] > 0) == method.crm


def _parts(method: Method, case: Case) -> tuple[float, float]:
    """Estimate and risk."""
    estimate = method.value(case, case.scores, risk=False)
    return estimate, estimate - method.value(case, case.scores)
