"""The bounds: coverage over thousands of logs in worlds whose truth is known, and what each is made of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

from saferank.engine.bounds.betting import Bets, betting, condense, log_capital, spread_bets
from saferank.engine.bounds.differences import Differences
from saferank.engine.bounds.registry import BOUNDS, divergence_bound, empirical_bernstein, interval, student_t
from saferank.engine.errors import UsageError
from tests.engine.bounds.worlds import (
    World,
    correlated_world,
    dcg_world,
    harmful_world,
    heavy_world,
    paper_world,
)

DELTA = 0.05
LOGS = 2_000
WORLDS = [paper_world(), dcg_world(), correlated_world(), heavy_world(), harmful_world()]
NAMES = [world.name for world in WORLDS]
GUARANTEES = [name for name, bound in BOUNDS.items() if bound.guarantee]


def draws(world: World, interactions: int, logs: int, seed: int = 0) -> list[Differences]:
    values, chances = world.chances_of_values()
    blank = world.outcomes()
    rng = np.random.default_rng(seed)
    made = []
    for counts in rng.multinomial(interactions, chances, size=logs):
        seen = counts > 0
        made.append(replace(blank, values=values[seen], counts=counts[seen]))
    return made


def allowed(logs: int, delta: float = DELTA) -> float:
    """At most this share of the logs may fail: delta plus three standard errors."""
    return delta + 3.0 * math.sqrt(delta * (1.0 - delta) / logs)


def growth_of(world: World, bets: Bets) -> NDArray[np.float64]:
    """Logarithm of what each bet (column) makes of its capital for each value (row), against a mean of 0."""
    values, _ = world.chances_of_values()
    return np.log1p(np.multiply.outer(values / -world.outcomes().low, bets.fractions))


def capitals(growth: NDArray[np.float64], counts: NDArray[np.int64], bets: Bets) -> NDArray[np.float64]:
    """Logarithm of the capital won against a mean of 0, for counts (..., value) of many logs at once."""
    each = counts.astype(np.float64) @ growth  # of floats: much faster
    return logsumexp(each + np.log(bets.shares), axis=-1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("interactions", [3, 100, 10_000])
@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
@pytest.mark.parametrize("name", [name for name in GUARANTEES if name not in ("betting", "one-look")])
def test_false_deploys_are_as_rare_as_promised(world: World, name: str, interactions: int) -> None:
    assert world.improvement <= 1e-12
    failures = [BOUNDS[name].lower(log, DELTA) > 0.0 for log in draws(world, interactions, LOGS)]
    assert np.mean(failures) <= allowed(LOGS)


@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_capitals_of_many_logs_are_those_of_each(world: World) -> None:
    values, chances = world.chances_of_values()
    counts = np.random.default_rng(0).multinomial(100, chances, size=10)
    together = capitals(growth_of(world, spread_bets()), counts, spread_bets())
    for one, capital in zip(counts, together, strict=True):
        log = replace(world.outcomes(), values=values, counts=one)
        assert log_capital(log, 0.0) == pytest.approx(capital, rel=1e-9, abs=1e-9)
        if abs(capital - math.log(1.0 / DELTA)) > 0.1:
            assert (betting(log, DELTA) > 0.0) == (capital >= math.log(1.0 / DELTA))


@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_betting_holds_over_all_looks_together(world: World) -> None:
    _, chances = world.chances_of_values()
    bets = spread_bets()
    rng = np.random.default_rng(7)
    looks = np.unique(np.geomspace(1, 10_000, 30).astype(int))
    growth = growth_of(world, bets)
    failed = 0
    for _ in range(LOGS):
        steps = rng.multinomial(np.diff(looks, prepend=0), chances)
        failed += bool((capitals(growth, steps.cumsum(axis=0), bets) >= math.log(1.0 / DELTA)).any())
    assert failed / LOGS <= allowed(LOGS)


def test_the_papers_constant_fails_where_clicks_come_together() -> None:
    logs = draws(WORLDS[2], 1_000, LOGS)
    failures = [divergence_bound(log, DELTA, "paper") > 0 for log in logs]
    assert np.mean(failures) > allowed(LOGS)
    assert np.mean([divergence_bound(log, DELTA, "proven") > 0 for log in logs]) <= DELTA


def test_student_t_fails_for_few_interactions() -> None:
    world = WORLDS[4]
    failures = [student_t(log, DELTA) > world.improvement for log in draws(world, 10, LOGS)]
    assert np.mean(failures) > allowed(LOGS)


def test_looking_often_breaks_student_t() -> None:
    """The test above can fail: the same looks with a bound for one look."""
    world = WORLDS[0]
    values, chances = world.chances_of_values()
    rng = np.random.default_rng(7)
    failed = 0
    for _ in range(200):
        total = np.zeros(len(values), np.int64)
        for step in np.diff(np.unique(np.geomspace(10, 5_000, 12).astype(int)), prepend=0):
            total += rng.multinomial(step, chances)
            if student_t(replace(world.outcomes(), values=values, counts=total), DELTA) > 0:
                failed += 1
                break
    assert failed / 200 > allowed(200)


# What each bound is made of.


def some(values: list[float], counts: list[int], low: float = -1.0, high: float = 5.0) -> Differences:
    return Differences(np.array(values), np.array(counts), low, high, {"paper": 0.5, "proven": 2.0})


def test_divergence_bound_by_hand() -> None:
    differences = some([-1.0, 2.0], [30, 70])
    assert divergence_bound(differences, 0.2) == pytest.approx(1.1 - math.sqrt(2.0 / 100 * 4.0))
    assert divergence_bound(differences, 0.2, "paper") == pytest.approx(1.1 - math.sqrt(0.5 / 100 * 4.0))


def test_student_t_is_scipys() -> None:
    differences = some([-1.0, 0.0, 2.0], [3, 5, 9])
    sample = np.repeat([-1.0, 0.0, 2.0], [3, 5, 9])
    expected = stats.ttest_1samp(sample, 0.0, alternative="greater").confidence_interval(0.95).low
    assert student_t(differences, 0.05) == pytest.approx(expected, rel=1e-9)


def test_empirical_bernstein_by_hand() -> None:
    differences = some([-1.0, 1.5], [4_000, 6_000], low=-1.0, high=1.5)
    log = math.log(2 * 8 / 0.05)
    sample = np.repeat([-1.0, 1.5], [4_000, 6_000])
    at_the_top = sample.mean() - math.sqrt(2 * sample.var(ddof=1) * log / 10_000) - 7 * 2.5 * log / (3 * 9_999)
    assert empirical_bernstein(differences, 0.05) == pytest.approx(at_the_top, rel=1e-12)


def test_empirical_bernstein_needs_no_upper_limit_that_is_near() -> None:
    near, far = (some([-0.5, 0.5], [10_000, 30_000], high=high) for high in (1.0, 100.0))
    assert empirical_bernstein(far, 0.05) > 0.8 * empirical_bernstein(near, 0.05) > 0


def test_capital_is_the_product_over_interactions() -> None:
    differences = some([-0.5, 0.2, 3.0], [2, 4, 1])
    bets = Bets(np.array([0.1, 0.6]), np.array([0.25, 0.75]))
    mean = -0.3
    by_hand = 0.0
    for fraction, share in ((0.1, 0.25), (0.6, 0.75)):
        capital = share
        for value in [-0.5] * 2 + [0.2] * 4 + [3.0]:
            capital *= 1 + fraction * (value - mean) / (mean + 1.0)
        by_hand += capital
    assert log_capital(differences, mean, bets) == pytest.approx(math.log(by_hand), rel=1e-12)


@given(
    values=st.lists(st.floats(-1.0, 50.0), min_size=1, max_size=20),
    count=st.integers(1, 1_000),
    delta=st.sampled_from([0.2, 0.05, 0.001]),
)
@example(values=[-0.9999999999999999], count=1, delta=0.2)  # no number between the mean and the lower limit
@example(values=[0.0, 5.5e-110], count=1, delta=0.2)
@settings(max_examples=100, deadline=None)
def test_betting_is_where_the_capital_reaches_the_goal(values: list[float], count: int, delta: float) -> None:
    differences = some(values, [count] * len(values), high=50.0)
    bottom, top = -1.0, differences.mean
    for _ in range(50):
        middle = (bottom + top) / 2
        if middle > -1.0 and log_capital(differences, middle) >= math.log(1 / delta):
            bottom = middle
        else:
            top = middle
    bound = betting(differences, delta)
    assert bound <= bottom + 1e-9
    assert bound == pytest.approx(bottom, abs=0.002 * (differences.mean + 1.0) + 1e-9)


def test_betting_for_one_value_far_above() -> None:
    """Every interaction wins the same: the best single fraction, almost 1, decides."""
    differences = some([1.0], [100])
    assert 0.8 < betting(differences, 0.05) < 1.0


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 30.0]))
@settings(max_examples=30, deadline=None)
def test_condensed_values_keep_the_mean_and_never_win_more(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.maximum(rng.standard_t(3, 500) * spread + 0.1, -2.0)
    full = Differences(values, rng.integers(1, 50, 500), -2.0, float(values.max()), {})
    small = condense(full, most=10)
    assert small.counts.sum() == pytest.approx(full.counts.sum())
    assert float(small.values @ small.counts) == pytest.approx(float(full.values @ full.counts), abs=1e-6)
    assert small.values.min() >= full.low
    for mean in (-1.5, -0.2, 0.0, full.mean):
        for fraction in (0.01, 0.4, 0.9):
            one = Bets(np.array([fraction]), np.array([1.0]))
            most = log_capital(full, mean, one)
            got = log_capital(small, mean, one)
            assert got <= most + 1e-6
            assert got >= most - 2e-4 * full.interactions * fraction**2 * full.variance / (mean + 2.0) ** 2 - 1e-6


def test_condensing_leaves_few_values_alone() -> None:
    differences = some([-1.0, 2.0], [30, 70])
    assert condense(differences) is differences


@pytest.mark.parametrize("name", BOUNDS)
def test_no_data_and_no_difference(name: str) -> None:
    nothing = some([], [])
    assert BOUNDS[name].lower(nothing, DELTA) == -1.0
    same = Differences(np.zeros(1), np.array([1_000]), 0.0, 0.0, {"paper": 0.0, "proven": 0.0})
    assert interval(same, DELTA, name) == (0.0, 0.0)


@pytest.mark.parametrize("name", BOUNDS)
def test_more_data_and_larger_delta_narrow_every_interval(name: str) -> None:
    widths = []
    for factor, delta in ((1, 0.05), (10, 0.05), (10, 0.2)):
        lower, upper = interval(some([-0.5, 0.1, 1.0], [200 * factor, 900 * factor, 300 * factor]), delta, name)
        assert lower < upper
        widths.append(upper - lower)
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("name", BOUNDS)
def test_the_upper_bound_is_the_lower_one_of_the_negative(name: str) -> None:
    differences = some([-0.5, 0.1, 1.0], [200, 900, 300])
    lower, upper = interval(differences, DELTA, name)
    assert interval(differences.negated(), DELTA, name) == pytest.approx((-upper, -lower))


def test_wrong_calls() -> None:
    differences = some([0.0], [1])
    with pytest.raises(UsageError, match="bound 'magic' is unknown; choose one of: one-look"):
        interval(differences, 0.05, "magic")
    with pytest.raises(UsageError, match="delta is the chance that the bound may fail"):
        interval(differences, 0.0, "betting")
    with pytest.raises(UsageError, match="the shares add up to 2"):
        Bets(np.array([0.5]), np.array([2.0]))
    with pytest.raises(UsageError, match="a fraction between 0 and 1"):
        Bets(np.array([1.5]), np.array([1.0]))
