"""The bounds: coverage over thousands of logs in worlds whose truth is known, and what each is made of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from saferank.engine.bounds.betting import FRACTIONS, betting, condense, log_capitals
from saferank.engine.bounds.differences import Differences
from saferank.engine.bounds.registry import BOUNDS, check_bound, divergence_bound, empirical_bernstein, student_t
from saferank.engine.errors import UsageError
from tests.engine.bounds.worlds import DELTA, LOGS, NAMES, WORLDS, World, allowed


def log_capital(log: Differences, mean: float) -> float:
    """Logarithm of the whole capital won against "the mean is at most `mean`"."""
    return float(logsumexp(log_capitals(log, mean, FRACTIONS)))


# How often the bounds may fail, and that they are not too low to be of use.


@pytest.mark.parametrize("name", BOUNDS)
def test_every_bound_proves_a_clear_improvement(name: str) -> None:
    """X is -1, 0 or 1 with mean 0.1 and variance 0.29, 10,000 times."""
    counts = np.array([1_000, 7_000, 2_000])
    log = Differences(np.array([-1.0, 0.0, 1.0]), counts, -1.0, 1.0, {"paper": 0.3, "proven": 0.6}, guess=0.29)
    assert 0.05 < BOUNDS[name].lower(log, DELTA) < log.mean
    assert -0.15 < BOUNDS[name].lower(log.negated(), DELTA) < -log.mean


@pytest.mark.parametrize("interactions", [3, 1_000])
@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
@pytest.mark.parametrize("name", ["empirical-bernstein", "divergence"])
def test_false_deploys_are_as_rare_as_promised(world: World, name: str, interactions: int) -> None:
    assert world.improvement <= 1e-12
    failures = [BOUNDS[name].lower(log, DELTA) > 0.0 for log in world.draws(interactions, LOGS)]
    assert np.mean(failures) <= allowed(LOGS)


@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_betting_holds_over_all_looks_together(world: World) -> None:
    """The capitals of all looks at once: sums over values of counts times the logarithm of what each value wins."""
    values, chances = world.chances_of_values()
    growth = np.log1p(np.multiply.outer(values / -world.outcomes().low, FRACTIONS))
    rng = np.random.default_rng(7)
    steps = np.diff(np.unique(np.geomspace(1, 10_000, 30).astype(int)), prepend=0)
    goal, failed = math.log(1.0 / DELTA), 0
    for number in range(LOGS):
        counts = rng.multinomial(steps, chances).cumsum(axis=0)
        capitals = logsumexp(counts.astype(np.float64) @ growth, axis=-1) - math.log(len(FRACTIONS))
        failed += bool((capitals >= goal).any())
        if number < 5 and abs(capitals[-1] - goal) > 0.1:  # they are those that the bound goes by
            last = replace(world.outcomes(), values=values, counts=counts[-1])
            assert log_capital(last, 0.0) == pytest.approx(capitals[-1], rel=1e-9, abs=1e-9)
            assert (betting(last, DELTA) > 0.0) == (capitals[-1] >= goal)
    assert failed / LOGS <= allowed(LOGS)


def test_the_papers_constant_fails_where_clicks_come_together() -> None:
    logs = WORLDS[2].draws(1_000, LOGS)
    failures = [divergence_bound(log, DELTA, "paper") > 0 for log in logs]
    assert np.mean(failures) > allowed(LOGS)
    assert np.mean([divergence_bound(log, DELTA, "proven") > 0 for log in logs]) <= DELTA


def test_student_t_fails_for_few_interactions() -> None:
    world = WORLDS[4]
    failures = [student_t(log, DELTA) > world.improvement for log in world.draws(10, LOGS)]
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
    differences, mean = some([-0.5, 0.2, 3.0], [2, 4, 1]), -0.3
    by_hand = []
    for fraction in (0.1, 0.6):
        capital = 1 / len(FRACTIONS)
        for value in [-0.5] * 2 + [0.2] * 4 + [3.0]:
            capital *= 1 + fraction * (value - mean) / (mean + 1.0)
        by_hand.append(math.log(capital))
    assert log_capitals(differences, mean, np.array([0.1, 0.6])) == pytest.approx(by_hand, rel=1e-12)


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
        fractions = np.array([0.01, 0.4, 0.9])
        most, got = (log_capitals(one, mean, fractions) for one in (full, small))
        loss = 2e-4 * full.interactions * fractions**2 * full.variance / (mean + 2.0) ** 2
        assert (got <= most + 1e-6).all()
        assert (got >= most - loss - 1e-6).all()


def test_condensing_leaves_few_values_alone() -> None:
    differences = some([-1.0, 2.0], [30, 70])
    assert condense(differences) is differences


@pytest.mark.parametrize("name", BOUNDS)
def test_no_data_and_no_difference(name: str) -> None:
    lower = BOUNDS[name].lower
    assert lower(some([], []), DELTA) == -1.0
    same = Differences(np.zeros(1), np.array([1_000]), 0.0, 0.0, {"paper": 0.0, "proven": 0.0})
    assert (lower(same, DELTA), lower(same.negated(), DELTA)) == (0.0, 0.0)


@pytest.mark.parametrize("name", BOUNDS)
def test_more_data_and_larger_delta_narrow_every_interval(name: str) -> None:
    widths = []
    for factor, delta in ((1, 0.05), (10, 0.05), (10, 0.2)):
        log = some([-0.5, 0.1, 1.0], [200 * factor, 900 * factor, 300 * factor])
        widths.append(-BOUNDS[name].lower(log.negated(), delta) - BOUNDS[name].lower(log, delta))
    assert widths[0] > widths[1] > widths[2] > 0.0


@pytest.mark.parametrize(("bound", "delta"), [("magic", 0.05), ("betting", 0.0), ("betting", 1.0)])
def test_wrong_calls(bound: str, delta: float) -> None:
    with pytest.raises(UsageError):
        check_bound(bound, delta)
