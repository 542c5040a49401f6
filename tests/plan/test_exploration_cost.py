"""The cost against the true one, over many simulated logs."""

import math

import numpy as np
import pytest

from saferank.engine.ragged import ranks_by_score
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from saferank.plan.exploration_cost import exploration_cost, relevance_posterior
from saferank.plan.make_plan import mean_rank_scores
from saferank.plan.randomisation import Randomisation
from tests.plan.worlds import make_world


@pytest.mark.parametrize("logged_at", [0.01, 0.5])
def test_it_costs_at_most_what_is_said(logged_at: float) -> None:
    world, logs, interactions = make_world(queries=20), 120, 2000
    rank = ranks_by_score(world.scores, world.offsets)
    hot = Randomisation("temperature", 1.0).exposure(world.scores, world.offsets, world.examination)
    now = Randomisation("temperature", logged_at).exposure(world.scores, world.offsets, world.examination)
    truth = float((now - hot) @ (world.weight * world.relevance))
    limits, estimates = [], []
    for seed in range(logs):
        log = simulate(
            world.scores / logged_at, world.offsets, world.relevance, world.examination, interactions,
            np.random.default_rng(seed), keep_rankings=interactions,
        )  # fmt: skip
        assert log.rankings is not None
        posterior = relevance_posterior(log, world.examination, rank)
        patterns = ClickPatterns.of_rankings(log.rankings, world.offsets)
        estimate, at_most = exploration_cost(hot, log, patterns, posterior, world.examination)
        limits.append(at_most)
        estimates.append(estimate)
    missed = float((np.array(limits) < truth).mean())
    assert missed < 0.05 + 5.0 * math.sqrt(0.05 * 0.95 / logs)
    assert abs(np.mean(estimates) - truth) < 0.5 * truth  # unseen documents are a guess
    assert np.mean(limits) > np.mean(estimates)


def test_the_log_itself_costs_nothing() -> None:
    world = make_world()
    log = simulate(
        world.scores, world.offsets, world.relevance, world.examination, 500, np.random.default_rng(0),
        keep_rankings=500,
    )  # fmt: skip
    assert log.rankings is not None
    examined = (log.shown @ world.examination) / np.repeat(log.interactions, np.diff(log.offsets))
    posterior = relevance_posterior(log, world.examination, ranks_by_score(world.scores, world.offsets))
    patterns = ClickPatterns.of_rankings(log.rankings, world.offsets)
    cost = exploration_cost(examined, log, patterns, posterior, world.examination)
    assert cost == pytest.approx((0.0, 0.0), abs=1e-12)


def test_a_lucky_click_on_what_was_hardly_shown_counts_ten_times_at_most() -> None:
    """One rank: the second document was shown once in 100 times, and clicked; now it is to be shown half the time."""
    shown, clicked = np.array([[99], [1]]), np.array([[33], [1]])
    log = LogStatistics(np.array([0, 2]), np.array([100]), shown, clicked)
    patterns = ClickPatterns(np.zeros(3, np.int64), np.array([0, 0, 1, 2]), np.array([0, 1]), np.array([66, 33, 1]))
    posterior = relevance_posterior(log, np.ones(1), np.array([1, 2], np.int32))
    _, at_most = exploration_cost(np.array([0.5, 0.5]), log, patterns, posterior, np.ones(1))
    terms = np.repeat([0.0, 1.0 - 50 / 99, 1.0 - 10.0], [66, 33, 1])  # 50 times as often, and not 10, without a limit
    assert at_most == pytest.approx(terms.mean() + 1.6448536 * terms.std(ddof=1) / 10.0)


def test_posterior_is_calibrated_and_drawn_relevances_differ_as_true_ones_do() -> None:
    rng = np.random.default_rng(3)
    offsets, examination = np.arange(0, 6001, 6), np.array([1.0, 0.6, 0.4, 0.3, 0.2, 0.1])
    relevance = np.minimum(0.08 * rng.gamma(4.0, 1.0 / 4.0, 6000), 1.0)
    log = simulate(np.zeros(6000), offsets, relevance, examination, 150_000, rng)
    posterior = relevance_posterior(log, examination, ranks_by_score(np.zeros(6000), offsets))
    assert posterior.trust == pytest.approx(4.0, rel=0.15)
    mean = posterior.mean
    assert np.cov(mean, relevance)[0, 1] / mean.var() == pytest.approx(1.0, abs=0.05)  # E[truth | mean] = mean
    assert posterior.draw(rng).std() == pytest.approx(relevance.std(), rel=0.1)
    assert mean.std() < 0.9 * relevance.std()


def test_unseen_documents_follow_the_trend_over_ranks() -> None:
    rng = np.random.default_rng(4)
    offsets, examination = np.arange(0, 501, 5), np.array([1.0, 1.0])
    fall = 0.8 * np.exp(-0.3 * np.arange(5))
    log = simulate(np.tile([400.0, 300, 200, 100, 0], 100), offsets, np.tile(fall, 100), examination, 100_000, rng)
    rank = np.tile(np.arange(1, 6, dtype=np.int32), 100)
    np.testing.assert_allclose(relevance_posterior(log, examination, rank).typical, np.tile(fall, 100), rtol=0.05)


def test_unseen_documents_are_poor_where_lower_ranks_are_never_clicked() -> None:
    shown = np.array([[200, 0], [0, 200], [0, 0]])
    log = LogStatistics(np.array([0, 3]), np.array([200]), shown, shown * np.array([[1, 0]]))
    typical = relevance_posterior(log, np.array([1.0, 0.6]), np.array([1, 2, 3], np.int32)).typical
    assert typical[0] == 1.0
    assert typical[2] < 0.01


def test_mean_rank_counts_unseen_as_one_beyond() -> None:
    shown = np.array([[3, 1], [1, 2], [0, 0], [0, 0]])
    log = LogStatistics(np.array([0, 3, 4]), np.array([4, 0]), shown, np.zeros((4, 2), np.int64))
    np.testing.assert_allclose(mean_rank_scores(log), [-(3 + 2) / 4, -(1 + 2 * 2 + 3) / 4, -3.0, -3.0])
