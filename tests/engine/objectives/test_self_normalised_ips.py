"""Self-normalised IPS: what dividing by the weights changes, and that it rewards no document never shown."""

import numpy as np
import pytest

from saferank.engine.click_models.examination import total_examination
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.self_normalised_ips import self_normalised_ips
from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from tests.engine.objectives.cases import EXAMINATION, LENGTHS, OFFSETS, RANKS, Case, exposure_of, make_case
from tests.oracles import enumeration


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(seed=12)


@pytest.mark.parametrize("clip", [0.0, 0.4])
def test_for_the_counted_logging_exposure_it_is_exposure_ips(case: Case, clip: float) -> None:
    found = self_normalised_ips(case.statistics, case.flat_rho_0, EXAMINATION, clip=clip)
    expected = exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION, clip=clip)
    for scores in (case.scores, case.logging_scores, 4 * case.scores):
        rho = exposure_of(scores)
        assert found.sums(rho)[0] == pytest.approx(expected.sums(rho)[0], rel=1e-12)


def test_the_value_of_a_query_lies_within_its_click_rates_however_small_the_logging_exposure(case: Case) -> None:
    log = case.statistics
    rho_0 = case.flat_rho_0 * 10.0 ** np.random.default_rng(0).uniform(-6, 0, len(case.scores))
    found = self_normalised_ips(log, rho_0, EXAMINATION)
    rates = np.divide(log.clicks, examined(log, EXAMINATION), out=np.zeros(log.documents), where=log.times_shown > 0)
    highest = np.maximum.reduceat(rates, OFFSETS[:-1])
    own = found.terms(exposure_of(case.scores), np.arange(len(LENGTHS)))[0]
    most = log.interactions / log.total_interactions * total_examination(EXAMINATION, np.array(LENGTHS)) * highest
    assert np.all(own <= most * (1 + 1e-12))
    ips = exposure_ips(log, rho_0, EXAMINATION)
    assert np.any(ips.terms(exposure_of(case.scores), np.arange(len(LENGTHS)))[0] > 100 * most)


def test_nothing_is_gained_by_exposing_a_document_that_was_never_shown() -> None:
    """Exposure moved to it from the others in equal shares takes the same share of the value away."""
    log = LogStatistics(np.array([0, 3]), np.array([20]), np.array([[15], [5], [0]]), np.array([[6], [1], [0]]))
    rho_0 = np.array([0.7, 0.25, 0.05])
    objective = self_normalised_ips(log, rho_0, np.ones(1))
    before = np.array([0.6, 0.4, 0.0])
    values = [objective.sums((1 - moved) * before + moved * np.array([0, 0, 1.0]))[0] for moved in (0.0, 0.3, 0.9)]
    weight = 0.6 * 15 / 20 / 0.7 + 0.4 * 5 / 20 / 0.25
    estimate = (0.6 * 6 / 0.7 + 0.4 * 1 / 0.25) / 20
    expected = [estimate * (1 - moved) / (weight * (1 - moved) + moved) for moved in (0.0, 0.3, 0.9)]
    np.testing.assert_allclose(values, expected)
    assert values[0] > values[1] > values[2]
    slope = objective.value_and_row_slope(np.array([0.3, 0.2, 0.5]))[1]
    assert slope[2] < min(slope[0], slope[1])


def test_with_many_interactions_it_is_right_and_has_less_error_than_ips_where_relevance_is_alike() -> None:
    """One query, new policy and logging policy opposed: how often documents are shown is most of what varies."""
    rng = np.random.default_rng(13)
    scores, relevance = np.array([2.0, 1.0, 0.0, -1.0, -2.0]), np.full(5, 0.9)
    rho_0 = enumeration.exposure(scores.tolist(), RANKS)
    rho = rho_0[::-1]
    truth = 0.9 * rho.sum()
    errors = []
    for _ in range(1_000):
        log = simulate(scores, [0, 5], relevance, EXAMINATION, 2_000, rng)
        made = (self_normalised_ips(log, rho_0, EXAMINATION), exposure_ips(log, rho_0, EXAMINATION))
        errors.append([objective.sums(rho)[0] - truth for objective in made])
    np.testing.assert_allclose(np.mean(errors, axis=0), 0.0, atol=0.01 * truth)
    less = np.square(errors)[:, 1] - np.square(errors)[:, 0]
    assert less.mean() > 5 * less.std() / np.sqrt(len(less))


def test_queries_without_interactions_or_clicks_are_worth_nothing(case: Case) -> None:
    objective = self_normalised_ips(case.statistics, case.known_rho_0, EXAMINATION)
    own = objective.terms(exposure_of(case.scores), np.arange(len(LENGTHS)))[0]
    assert np.array_equal(own > 0, query_sums(case.statistics.clicks, OFFSETS) > 0)
