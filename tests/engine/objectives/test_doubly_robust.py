"""The doubly robust estimate and its two halves: what makes each right on average."""

import numpy as np
import pytest

from saferank.engine.errors import UsageError
from saferank.engine.objectives.direct_method import direct_method
from saferank.engine.objectives.doubly_robust import doubly_robust
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.ragged import query_sums
from saferank.lab.simulate import simulate
from tests.engine.objectives.cases import (
    EXAMINATION,
    LENGTHS,
    OFFSETS,
    RANKS,
    Array,
    Case,
    exposure_of,
    lists,
    make_case,
)
from tests.oracles import estimators as oracle


@pytest.fixture(scope="module")
def case() -> Case:
    case = make_case(seed=9)
    case.logging_scores[3] = -1.0  # every document can be shown
    return case


@pytest.mark.parametrize("clip", [0.0, 0.1, 1.0])
def test_a_regression_that_predicts_no_click_leaves_exposure_ips(case: Case, clip: float) -> None:
    found = doubly_robust(case.statistics, np.zeros(len(case.scores)), case.flat_rho_0, EXAMINATION, clip=clip)
    expected = exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION, clip=clip)
    np.testing.assert_array_equal(found.reward, expected.reward)


def test_it_is_right_on_average_if_the_logging_exposure_or_the_regression_is_and_not_if_neither_is(case: Case) -> None:
    rng = np.random.default_rng(10)
    rho, rho_0 = exposure_of(case.scores), exposure_of(case.logging_scores)
    wrong_rho_0 = rng.uniform(0.1, 1.0, len(rho_0))
    estimates: dict[str, tuple[Array, Array, float]] = {
        "right rho_0": (case.predicted, rho_0, 0.0),
        "right R": (case.relevance, wrong_rho_0, 0.0),
        "right R, clipped": (case.relevance, rho_0, 0.8),
        "both wrong": (case.predicted, wrong_rho_0, 0.0),
        "wrong R, clipped": (case.predicted, rho_0, 0.8),
    }
    values = []
    for _ in range(3000):
        log = simulate(case.logging_scores, OFFSETS, case.relevance, EXAMINATION, 20, rng)
        made = [doubly_robust(log, R, known, EXAMINATION, clip=clip) for R, known, clip in estimates.values()]
        values.append([float(objective.sums(rho)[0]) for objective in made])
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(len(values))
    truth = oracle.utility(lists(case.scores), lists(case.relevance), RANKS)
    assert np.all(error < 0.01 * truth)
    off = dict(zip(estimates, np.abs(mean - truth) / error, strict=True))
    assert max(off["right rho_0"], off["right R"], off["right R, clipped"]) < 5
    assert min(off["both wrong"], off["wrong R, clipped"]) > 5


def test_a_good_regression_has_less_variance_than_exposure_ips(case: Case) -> None:
    """Around the utility on the queries that were logged, by more than chance explains."""
    rng = np.random.default_rng(11)
    rho, rho_0 = exposure_of(case.scores), exposure_of(case.logging_scores)
    per_query = query_sums(rho * case.relevance, OFFSETS)
    less = []
    for _ in range(1000):
        log = simulate(case.logging_scores, OFFSETS, case.relevance, EXAMINATION, 20, rng)
        truth = float(log.interactions @ per_query) / 20
        made = (doubly_robust(log, case.relevance, rho_0, EXAMINATION), exposure_ips(log, rho_0, EXAMINATION))
        with_regression, without = [(float(objective.sums(rho)[0]) - truth) ** 2 for objective in made]
        less.append(without - with_regression)
    assert np.mean(less) > 5 * np.std(less) / np.sqrt(len(less))


def test_rewards_by_hand(case: Case) -> None:
    """The first document of the first query, and one that was never shown."""
    log = case.statistics
    issued = log.interactions[0] / log.total_interactions
    examined = 1.0 * log.shown[0, 0] + 0.6 * log.shown[0, 1] + 0.3 * log.shown[0, 2]
    corrected = 0.25 + (log.clicks[0] - 0.25 * examined) / (log.interactions[0] * 0.4)
    quarter = np.full(len(case.scores), 0.25)
    logging_exposure = np.where(log.times_shown > 0, 0.4, 0.0)
    found = doubly_robust(log, quarter, logging_exposure, EXAMINATION).reward
    assert log.clicks[0] > 0
    assert found[0] == pytest.approx(issued * corrected)
    assert log.times_shown[3] == 0
    assert found[3] == pytest.approx(issued * 0.25)
    direct = direct_method(log, quarter, EXAMINATION).reward
    np.testing.assert_allclose(direct, np.repeat(log.interactions, LENGTHS) / log.total_interactions * 0.25)


@pytest.mark.parametrize("rho_0", [0.0, 1e-300])
def test_a_document_never_shown_is_worth_its_prediction_however_small_its_logging_exposure(
    case: Case, rho_0: float
) -> None:
    never = case.statistics.times_shown == 0
    logging_exposure = np.where(never, rho_0, case.flat_rho_0)
    found = doubly_robust(case.statistics, case.predicted, logging_exposure, EXAMINATION).reward
    np.testing.assert_allclose(
        found[never], direct_method(case.statistics, case.predicted, EXAMINATION).reward[never], rtol=1e-12
    )
    assert never.any()


@pytest.mark.parametrize("bad", [np.zeros(3), np.full(sum(LENGTHS), np.nan), np.zeros((sum(LENGTHS), 1))], ids=str)
def test_predictions_that_do_not_fit_the_log(case: Case, bad: Array) -> None:
    with pytest.raises(UsageError):
        doubly_robust(case.statistics, bad, case.flat_rho_0, EXAMINATION)
    with pytest.raises(UsageError):
        direct_method(case.statistics, bad, EXAMINATION)
