"""The weights of clicks, held against a plain loop over impressions and against the truth of drawn logs."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.strata import StratumCounts, counts_by_stratum
from saferank.engine.plackett_luce import placement
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog, places_of
from saferank.verdict.comparison import Comparison
from tests.shop_log import ShopLog
from tests.shops import Ranker, Shop, World, make_shop, noisy

Array = NDArray[np.float64]
ALL = (0.0, 0.0, 1.0)
"""Everything is held out."""
NO_LIMIT = 1e9


def in_order(pairs: RankingData, data: RankingData) -> NDArray[np.int64]:
    """Row of `data` among `pairs`."""
    assert data.query_ids is not None
    return places_of(pairs).of_pairs(data.query_ids[data.query_of_document], data.document_ids)


def compare(
    shop: Shop, log: AggregatedLog, new: Ranker, *, known: Ranker | None = None, by_period: bool = False,
    listed: NDArray[np.bool_] | None = None, ranked: NDArray[np.bool_] | None = None,
) -> Comparison:  # fmt: skip
    """Both rankers on the held-out part; `listed` and `ranked` are in the order of the shop."""
    data = shop.data()
    pairs = shown_pairs(log, data)
    rows = in_order(pairs, data)
    chances = np.zeros((pairs.documents, shop.cutoff))
    chances[rows] = new.placement(shop.cutoff).reshape(-1, shop.cutoff)
    if listed is not None:
        chances[rows[~listed]] = 0.0
    logging = None
    if known is not None:
        logging = np.zeros_like(chances)
        logging[rows] = placement(known.flat, data.offsets, shop.cutoff)
    there = np.ones(shop.queries, np.bool_)
    if ranked is not None:
        there[pairs.query_of_document[rows[:: shop.documents]]] = ranked
    part = counts_by_stratum(log, ("certify",), pairs, strata=np.arange(len(log.periods)) if by_period else None)
    return Comparison(part, chances, there, pairs.offsets, logging)


def plain_mean(
    drawn: ShopLog, new: Ranker, *, known: Ranker | None = None, by_period: bool = False,
    listed: NDArray[np.bool_] | None = None, ranked: NDArray[np.bool_] | None = None,
) -> float:  # fmt: skip
    """The estimate, impression by impression."""
    shop = drawn.shop
    rho = new.exposure(shop.examination)
    rho = rho if listed is None else np.where(listed, rho, 0.0)
    examined: dict[tuple[int, int], float] = {}
    issued: dict[tuple[int, int], int] = {}
    when = drawn.day if by_period else np.zeros_like(drawn.day)
    for day, query, rows in zip(when, drawn.query, drawn.rows, strict=True):
        issued[day, query] = issued.get((day, query), 0) + 1
        for rank, row in enumerate(rows):
            examined[day, row] = examined.get((day, row), 0.0) + shop.examination[rank]
    logging = None if known is None else known.exposure(shop.examination)
    total = 0.0
    for day, query, rows, clicks in zip(when, drawn.query, drawn.rows, drawn.clicks, strict=True):
        if ranked is not None and not ranked[query]:
            continue
        for row in rows[clicks]:
            before = logging[row] if logging is not None else examined[day, row] / issued[day, query]
            total += rho[row] / before - 1.0
    return total / len(drawn.query)


@pytest.fixture(scope="module")
def world() -> World:
    rng = np.random.default_rng(3)
    shop = make_shop(rng, queries=3, documents=4, cutoff=2, days=3, drift=0.5)
    return World(shop, noisy(shop, rng))


@pytest.fixture(scope="module")
def drawn(world: World) -> ShopLog:
    return world.draw(400, np.random.default_rng(4))


@pytest.fixture(scope="module")
def log(drawn: ShopLog) -> AggregatedLog:
    return drawn.aggregated(0, shares=ALL)


@pytest.fixture(scope="module")
def new(world: World) -> Ranker:
    return noisy(world.shop, np.random.default_rng(5), sampled=False)


@pytest.mark.parametrize("by_period", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_the_mean_is_that_of_a_plain_loop(
    world: World, drawn: ShopLog, log: AggregatedLog, new: Ranker, by_period: bool, known: bool, some: bool
) -> None:
    """`some`: a document of the first query is not listed, and the second query is not ranked."""
    listed = np.arange(12) != new.flat[:4].argmax() if some else None
    ranked = np.array([True, False, True]) if some else None
    scores = world.logging if known else None
    got = compare(world.shop, log, new, known=scores, by_period=by_period, listed=listed, ranked=ranked)
    wanted = plain_mean(drawn, new, known=scores, by_period=by_period, listed=listed, ranked=ranked)
    curve = world.shop.examination
    assert got.mean(curve, NO_LIMIT) == pytest.approx(wanted, abs=1e-3 if known else 1e-9)
    differences = got.differences(curve, NO_LIMIT)
    assert differences.mean == pytest.approx(got.mean(curve, NO_LIMIT), abs=1e-12)
    assert (differences.interactions, differences.low) == (400, -2.0)
    assert differences.low <= differences.values.min() <= differences.values.max() <= differences.high < 100.0


def test_a_query_with_few_documents_does_not_widen_the_range_of_a_term() -> None:
    """Lists of one document end early, and everywhere: what may be shown is known all the same."""
    offsets, examination = np.array([0, 1, 4]), np.array([1.0, 0.5])
    scores = np.array([[0.0], [1.0]])[np.array([0, 0, 1, 0]), 0].astype(np.float32)
    logged, new = (placement(s, offsets, 2) for s in (np.zeros(4, np.float32), 0.1 * scores))
    shown = np.array([[5, 0], [4, 3], [3, 4], [2, 2]])
    part = StratumCounts(
        pair=np.arange(4), stratum=np.array([0, 1, 1, 1]), shown=shown, clicked=np.zeros_like(shown),
        query=np.array([0, 1]), period=np.zeros(2, np.int64), interactions=np.array([5, 9]),
        patterns=ClickPatterns(
            query=np.array([0, 1]), offsets=np.array([0, 0, 1]), documents=np.array([2]),
            interactions=np.array([5, 9]), segment=None, period=np.zeros(2, np.int64), unit=None, rewards=None,
        ),
    )  # fmt: skip
    there = np.ones(2, np.bool_)
    found = Comparison(part, new, there, offsets, logged).differences(examination, NO_LIMIT)
    weights = (new @ examination) / (logged @ examination) - 1.0
    assert found.low == pytest.approx(np.sort(weights[1:])[:2].sum(), abs=1e-6)
    ended = replace(part, interactions=np.array([5, 10]))  # one list of the second query was empty
    assert Comparison(ended, new, there, offsets, logged).differences(examination, NO_LIMIT).low == -2.0


def test_a_document_that_is_not_listed_counts_against_and_a_query_not_ranked_counts_nothing(
    world: World, log: AggregatedLog, new: Ranker
) -> None:
    listed, ranked = np.arange(12) % 4 != 1, np.array([True, False, True])
    got = compare(world.shop, log, new, listed=listed, ranked=ranked)
    data = world.shop.data()
    row = np.argsort(in_order(shown_pairs(log, data), data))[got.part.pair]  # of the shop
    ratio = got.ratio(world.shop.examination)
    there = ranked[row // 4]
    np.testing.assert_array_equal(ratio[~there], 1.0)
    np.testing.assert_array_equal(ratio[there & ~listed[row]], 0.0)
    best = np.isin(row, np.flatnonzero(listed)[np.newaxis]) & there & (new.exposure(world.shop.examination)[row] > 0)
    assert (ratio[best] > 0).all()
    nothing = compare(world.shop, log, new, ranked=np.zeros(3, np.bool_))
    assert nothing.differences(world.shop.examination, NO_LIMIT).values.tolist() == [0.0]
    assert nothing.rest(world.shop.examination, NO_LIMIT) == 0.0


def test_limits_of_weights_only_lower(world: World, log: AggregatedLog, new: Ranker) -> None:
    got, curve = compare(world.shop, log, new), world.shop.examination
    means = [got.mean(curve, limit) for limit in (1.0, 1.5, 2.0, 5.0, NO_LIMIT)]
    assert means == sorted(means)
    assert means[0] < means[-1]
    clipped = [replace(got, clip=clip).mean(curve, NO_LIMIT) for clip in (2.0, 0.7, 0.3, 0.0)]
    assert clipped == sorted(clipped)
    assert clipped[0] < clipped[-1] == means[-1]


def test_rewards_scale_everything(world: World, log: AggregatedLog, new: Ranker) -> None:
    got, curve = compare(world.shop, log, new), world.shop.examination
    patterns = got.part.patterns
    paid = replace(got.part, patterns=replace(patterns, rewards=np.full(len(patterns.documents), 2.5)))
    scaled = replace(got, part=paid, most_reward=2.5)
    one, two = got.differences(curve, 3.0), scaled.differences(curve, 3.0)
    np.testing.assert_allclose(two.values, 2.5 * one.values)
    assert (two.low, two.high) == pytest.approx((2.5 * one.low, 2.5 * one.high))
    assert two.second_moment["proven"] == pytest.approx(6.25 * one.second_moment["proven"])
    assert scaled.mean(curve, 3.0) == pytest.approx(2.5 * got.mean(curve, 3.0))
    assert scaled.rest(curve, 1.2) == pytest.approx(2.5 * got.rest(curve, 1.2))


def test_rest_and_unsupported_by_hand() -> None:
    """One query, d0 and d1 shown in turn at the one rank; the new ranker shows d2, or draws d1 and d2."""
    shop = Shop(np.full((1, 1, 3), 0.5), np.ones(1), np.ones(1))
    drawn = ShopLog(
        shop, np.arange(4), np.zeros(4, np.int64), np.zeros(4, np.int64), np.array([[0], [1], [0], [1]]),
        np.array([[True], [True], [False], [False]]),
    )  # fmt: skip
    log = drawn.aggregated(0, shares=ALL)
    never = compare(shop, log, Ranker(np.array([[0.0, 0.0, 1.0]])))
    assert (never.mean(np.ones(1), 9.0), never.rest(np.ones(1), 9.0)) == pytest.approx((-0.5, 1.0))
    assert never.unsupported(np.ones(1)) == pytest.approx(1.0)
    half = compare(shop, log, Ranker(np.array([[-50.0, 0.0, 0.0]]), sampled=True))
    assert half.unsupported(np.ones(1)) == pytest.approx(0.5, abs=1e-3)
    assert half.mean(np.ones(1), 9.0) == pytest.approx(0.25 - 0.5, abs=1e-3)
    assert half.rest(np.ones(1), 9.0) == pytest.approx(0.5, abs=1e-3)
    second = compare(shop, log, Ranker(np.array([[0.0, 1.0, 0.0]])))  # its weight is 2, lowered to 1.5: 1/4 is left out
    assert second.mean(np.ones(1), 1.5) == pytest.approx((1.5 * 1 - 2) / 4)
    assert second.rest(np.ones(1), 1.5) == pytest.approx(0.25)


def estimates(world: World, new: Ranker, logs: int, interactions: int, limit: float, **options: bool) -> Array:
    """(log, estimate and rest)."""
    found = []
    for seed in range(logs):
        rng = np.random.default_rng([6, seed])
        log = world.draw(interactions, rng).aggregated(rng, shares=ALL)
        known = world.logging if options.get("known") else None
        got = compare(world.shop, log, new, known=known, by_period=options.get("by_period", False))
        curve = world.shop.examination
        found.append((got.mean(curve, limit), got.rest(curve, limit)))
    return np.array(found)


def off(values: Array, truth: float) -> float:
    """Standard errors by which the mean is above the truth."""
    return float((values.mean() - truth) / (values.std(ddof=1) / np.sqrt(len(values))))


@pytest.mark.parametrize("known", [False, True])
def test_over_logs_the_mean_is_the_improvement(world: World, new: Ranker, known: bool) -> None:
    steady = replace(world, shop=replace(world.shop, relevance=np.repeat(world.shop.relevance[:1], 3, axis=0)))
    found = estimates(steady, new, 120, 300, NO_LIMIT, known=known)
    assert abs(off(found[:, 0], steady.improvement(new))) < 5.0


def test_by_period_a_ranker_that_follows_demand_does_no_harm() -> None:
    """Every document is shown on every day; without periods the same estimate is far off."""
    rng = np.random.default_rng(8)
    shop = make_shop(rng, queries=3, documents=3, cutoff=3, days=5, drift=1.0)
    world = World(shop, Ranker(shop.relevance))
    new = noisy(shop, rng, sampled=False)
    truth = world.improvement(new)
    apart = estimates(world, new, 80, 300, NO_LIMIT, by_period=True)
    together = estimates(world, new, 80, 300, NO_LIMIT)
    assert abs(off(apart[:, 0], truth)) < 5.0
    assert abs(off(together[:, 0], truth)) > 7.0


def test_with_the_rest_it_is_an_upper_bound_and_without_it_a_lower_one() -> None:
    """A deterministic ranker that never shows half of the documents, and weights up to 1.5."""
    rng = np.random.default_rng(9)
    shop = make_shop(rng, queries=3, documents=4, cutoff=2, days=1)
    world = World(shop, noisy(shop, rng, sampled=False))
    new = noisy(shop, rng, noise=2.0, sampled=True)
    truth = world.improvement(new)
    found = estimates(world, new, 60, 300, 1.5)
    assert off(found[:, 0], truth) < -5.0
    assert off(found.sum(axis=1), truth) > 5.0
