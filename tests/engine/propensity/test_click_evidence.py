"""Clicks per examination, and their weights in a regression."""

import numpy as np
import pytest

from saferank.engine.click_models.position_based import inverse_rank
from saferank.engine.errors import UsageError
from saferank.engine.propensity.click_evidence import click_evidence
from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate


def one_rank(shown: list[int], clicked: list[int]) -> LogStatistics:
    """One query and one rank."""
    return LogStatistics(np.array([0, len(shown)]), np.array([sum(shown)]), np.array([shown]).T, np.array([clicked]).T)


def test_weights_by_hand_where_documents_differ() -> None:
    examined = [10 * 0.8, 40 * 0.8, 50 * 0.8]
    m = (1 + 16 + 3) / (8.0 + 32.0 + 40.0)
    moments = 8.0 * (1 / 8.0 - m) ** 2 + 32.0 * (16 / 32.0 - m) ** 2 + 40.0 * (3 / 40.0 - m) ** 2
    v = (moments - 3 * m * (1 - 0.8 * m)) / 80.0
    found = click_evidence(one_rank([10, 40, 50, 0], [1, 16, 3, 0]), np.array([0.8]))
    assert v > 0
    np.testing.assert_allclose(found.relevance, [1 / 8.0, 16 / 32.0, 3 / 40.0, 0.0])
    np.testing.assert_allclose(found.weight, [*(m * m * (1 - m) / (v + m * (1 - m) / each) for each in examined), 0.0])


def test_where_chance_explains_all_differences_the_weight_is_the_expected_clicks() -> None:
    found = click_evidence(one_rank([10, 40, 50], [2, 8, 10]), np.ones(1))
    np.testing.assert_allclose(found.weight, [0.2 * 10, 0.2 * 40, 0.2 * 50])


def test_with_many_clicks_documents_count_nearly_alike() -> None:
    rare, often = (
        click_evidence(one_rank([10 * times, 90 * times], [times, 45 * times]), np.ones(1)).weight
        for times in (1, 10_000)
    )
    assert rare[1] > 2 * rare[0]
    assert often[1] < 1.01 * often[0]


def test_ranks_are_weighted_by_their_examination() -> None:
    shown = np.array([[4, 2], [2, 4]])
    log = LogStatistics(np.array([0, 2]), np.array([6]), shown, np.array([[2, 1], [0, 1]]))
    found = click_evidence(log, np.array([1.0, 0.5]))
    np.testing.assert_allclose(found.relevance, [3 / (4 * 1.0 + 2 * 0.5), 1 / (2 * 1.0 + 4 * 0.5)])


def test_relevance_is_right_on_average() -> None:
    """Documents that are shown in almost every log; the others have no ratio in some of them."""
    rng = np.random.default_rng(0)
    scores, relevance, examination = np.array([1.0, 0.5, 0.0, -0.5]), np.array([0.9, 0.2, 0.5, 0.7]), inverse_rank(3)
    values = []
    for _ in range(3000):
        log = simulate(scores, [0, 4], relevance, examination, 60, rng)
        assert log.times_shown.min() > 0
        values.append(click_evidence(log, examination).relevance)
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(len(values))
    assert np.all(np.abs(mean - relevance) < 5 * error)
    assert np.all(error < 0.01)


def test_the_variance_between_documents_is_found_where_there_is_one() -> None:
    """Weights m m (1 - m) / (v + m (1 - m) / examined) give v back, whatever the ranks at which documents are shown."""
    rng = np.random.default_rng(1)
    queries, examination = 2_000, inverse_rank(5)
    relevance = 0.3 + 0.1 * rng.choice([-1.0, 1.0], 8 * queries)
    log = simulate(rng.normal(size=8 * queries), 8 * np.arange(queries + 1), relevance, examination, 200_000, rng)
    evidence, times = click_evidence(log, examination), examined(log, examination)
    m = log.clicks.sum() / times.sum()
    place = times.argmax()
    found = m * m * (1 - m) / evidence.weight[place] - m * (1 - m) / times[place]
    assert found == pytest.approx(0.01, rel=0.1)


def test_with_trust_bias_relevance_and_its_variance_are_found_from_what_trust_does_not_explain() -> None:
    rng = np.random.default_rng(2)
    queries, alpha, beta = 2_000, np.array([0.4, 0.3, 0.2]), np.array([0.5, 0.2, 0.0])
    relevance = 0.3 + 0.1 * rng.choice([-1.0, 1.0], 6 * queries)
    offsets = 6 * np.arange(queries + 1)
    log = simulate(rng.normal(size=6 * queries), offsets, relevance, alpha, 400_000, rng, trust=beta)
    evidence, times = click_evidence(log, alpha + beta, beta), examined(log, alpha)
    clicks = log.clicks - log.shown @ beta
    np.testing.assert_allclose(evidence.relevance[times > 0], (clicks[times > 0] / times[times > 0]))
    rate = alpha * 0.3 + beta
    error = np.sqrt((log.shown @ (rate * (1 - rate))).sum()) / times.sum()
    assert abs(np.average(evidence.relevance - relevance, weights=times)) < 5 * error
    m, place = clicks.sum() / times.sum(), times.argmax()
    variance = m * (1 - m) + log.shown[place] @ (beta * (1 - beta - 2 * alpha * m)) / times[place]
    found = m * m * (1 - m) / evidence.weight[place] - variance / times[place]
    assert found == pytest.approx(0.01, rel=0.1)
    none = click_evidence(log, alpha + beta, np.zeros(3))
    np.testing.assert_array_equal(none.weight, click_evidence(log, alpha + beta).weight)


def test_nothing_examined_and_no_clicks() -> None:
    nothing = click_evidence(one_rank([5, 0], [2, 0]), np.zeros(1))
    assert not nothing.relevance.any()
    assert not nothing.weight.any()
    unclicked = click_evidence(one_rank([5, 0], [0, 0]), np.ones(1))
    assert not unclicked.relevance.any()
    assert not unclicked.weight.any()
    never_shown = click_evidence(one_rank([0, 0], [0, 0]), np.ones(1))
    assert not never_shown.weight.any()


def test_clicks_on_everything_leave_weights_finite_and_positive() -> None:
    found = click_evidence(one_rank([5, 7], [5, 7]), np.full(1, 0.5))
    np.testing.assert_allclose(found.relevance, [2.0, 2.0])
    assert np.all(np.isfinite(found.weight) & (found.weight > 0))


def test_a_click_at_a_rank_that_is_never_examined_is_no_evidence() -> None:
    shown, clicked = np.array([[10, 0], [0, 10]]), np.array([[2, 0], [0, 9]])
    found = click_evidence(LogStatistics(np.array([0, 2]), np.array([10]), shown, clicked), np.array([1.0, 0.0]))
    np.testing.assert_allclose(found.relevance, [0.2, 0.0])
    np.testing.assert_allclose(found.weight, [0.2 * 10, 0.0])


def test_an_examination_of_other_ranks() -> None:
    with pytest.raises(UsageError):
        click_evidence(one_rank([5, 7], [5, 7]), np.ones(2))
