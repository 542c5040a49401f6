"""Steady logs give deviates like a normal one's; changes are found, and where they are."""

import numpy as np
import pytest

from saferank.doctor.drift import Drift, _disagreement, demand_drift, ranker_moved
from saferank.doctor.log_arrays import PeriodCounts, period_counts, shown_pairs
from saferank.doctor.strata import counts_by_stratum
from saferank.logs.aggregated_log import PARTS
from tests.doctor.worlds import Shop, aggregate, simulate


def counted(shop: Shop, seed: int) -> PeriodCounts:
    log = aggregate(simulate(shop, seed))
    pairs = shown_pairs(log)
    return period_counts(log, pairs)


def steady(seed: int) -> PeriodCounts:
    """20 cells of rates from 0.1 to 0.9, with 0 to 8 shown on each of six days."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, 9, (20, 6))
    clicked = rng.binomial(shown, np.linspace(0.1, 0.9, 20)[:, None])
    cell, day = np.nonzero(shown)
    return PeriodCounts(cell, cell // 5, np.zeros_like(cell), day, shown[cell, day], clicked[cell, day], 1, 6)


def test_steady_demand_gives_a_standard_deviate() -> None:
    found = np.array([demand_drift(steady(seed)).z for seed in range(400)])
    # the larger of two deviates that go together
    assert 0.0 < found.mean() < 0.7
    assert 0.7 < found.std() < 1.1
    assert np.quantile(found, 0.99) < 3.3


@pytest.mark.parametrize("ranker", ["random", "fixed"])
def test_a_steady_ranker_is_left_alone(ranker: str) -> None:
    shop = Shop(ranker=ranker, interactions=1_500)  # type: ignore[arg-type]
    found = [ranker_moved(counted(shop, seed)) for seed in range(8)]
    assert max(one.z for one in found) < 3.0
    assert all(one.boundary is None and one.size == 0.0 for one in found)


def test_a_nightly_ranker_moves_and_follows_demand() -> None:
    still = counted(Shop(ranker="nightly"), 1)
    assert not demand_drift(still).significant
    ranker = ranker_moved(still)
    assert ranker.z > 20.0
    assert ranker.size > 0.5  # the same ranking all day, another one the next
    drifting = counted(Shop(ranker="nightly", drift=0.5), 1)
    demand = demand_drift(drifting)
    assert demand.significant
    assert ranker_moved(drifting).significant
    assert 0.1 < demand.size < 0.6


def test_busy_days_are_no_drift() -> None:
    busy = Shop(ranker="nightly", relevance=(0.02, 0.3), season=0.3)
    found = [demand_drift(counted(busy, seed)) for seed in range(4)]
    assert not any(one.significant for one in found)
    assert np.mean([one.z for one in found]) < 2.0


def test_the_day_of_a_release_is_named() -> None:
    assert [ranker_moved(counted(Shop(ranker="release", days=8), seed)).boundary for seed in range(3)] == [4, 4, 4]


def test_how_much_demand_drifts() -> None:
    """Relative click-through of each day is 0.5 or 1.5, at random: a deviation of 0.5."""
    rng = np.random.default_rng(0)
    cell, day = (index.ravel() for index in np.indices((200, 10)))
    shown = np.full(len(cell), 30)
    clicked = rng.binomial(30, 0.2 * rng.choice([0.5, 1.5], len(cell)))
    found = demand_drift(PeriodCounts(cell, cell // 5, np.zeros_like(cell), day, shown, clicked, 1, 10))
    assert found.size == pytest.approx(0.5, rel=0.1)
    assert (found.cells, found.repeated) == (200, 1.0)


def test_one_period_says_nothing() -> None:
    counts = counted(Shop(days=1, interactions=300), 0)
    assert demand_drift(counts) == ranker_moved(counts) == Drift()


def test_within_periods_each_day_of_a_query_is_a_query() -> None:
    log = aggregate(simulate(Shop(days=3, queries=4, interactions=200), 0))
    pairs = shown_pairs(log)
    counts = period_counts(log, pairs)
    strata = counts_by_stratum(log, PARTS, pairs, strata=np.arange(3)).statistics()
    assert strata.total_interactions == 200
    assert strata.queries == 12
    days = counts.query * 3 + counts.period
    np.testing.assert_array_equal(
        np.add.reduceat(strata.clicks, strata.offsets[:-1]), np.bincount(days, counts.clicked)
    )
    moved = (np.count_nonzero(strata.shown, axis=1) >= 2).sum()
    cells = {(d, p): set[int]() for d, p in zip(counts.document, counts.period, strict=True)}
    for document, period, rank in zip(counts.document, counts.period, counts.rank, strict=True):
        cells[document, period].add(rank)
    assert moved == sum(len(ranks) >= 2 for ranks in cells.values())


def test_size_is_the_mean_over_pairs_of_interactions_and_of_its_two_periods() -> None:
    """Two periods of 40 and 10 interactions of a query, whose lists have one and two documents."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, 40), rng.integers(0, 2, (10, 2))
    rows = np.array(
        [(document, 0, 0) for document in first]
        + [(document, rank, 1) for one in second for rank, document in enumerate(one)]
    )
    kinds, shown = np.unique(rows, axis=0, return_counts=True)
    document, rank, period = kinds.T
    counts = PeriodCounts(document, np.zeros_like(document), rank, period, shown, np.zeros_like(shown), 2, 2)
    within = [
        np.mean([a == b for i, a in enumerate(one) for j, b in enumerate(one) if i != j])
        for one in (first, second[:, 0])
    ]
    between = np.mean([a == b for a in first for b in second[:, 0]])  # at the second rank there are no pairs
    assert _disagreement(counts) == pytest.approx(np.mean(within) - between)


def test_periods_of_one_interaction_do_not_disagree_with_themselves() -> None:
    period = np.arange(12)
    zeros = np.zeros_like(period)
    shown = np.where(period < 2, 20, 1)
    counts = PeriodCounts(zeros, zeros, zeros, period, shown, zeros, 1, 12)  # always the same document
    assert _disagreement(counts) == 0.0
    assert _disagreement(counts.of(period > 1)) == 0.0


def test_a_change_of_lists_in_a_small_period_is_seen_beside_a_large_one() -> None:
    """The large period shows many documents, so two of its lists agree less often than one of each period."""
    rng = np.random.default_rng(1)
    large, small = rng.choice(8, 3_000, p=[0.3, *[0.1] * 7]), np.zeros(100, np.int64)
    kinds, shown = np.unique([*((d, 0) for d in large), *((d, 1) for d in small)], axis=0, return_counts=True)
    document, period = kinds.T
    zeros = np.zeros_like(document)
    counts = PeriodCounts(document, zeros, zeros, period, shown, zeros, 1, 2)
    found = ranker_moved(counts)
    assert found.significant
    assert found.size == pytest.approx((1.0 + 0.3**2 + 7 * 0.1**2) / 2 - 0.3, abs=0.02)
