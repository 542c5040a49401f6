"""Position-based users pass, whoever they are; others are found by the sign they leave."""

from itertools import combinations

import numpy as np
import pytest

from saferank.doctor.log_arrays import SampledImpressions, sampled_impressions, shown_pairs
from saferank.doctor.position_based import Misfit, PositionBased, context_test, position_based, stop_test
from saferank.logs.aggregated_log import PARTS
from tests.doctor.worlds import Shop, aggregate, simulate


def fit_of(shop: Shop, seed: int) -> PositionBased:
    log = aggregate(simulate(shop, seed))
    pairs = shown_pairs(log)
    sample = sampled_impressions(log, pairs)
    return position_based(sample, log.statistics(PARTS, pairs), np.random.default_rng(seed))


def small_sample(seed: int) -> tuple[SampledImpressions, np.ndarray]:
    """Twelve impressions of two or three of four documents."""
    rng = np.random.default_rng(seed)
    rankings = [rng.permutation(4)[: rng.integers(2, 4)] for _ in range(12)]
    offsets = np.cumsum([0, *map(len, rankings)])
    rank = np.concatenate([np.arange(len(ranking)) for ranking in rankings])
    document = np.concatenate(rankings)
    click = (rng.random(len(rank)) < 0.5).astype(float)
    return SampledImpressions(offsets, document, rank, click, np.zeros_like(rank)), document * 3 + rank


def test_sums_above() -> None:
    sample, _ = small_sample(0)
    for i in range(len(sample.offsets) - 1):
        rows = range(sample.offsets[i], sample.offsets[i + 1])
        for row in rows:
            above = sum(sample.click[other] for other in rows if other < row)
            assert sample.sums_above(sample.click)[row] == pytest.approx(above)


def test_the_stop_test_pair_by_pair() -> None:
    sample, cell = small_sample(1)
    mean = {one: sample.click[cell == one].mean() for one in cell}
    per_impression, expected = [], 0.0
    for i in range(len(sample.offsets) - 1):
        pairs = list(combinations(range(sample.offsets[i], sample.offsets[i + 1]), 2))
        per_impression.append(
            sum((sample.click[a] - mean[cell[a]]) * (sample.click[b] - mean[cell[b]]) for a, b in pairs)
        )
        several = {one for one in cell if (cell == one).sum() > 1}
        expected += sum(mean[cell[a]] * mean[cell[b]] for a, b in pairs if {cell[a], cell[b]} <= several)
    found = stop_test(sample, cell)
    assert found.z == pytest.approx(sum(per_impression) / np.sqrt(np.square(per_impression).sum()))
    assert found.size == pytest.approx(sum(per_impression) / expected)


@pytest.mark.parametrize(
    "shop", [Shop(), Shop(ranker="fixed"), Shop(ranker="nightly", relevance=(0.01, 0.15)), Shop(tastes=0.7)]
)
def test_position_based_users_pass(shop: Shop) -> None:
    found = [fit_of(shop, seed) for seed in range(6)]
    assert all(one.holds for one in found)
    deviates = np.array([[one.context.z, one.trust.z] for one in found])
    assert np.abs(deviates.mean(axis=0)).max() < 5 / np.sqrt(6)


def test_users_with_tastes_click_together() -> None:
    assert fit_of(Shop(tastes=0.7), 0).stop.z > 10.0
    assert fit_of(Shop(tastes=0.7), 0).stop.size > 0.1


def test_users_who_stop() -> None:
    always, fixed = fit_of(Shop(stop=1.0), 0), fit_of(Shop(stop=1.0, ranker="fixed"), 0)
    assert always.users_stop
    assert always.context.z < -2.0
    assert fixed.users_stop
    assert fixed.stop.size == pytest.approx(-1.0, abs=0.02)  # never a second click
    assert not np.isfinite(fixed.context.error)  # nothing above ever changes
    assert fit_of(Shop(stop=0.7, ranker="nightly"), 0).users_stop


def test_a_diverse_list_for_users_of_one_intent_each_is_cleared_by_its_context() -> None:
    rare = Misfit(-30.0, -0.9, 0.03, 1_000)
    assert PositionBased(Misfit(0.5, 0.01, 0.05, 1_000), rare, Misfit(0.0, 0.0, 1.0, 10)).holds
    assert not PositionBased(Misfit(0.5, 0.1, 0.3, 1_000), rare, Misfit(0.0, 0.0, 1.0, 10)).holds


def test_users_who_trust_the_ranker() -> None:
    found = fit_of(Shop(trust=True, interactions=20_000), 0)
    assert found.trust.significant
    assert found.trust.size > 0  # clicks on poor documents fall faster
    assert not found.users_stop


def test_without_single_impressions_two_tests_say_nothing() -> None:
    log = aggregate(simulate(Shop(interactions=500), 0))
    pairs = shown_pairs(log)
    found = position_based(None, log.statistics(PARTS, pairs), np.random.default_rng(0))
    assert not np.isfinite([found.context.error, found.stop.error]).any()
    assert np.isfinite(found.trust.error)


def test_context_counts_what_stands_above() -> None:
    """A document is clicked only below a poor one."""
    rng = np.random.default_rng(0)
    good = rng.random(2_000) < 0.5
    first_click = rng.random(2_000) < np.where(good, 0.8, 0.2)
    second_click = (rng.random(2_000) < 0.5) & ~good
    document = np.column_stack([np.where(good, 0, 1), np.full(2_000, 2)]).ravel()
    rank = np.tile([0, 1], 2_000)
    click = np.column_stack([first_click, second_click]).ravel().astype(float)
    sample = SampledImpressions(np.arange(0, 4_001, 2), document, rank, click, np.zeros_like(rank))
    found = context_test(sample, document * 2 + rank, 2)
    assert found.z < -20.0
    # click-through falls by 0.5 over 0.6 clicks above, from a mean of 0.25
    assert found.size == pytest.approx(-0.5 / 0.6 / 0.25, rel=0.1)
