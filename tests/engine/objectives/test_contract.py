"""What every objective must do: follow its equation, give its derivative, and come apart into mini-batches."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.ragged import flat_rows
from tests.engine.objectives.cases import METHODS, OFFSETS, Case, Method, make_case

pytestmark = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
BATCHES = [np.array([3, 0]), np.array([5]), np.array([4, 2, 1])]


@pytest.fixture(scope="module", params=range(2))
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(request.param)


def test_the_value_is_that_of_the_equation(method: Method, case: Case) -> None:
    assert method.value(case, case.scores) == pytest.approx(method.equation(case, case.scores), rel=1e-6)


def test_the_slope_is_the_numerical_derivative_of_the_equation(method: Method, case: Case) -> None:
    step = 1e-5
    expected = [
        (method.equation(case, case.scores + nudge) - method.equation(case, case.scores - nudge)) / (2 * step)
        for nudge in step * np.eye(len(case.scores))
    ]
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(method.make(case).value_and_slope(case.scores)[1], expected, rtol=0, atol=1e-7)


def test_the_curvature_is_at_least_the_size_of_the_slope(method: Method, case: Case) -> None:
    objective = method.make(case)
    slope, curvature = objective.slope_and_curvature(case.scores)
    np.testing.assert_allclose(slope, objective.value_and_slope(case.scores)[1], rtol=0, atol=1e-7)
    assert (curvature >= np.abs(slope) - 1e-7).all()


def test_mini_batches_add_up_to_the_whole(method: Method, case: Case) -> None:
    objective, scores = method.make(case), case.scores
    slope, sums = np.zeros(len(scores)), np.zeros(2)
    whole = objective.sums(objective.view(scores, np.arange(6)))
    for queries in BATCHES:
        documents = flat_rows(OFFSETS, queries)
        x = objective.view(scores[documents], queries)
        slope[documents] = objective.pull_back(scores[documents], x, objective.slope(x, whole, queries), queries)
        sums += objective.terms(x, queries).sum(axis=1)
    value, expected = objective.value_and_slope(scores)
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-12)
    assert objective.value(sums) == pytest.approx(value, rel=1e-9)


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
