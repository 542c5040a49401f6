"""The estimates of utility: right on average, and what clipping, lost rankings and bad logs do to them."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.errors import UsageError
from saferank.engine.objectives.action_crm import action_crm
from saferank.engine.objectives.action_ips import action_ips
from saferank.engine.objectives.exposure_ips import exposure_ips, training_clip
from saferank.engine.objectives.naive import naive
from saferank.engine.plackett_luce import log_probability
from saferank.engine.types.log_statistics import LoggedRankings
from saferank.lab.simulate import simulate
from tests.engine.objectives.cases import EXAMINATION, NEVER_ISSUED, OFFSETS, RANKS, Case, exposure_of, lists, make_case
from tests.oracles import estimators as oracle


@pytest.fixture(scope="module")
def case() -> Case:
    case = make_case(seed=7)
    case.logging_scores[3] = -1.0  # every document can be shown
    return case


def test_exposure_ips_with_known_logging_exposure_is_unbiased_and_clipping_or_no_correction_is_not(
    case: Case,
) -> None:
    rng = np.random.default_rng(0)
    rho, rho_0 = exposure_of(case.scores), exposure_of(case.logging_scores)
    values = []
    for _ in range(3000):
        log = simulate(case.logging_scores, OFFSETS, case.relevance, EXAMINATION, 20, rng)
        objectives = (
            exposure_ips(log, rho_0, EXAMINATION),
            exposure_ips(log, rho_0, EXAMINATION, clip=0.8),
            naive(log, EXAMINATION),
        )
        values.append([float(objective.sums(rho)[0]) for objective in objectives])
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(len(values))
    truth = oracle.utility(lists(case.scores), lists(case.relevance), RANKS)
    assert abs(mean[0] - truth) < 5 * error[0]
    assert error[0] < 0.01 * truth
    assert mean[1] < truth - 5 * error[1]
    assert mean[2] < truth - 5 * error[2]


@pytest.mark.parametrize("kept", [1, 1000])
def test_action_ips_with_known_propensity_is_unbiased_from_all_rankings_or_from_some(case: Case, kept: int) -> None:
    rng = np.random.default_rng(1)
    queries = np.arange(len(OFFSETS) - 1)
    values = []
    for _ in range(3000):
        log = simulate(case.logging_scores, OFFSETS, case.relevance, EXAMINATION, 20, rng, keep_rankings=kept)
        assert log.rankings is not None
        assert log.kept.max() <= kept
        pi_0 = action_ips(log, np.ones(log.rankings.interactions)).view(case.logging_scores, queries)
        objective = action_ips(log, pi_0)
        values.append(objective.sums(objective.view(case.scores, queries))[0])
    truth = oracle.utility(lists(case.scores), lists(case.relevance), RANKS)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - truth) < 5 * error
    assert error < 0.03 * truth


def test_clipping_up_only_lowers_every_reward(case: Case) -> None:
    last = exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION).reward
    last_action = action_ips(case.statistics, case.pi_0).reward
    for clip in (0.01, 0.1, 0.3, 1.0):
        reward = exposure_ips(case.statistics, case.flat_rho_0, EXAMINATION, clip=clip).reward
        reward_action = action_ips(case.statistics, case.pi_0, clip=clip).reward
        assert np.all(reward <= last)
        assert np.all(reward_action <= last_action)
        last, last_action = reward, reward_action
    np.testing.assert_allclose(last, naive(case.statistics, EXAMINATION).reward)  # clip = 1: no correction is left


def test_clipping_in_training_is_ten_over_the_root_of_the_interactions() -> None:
    found = [training_clip(n) for n in (0, 1, 100, 400, 10_000, 10**8)]
    assert found == [1.0, 1.0, 1.0, 10 / 20, 10 / 100, 10 / 10_000]


@pytest.mark.parametrize("rho_0", [0.0, 1e-300])
def test_a_document_without_clicks_is_worth_nothing_however_small_its_logging_exposure(
    case: Case, rho_0: float
) -> None:
    logging_exposure = np.where(case.statistics.clicks > 0, case.flat_rho_0, rho_0)
    reward = exposure_ips(case.statistics, logging_exposure, EXAMINATION).reward
    assert np.all(reward[case.statistics.clicks == 0] == 0.0)
    assert np.isfinite(reward).all()


def test_each_kept_ranking_stands_for_as_many_interactions_of_its_query(case: Case) -> None:
    """With the first two interactions of each query kept, its mean is over these, and weighs N_q / N as before."""
    full = case.statistics.rankings
    assert full is not None
    starts = np.cumsum(case.statistics.kept) - case.statistics.kept
    rows = np.array([s + i for s, n in zip(starts, case.statistics.kept, strict=True) for i in range(min(2, n))])
    some = LoggedRankings(full.query[rows], full.ranking[rows], full.clicks[rows])
    log = replace(case.statistics, rankings=some)
    objective = action_crm(log, case.pi_0[rows], delta=0.5)
    probability = objective.view(case.scores, np.arange(len(OFFSETS) - 1))
    estimate = divergence = 0.0
    for query, interactions in enumerate(case.statistics.interactions):
        if query == NEVER_ISSUED:
            continue
        own = [(case.log[row], case.pi_0[row]) for row in rows if case.log[row].query == query]
        ratios = [oracle.rankings(lists(case.scores)[query], len(RANKS))[i.ranking] / pi_0 for i, pi_0 in own]
        weight = interactions / len(case.log)
        estimate += weight * np.mean([sum(i.clicks) * ratio for (i, _), ratio in zip(own, ratios, strict=True)])
        divergence += weight * np.mean(np.square(ratios))
    assert objective.sums(probability)[0] == pytest.approx(estimate, rel=1e-12)
    assert objective.sums(probability)[1] == pytest.approx(divergence / len(case.log), rel=1e-12)


def test_probabilities_are_those_of_the_policy(case: Case) -> None:
    objective = action_ips(case.statistics, case.pi_0)
    first = np.searchsorted([i.query for i in case.log], 3)
    expected = log_probability(case.scores[OFFSETS[3] : OFFSETS[4]], [0, 5], [[case.log[first].ranking]])
    found = objective.view(case.scores[OFFSETS[3] : OFFSETS[4]], np.array([3]))[0]
    assert found == pytest.approx(np.exp(expected[0, 0]), rel=1e-12)


def test_action_based_methods_say_what_is_missing(case: Case) -> None:
    with pytest.raises(UsageError, match="needs single rankings; make the statistics with keep_rankings"):
        action_ips(replace(case.statistics, rankings=None), case.pi_0)
    rankings = case.statistics.rankings
    assert rankings is not None
    backwards = LoggedRankings(rankings.query[::-1], rankings.ranking[::-1], rankings.clicks[::-1])
    with pytest.raises(UsageError, match="must lie query after query; sort them"):
        action_crm(replace(case.statistics, rankings=backwards), case.pi_0[::-1])
