"""The paired differences, held against enumeration of all that can be shown and clicked."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.bounds.differences import Differences, effective_number
from saferank.engine.types.click_patterns import ClickPatterns
from tests.engine.bounds.worlds import NAMES, WORLDS, World, correlated_world, known_differences


@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_the_mean_over_all_outcomes_is_the_improvement(world: World) -> None:
    values, chances = world.chances_of_values()
    assert values @ chances == pytest.approx(world.improvement, abs=1e-9)


@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_values_of_a_log_are_those_of_the_definition(world: World) -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(2_000, world.chances)
    got = world.differences(world.patterns(counts))
    weights = world.exposure / world.logging_exposure - 1.0
    expected = np.array([sum(weights[d] for d in of) for of in world.clicked])
    assert got.interactions == 2_000
    assert got.mean == pytest.approx(expected @ counts / 2_000, abs=1e-12)
    assert got.variance == pytest.approx(np.repeat(expected, counts).var(ddof=1), rel=1e-9)


@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_limits_hold_for_every_outcome_and_only_the_proven_moment_is_one(world: World) -> None:
    values, chances = world.chances_of_values()
    all_outcomes = world.outcomes()
    assert -len(world.examination) <= all_outcomes.low <= values.min() + 1e-9
    assert values.max() <= all_outcomes.high + 1e-9
    assert chances @ values**2 <= all_outcomes.second_moment["proven"] * (1 + 1e-9)


def test_the_papers_constant_is_too_small_where_clicks_come_together() -> None:
    world = correlated_world(ranks=2, chance=0.1)
    values, chances = world.chances_of_values()
    moments = world.outcomes().second_moment
    assert chances @ values**2 == pytest.approx(36.0)
    assert moments == {"paper": pytest.approx(18.0), "proven": pytest.approx(36.0)}


def two_queries() -> tuple[ClickPatterns, np.ndarray]:
    offsets = np.array([0, 2, 5])
    patterns = ClickPatterns(
        query=np.array([0, 0, 1, 1]),
        offsets=np.array([0, 0, 1, 3, 3]),
        documents=np.array([1, 2, 4]),
        interactions=np.array([6, 2, 1, 1]),
    )
    return patterns, offsets


def test_two_queries_by_hand() -> None:
    patterns, offsets = two_queries()
    rho_0 = np.array([0.8, 0.2, 0.5, 0.3, 0.2])
    rho = np.array([0.6, 0.4, 0.25, 0.3, 0.45])
    got = known_differences(patterns, offsets, rho, rho_0, np.ones(1))
    # weights: -1/4, 1 | -1/2, 0, 5/4; nothing clicked 6 + 1 times, then document 1 twice, 2 and 4 together once
    assert dict(zip(got.values.tolist(), got.counts.tolist(), strict=True)) == pytest.approx({0.0: 7, 0.75: 1, 1.0: 2})
    assert got.mean == pytest.approx((2 * 1.0 + 1 * 0.75) / 10)
    assert (got.low, got.high) == pytest.approx((-0.5, 1.25))  # one rank: the least and the largest weight
    first, second = 0.0625 * 0.8 + 1.0 * 0.2, 0.25 * 0.5 + 0.0 + 1.5625 * 0.2
    assert got.second_moment["paper"] == pytest.approx((8 * first + 2 * second) / 10)


def test_documents_never_shown_count_against_the_new_policy() -> None:
    patterns, offsets = two_queries()
    rho_0 = np.array([0.8, 0.0, 0.5, 0.5, 0.0])
    rho = np.array([0.5, 0.5, 0.5, 0.5, 0.0])
    got = known_differences(patterns, offsets, rho, rho_0, np.ones(1))
    assert got.values.min() == -1.0
    assert got.mean == pytest.approx((2 * -1.0 + 1 * (0.0 - 1.0)) / 10)


def test_the_same_policy_differs_in_nothing() -> None:
    patterns, offsets = two_queries()
    rho = np.array([0.8, 0.2, 0.5, 0.3, 0.2])
    got = known_differences(patterns, offsets, rho, rho, np.ones(1))
    assert (got.values.tolist(), got.low, got.high) == ([0.0], 0.0, 0.0)


def test_terms_of_units_are_their_sums() -> None:
    """Units 0, 1, 0, 2 of the four patterns, the last one with interactions of a single unit."""
    patterns, offsets = two_queries()
    rho_0 = np.array([0.8, 0.2, 0.5, 0.3, 0.2])
    rho = np.array([0.6, 0.4, 0.25, 0.3, 0.45])
    by_unit = replace(patterns, unit=np.array([0, 1, 0, 2]))
    got = known_differences(by_unit, offsets, rho, rho_0, np.ones(1))
    assert got.sizes is not None
    terms = {(value, size): int(n) for value, size, n in zip(got.values, got.sizes, got.counts, strict=True)}
    assert terms == {(0.75, 7.0): 1, (2.0, 2.0): 1, (0.0, 1.0): 1}  # unit 0: six without a click, and 0.75
    assert (got.terms, got.interactions, got.largest_size) == (3, 10, 7.0)
    mean = 2.75 / 10
    assert got.mean == pytest.approx(mean)
    residuals = np.array([0.75 - 7 * mean, 2.0 - 2 * mean, -mean])
    assert got.standard_error == pytest.approx(np.sqrt(residuals @ residuals / 2 * 3) / 10)


def test_a_large_unit_can_count_for_less() -> None:
    terms = Differences(
        np.array([6.0, -1.0]), np.array([1, 3]), -2.0, 3.0, second_moment={}, sizes=np.array([12.0, 2.0])
    )
    counted = terms.at_most(4)
    assert counted.sizes is not None
    assert (counted.values.tolist(), counted.sizes.tolist()) == ([6.0 * 4 / 12, -1.0], [4.0, 2.0])
    assert (counted.interactions, counted.largest_size, counted.low) == (4 + 3 * 2, 4.0, -2.0)
    assert counted.mean == pytest.approx((2.0 - 3.0) / 10)
    assert terms.at_most(12).mean == terms.mean == terms.at_most(np.inf).mean
    alone = replace(terms, sizes=None)
    assert alone.at_most(1) is alone


def test_rewards_scale_the_terms() -> None:
    patterns, offsets = two_queries()
    rho_0 = np.array([0.8, 0.2, 0.5, 0.3, 0.2])
    rho = np.array([0.6, 0.4, 0.25, 0.3, 0.45])
    paid = replace(patterns, rewards=np.array([3.0, 0.0, 2.0]))
    got = known_differences(paid, offsets, rho, rho_0, np.ones(1))
    assert got.mean == pytest.approx((2 * 3.0 * 1.0 + 1 * 2.0 * 1.25) / 10)


def test_equal_weights_are_worth_their_number_and_one_heavy_weight_about_one() -> None:
    assert effective_number(np.array([3, 2]), np.array([0.5, 0.5])) == pytest.approx(5.0)
    assert effective_number(np.array([1, 4]), np.array([100.0, 1.0])) == pytest.approx(104.0**2 / 10_004.0)
    assert effective_number(np.array([0]), np.array([1.0])) == 0.0


def test_no_interactions() -> None:
    nothing = Differences(np.empty(0), np.empty(0, np.int64), -1.0, 2.0, {"paper": 1.0, "proven": 2.0})
    assert (nothing.interactions, nothing.mean) == (0, 0.0)
    assert np.isnan(nothing.variance)
