"""Rules of deployment: the bound against its equation, interaction by interaction, and what they decide."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.click_models.position_based import inverse_rank
from saferank.engine.errors import UsageError
from saferank.engine.propensity.logging_exposure import known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.deployment_rules import DEPLOYMENT_RULES, bounded_clicks, exposure_ratio
from saferank.lab.paper_methods import learn_in_world, simulate_logs
from saferank.lab.simulate import simulate
from tests.lab.small_world import QUICK, small_world

OFFSETS = np.array([0, 4, 9])
EXAMINATION = inverse_rank(3)
RELEVANCE = np.array([0.9, 0.1, 0.1, 0.2, 0.1, 0.8, 0.1, 0.1, 0.3])


def logged(interactions: int, keep: int = 0) -> LogStatistics:
    rng = np.random.default_rng(3)
    return simulate(np.zeros(9), OFFSETS, RELEVANCE, EXAMINATION, interactions, rng, keep_rankings=keep)


def ratio_of(log: LogStatistics, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    rho, rho_0 = (known_logging_exposure(one, OFFSETS, EXAMINATION) for one in (scores, np.zeros(9)))
    return exposure_ratio(log, rho, rho_0)


def test_the_bound_is_that_of_the_equation() -> None:
    log, weight = logged(200, keep=200), np.random.default_rng(0).normal(size=9)
    assert log.rankings is not None
    terms = []
    for query, ranking, clicks in zip(log.rankings.query, log.rankings.ranking, log.rankings.clicks, strict=True):
        terms.append(sum(weight[OFFSETS[query] + d] for d, click in zip(ranking, clicks, strict=True) if click))
    found = bounded_clicks(log, weight, 0.05)
    assert found.mean == pytest.approx(np.mean(terms))
    span = 3 * (weight.max() - weight.min())
    width = math.sqrt(2 * np.var(terms, ddof=1) * math.log(40) / 200) + 7 * span * math.log(40) / (3 * 199)
    assert found.width == pytest.approx(width)
    with pytest.raises(UsageError):
        bounded_clicks(logged(200), weight, 0.05)


def test_kept_interactions_stand_for_all() -> None:
    """Few of many are kept: the mean is that of all, the variance nearly that of one with all kept."""
    weight = np.linspace(0, 2, 9)
    few, all_kept = (bounded_clicks(logged(40_000, keep=keep), weight, 0.05) for keep in (2_000, 40_000))
    assert few.mean == pytest.approx(float(weight @ logged(40_000, keep=2_000).clicks) / 40_000)
    assert few.width == pytest.approx(all_kept.width, rel=0.1)


@pytest.mark.parametrize("rule", DEPLOYMENT_RULES)
def test_a_better_policy_is_deployed_when_the_clicks_show_it_and_a_worse_one_never(rule: str) -> None:
    better, worse = 8.0 * RELEVANCE, -8.0 * RELEVANCE
    decided = {
        n: [DEPLOYMENT_RULES[rule](log, ratio_of(log, scores), 0.01) for scores in (better, worse, np.zeros(9))]
        for n in (1, 50, 1_000_000)
        for log in [logged(n, keep=5_000)]
    }
    assert decided == {1: [False] * 3, 50: [False] * 3, 1_000_000: [True, False, False]}


def test_the_difference_is_seen_sooner_than_two_separate_bounds_see_it() -> None:
    """GENSPEC's bound on the difference needs fewer interactions than SEA's two."""
    needed = {}
    for rule, decide in DEPLOYMENT_RULES.items():
        logs = ((n, logged(n, keep=5_000)) for n in (2**i for i in range(6, 21)))
        needed[rule] = next(n for n, log in logs if decide(log, ratio_of(log, 4.0 * RELEVANCE), 0.01))
    assert needed["genspec"] < needed["sea"]


def test_without_proof_the_logging_policy_stays() -> None:
    world = small_world()
    logs = simulate_logs(world, 200, 0)
    for rule in DEPLOYMENT_RULES:
        kept = learn_in_world("exposure-ips", world, logs, seed=0, training=QUICK, deploy=rule)
        assert kept is world.logging_scorer
