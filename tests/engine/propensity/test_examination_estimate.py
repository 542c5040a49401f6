"""Curves known beforehand are found again in simulated logs; the maximum is SciPy's."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from saferank.engine.click_models.examination import inverse_rank
from saferank.engine.errors import UsageError
from saferank.engine.propensity.curve_fit import CurveFit, bootstrap
from saferank.engine.propensity.examination_estimate import estimate_by_both, estimate_examination
from saferank.engine.propensity.harvesting import harvest
from saferank.engine.propensity.interventions import Interventions, find_interventions
from saferank.engine.propensity.position_based_em import expectation_maximisation
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate


def simulated(
    examination: NDArray[np.float64],
    *,
    queries: int = 200,
    documents: int = 8,
    interactions: int = 40_000,
    seed: int = 0,
) -> LogStatistics:
    """A log of scores so mild that documents move."""
    rng = np.random.default_rng(seed)
    scores, relevance = 0.7 * rng.normal(size=queries * documents), rng.uniform(0.1, 0.5, queries * documents)
    return simulate(scores, documents * np.arange(queries + 1), relevance, examination, interactions, rng)


@cache
def small() -> LogStatistics:
    return simulated(inverse_rank(4, 1.0), queries=30, documents=5, interactions=1_500)


@pytest.mark.parametrize("power", [0.0, 2.0])
def test_a_known_curve_is_found_again(power: float) -> None:
    truth = inverse_rank(6, power)
    for estimate in estimate_by_both(simulated(truth), np.random.default_rng(0)):
        error = np.log(estimate.high / estimate.low) / (2 * 1.96)
        assert estimate.curve[0] == estimate.low[0] == estimate.high[0] == 1.0
        assert np.all(error[1:] < 0.1)
        assert np.all(np.abs(np.log(estimate.curve / truth))[1:] <= 5 * error[1:])
        assert np.all((estimate.low < estimate.curve) & (estimate.curve < estimate.high) | (np.arange(6) == 0))
        assert estimate.warnings == ()
        assert estimate.complete
        assert np.all(estimate.interventions > 1_000)


def test_the_relevant_standing_higher_does_not_bend_the_curve() -> None:
    """The logging policy shows the relevant first: the click rate by rank is too steep, the estimate is not."""
    rng = np.random.default_rng(3)
    relevance = rng.choice([0.05, 0.6], 300 * 8)
    truth = inverse_rank(5, 1.0)
    log = simulate(2.5 * relevance, 8 * np.arange(301), relevance, truth, 60_000, rng)
    naive = log.clicked.sum(axis=0) / log.shown.sum(axis=0)
    estimate = estimate_examination(log, rng)
    assert naive[-1] / naive[0] < 0.85 * truth[-1]
    assert naive[-1] / naive[0] < estimate.low[-1]
    assert np.all((estimate.low <= truth) & (truth <= estimate.high))


def test_coverage_is_about_what_it_says() -> None:
    """95 in a hundred: of 60 logs x 3 ranks, correlated within a log, 5 standard errors of 60."""
    truth, covered, narrower = inverse_rank(4, 1.0), [], []
    for seed in range(60):
        log = simulated(truth, queries=60, documents=6, interactions=1_800, seed=seed)
        wide = estimate_examination(log, np.random.default_rng(seed))
        narrow = estimate_examination(log, np.random.default_rng(seed), confidence=0.5)
        covered.append(((wide.low <= truth) & (truth <= wide.high))[1:])
        narrower.append(((narrow.low <= truth) & (truth <= narrow.high))[1:])
    assert np.mean(covered) >= 0.95 - 5 * np.sqrt(0.95 * 0.05 / 60)
    assert abs(np.mean(narrower) - 0.5) <= 5 * np.sqrt(0.25 / 60)


def test_harvesting_is_the_maximum_of_the_conditional_likelihood() -> None:
    log = small()

    def loss(free: NDArray[np.float64]) -> float:
        weight = log.shown * np.exp(np.append(0.0, free))
        share = np.divide(weight, weight.sum(axis=1, keepdims=True), out=np.ones_like(weight), where=log.shown > 0)
        return -float((log.clicked * np.log(share)).sum())

    found = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 9_000})
    fit = harvest(find_interventions(log))
    assert fit.converged
    np.testing.assert_allclose(fit.log_curve[1:], found.x, atol=1e-5)


def test_em_is_the_maximum_of_the_likelihood() -> None:
    log = small()
    pairs = find_interventions(log)

    def loss(free: NDArray[np.float64]) -> float:
        chance = np.clip(np.outer(free[4:], free[:4]), 1e-12, 1 - 1e-12)
        return -float((pairs.clicked * np.log(chance) + (pairs.shown - pairs.clicked) * np.log1p(-chance)).sum())

    start = np.append(inverse_rank(4, 1.0), np.full(pairs.pairs, 0.3))
    found = minimize(
        loss, start, bounds=[(1e-6, 1.0)] * len(start), method="L-BFGS-B", options={"maxiter": 3_000, "maxfun": 10**6}
    )
    fit = expectation_maximisation(pairs)
    assert fit.converged
    np.testing.assert_allclose(np.exp(fit.log_curve), found.x[:4] / found.x[0], atol=2e-3)


@pytest.mark.parametrize("method", [harvest, expectation_maximisation])
def test_one_newton_step_stands_for_a_refit(method: Callable[[Interventions], CurveFit]) -> None:
    """Refit 240 resampled logs for real: their deviation is that of the bootstrap."""
    log, rng = simulated(inverse_rank(4, 1.0), queries=60, documents=5, interactions=6_000), np.random.default_rng(0)
    refits = []
    for _ in range(240):
        again = log.subset(rng.integers(60, size=60))
        refits.append(method(find_interventions(again)).log_curve)
    pairs = find_interventions(log)
    steps = bootstrap(method(pairs), pairs.query, 2_000, rng)
    ratio = np.std(refits, axis=0)[1:] / steps.std(axis=0)[1:]
    assert np.all(np.abs(np.log(ratio)) <= 5 / np.sqrt(2 * 240))
    assert np.all(np.abs(np.mean(refits, axis=0) - steps.mean(axis=0))[1:] <= 5 * steps.std(axis=0)[1:] / np.sqrt(240))


def test_the_same_generator_gives_the_same_interval_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    first = estimate_examination(small(), np.random.default_rng(1))
    again = estimate_examination(small(), np.random.default_rng(1))
    np.testing.assert_array_equal(first.high, again.high)
    pairs = find_interventions(small())
    fit = harvest(pairs)
    whole = bootstrap(fit, pairs.query, 4_000, np.random.default_rng(0)).std(axis=0)
    monkeypatch.setattr("saferank.engine.propensity.curve_fit.MEMORY", 16 * 7)  # a query or two at a time
    blocks = bootstrap(fit, pairs.query, 4_000, np.random.default_rng(0)).std(axis=0)
    np.testing.assert_allclose(blocks, whole, rtol=5 / np.sqrt(2 * 4_000) * np.sqrt(2))


def test_a_contradiction_is_carried_by_both() -> None:
    """Four impressions a query: EM's curve is too flat, and harvesting's is not."""
    truth = inverse_rank(5, 2.0)
    log = simulated(truth, queries=1_500, interactions=6_000)
    both = estimate_by_both(log, np.random.default_rng(0))
    assert np.all((both[0].low <= truth) & (truth <= both[0].high))
    assert both[1].low[1] > truth[1]
    assert "trust harvesting" in both[0].warnings[-1]
    assert both[0].warnings[-1] == both[1].warnings[-1]


def test_wrong_calls() -> None:
    rng = np.random.default_rng(0)
    for wrong in ({"confidence": 95.0}, {"replicates": 1}):
        with pytest.raises(UsageError):
            estimate_examination(small(), rng, **wrong)
