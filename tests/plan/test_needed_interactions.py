"""Moments against clicks drawn one by one; the number of interactions against the share of logs that certify."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from saferank.doctor.possible_drift import PossibleDrift
from saferank.engine.bounds.verdict_choices import POWER
from saferank.plan.needed_interactions import Traffic, better_exposures, needed_interactions
from saferank.plan.randomisation import BY_SCORE, Randomisation, moved_exposure
from tests.plan.worlds import World, make_world

HOT = Randomisation("temperature", 0.4)


def traffic(world: World, policy: Randomisation, *, drawn: int = 2000) -> Traffic:
    exposure = policy.exposure(world.scores, world.offsets, world.examination)
    cutoff = len(world.examination)
    rankings = policy.rankings(world.scores, world.offsets, cutoff, drawn, np.random.default_rng(5))
    return Traffic(world.offsets, world.share, world.relevance, world.examination, exposure, rankings)


def better(world: World, policy: Randomisation, gain: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    now = policy.exposure(world.scores, world.offsets, world.examination)
    rng = np.random.default_rng(6)
    found = better_exposures(
        world.scores, world.relevance, world.offsets, world.examination, world.weight, now, [gain], rng
    )[0]
    assert found is not None
    return found


@pytest.mark.parametrize("policy", [HOT, Randomisation("swap", 0.5)])
def test_moments_are_those_of_drawn_clicks(policy: Randomisation) -> None:
    world = make_world()
    logged = traffic(world, policy)
    rng = np.random.default_rng(7)
    weights = rng.uniform(-1.0, 3.0, len(world.scores))
    clicks = world.clicks(policy, 4000, rng)
    terms = (clicks * weights.reshape(len(world.share), 1, -1)).sum(axis=2).ravel()
    for moment, found in ((terms, logged.mean(weights)), (terms**2, logged.second_moment(weights))):
        assert abs(found - moment.mean()) < 5.0 * moment.std() / math.sqrt(len(terms)) + 0.002 * abs(moment.mean())


def test_clicks_of_one_ranking_are_uncorrelated() -> None:
    logged = traffic(make_world(), BY_SCORE, drawn=1)
    weights = np.random.default_rng(8).uniform(-1.0, 3.0, len(logged.relevance))
    assert logged.second_moment(weights) == pytest.approx(logged.second_moment(weights, drawn=False))


def test_so_many_interactions_certify_four_times_in_five() -> None:
    world, policy, logs = make_world(), HOT, 400
    logged = traffic(world, policy)
    new = better(world, policy, 0.1)
    needed, clip = needed_interactions(new, logged, 0.0, 0.05)
    weights = np.minimum(new / logged.logging_exposure, clip) - 1.0
    number = round(needed)
    rng = np.random.default_rng(9)
    times = math.ceil(1.3 * logs * number / len(world.share))
    terms = (world.clicks(policy, times, rng) * weights.reshape(len(world.share), 1, -1)).sum(axis=2)
    # Interactions of random queries: shuffled pairs of (query, time), cut into logs.
    terms = rng.permutation(terms.ravel())[: logs * number].reshape(logs, number)
    bound = terms.mean(axis=1) - NormalDist().inv_cdf(0.95) * terms.std(axis=1, ddof=1) / math.sqrt(number)
    assert abs(float((bound > 0).mean()) - POWER) < 5.0 * math.sqrt(POWER * (1 - POWER) / logs)


def test_a_log_that_shows_too_little_never_certifies() -> None:
    world = make_world()
    new = better(world, BY_SCORE, 0.05)
    assert math.isinf(needed_interactions(new, traffic(world, BY_SCORE), 0.0, 0.05)[0])
    hot = traffic(world, HOT)
    free, dear = (needed_interactions(new, hot, cost, 0.05) for cost in (0.0, 0.02))
    assert free[0] < dear[0] < math.inf


def test_an_allowance_for_drift_is_subtracted_from_what_is_proven() -> None:
    """With exposure that varies alike for all documents, it is a share of the policy's own clicks."""
    world = make_world()
    new, hot = better(world, HOT, 0.1), traffic(world, HOT)
    free, clip = needed_interactions(new, hot, 0.0, 0.05)
    ratio = np.minimum(new / hot.logging_exposure, clip)
    mean, earned = hot.mean(ratio - 1.0), hot.mean(ratio)
    drift = PossibleDrift(0.3 * mean / earned / 2.0, np.full(len(ratio), 4.0))  # 2 = sqrt(4)
    assert replace(hot, drifts=(drift,)).allowance(ratio) == pytest.approx(0.3 * mean)
    needed = needed_interactions(new, replace(hot, drifts=(drift,)), 0.0, 0.05)[0]
    assert needed == pytest.approx(free / 0.7**2, rel=0.1)  # another clip may be a little better
    too_much = replace(drift, at_most=2.0 * mean / earned)
    assert math.isinf(needed_interactions(new, replace(hot, drifts=(too_much,)), 0.0, 0.05)[0])


def test_where_randomness_pays_the_policy_has_to_beat_the_randomised_ranker() -> None:
    world = make_world()
    new, hot = better(world, BY_SCORE, 0.05), traffic(world, HOT)
    free, paid = (needed_interactions(new, hot, cost, 0.05) for cost in (0.0, -0.02))
    assert paid == free
    assert free[0] < math.inf


def test_better_policies_meet_their_gain_and_move_more_than_they_must() -> None:
    world = make_world(queries=200)
    now = HOT.exposure(world.scores, world.offsets, world.examination)
    value = world.weight * world.relevance
    rng = np.random.default_rng(10)
    gains = [0.02, 0.2, 5.0]
    found = better_exposures(
        world.scores, world.relevance, world.offsets, world.examination, world.weight, now, gains, rng
    )
    for gain, exposure in zip(gains[:2], found[:2], strict=True):
        assert exposure is not None
        assert exposure @ value == pytest.approx((1.0 + gain) * (now @ value))
        assert exposure.sum() == pytest.approx(world.examination.sum() * len(world.share))
        assert moved_exposure(exposure, now, world.weight) > 0.15
    assert found[2] is None  # more than the best ranking earns
    best = BY_SCORE.exposure(world.relevance, world.offsets, world.examination) @ value
    assert best < 6.0 * (now @ value)
