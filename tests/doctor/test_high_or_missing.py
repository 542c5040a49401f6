"""Documents that something other than the ranker leaves out are found; what a ranker passes over is not."""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from saferank.doctor.high_or_missing import HighOrMissing, high_or_missing
from saferank.doctor.log_arrays import SampledImpressions
from saferank.engine.types.ranking_data import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
QUERIES, DOCUMENTS, CUTOFF, LISTS, DAYS = 40, 16, 6, 8_000, 8
PAIRS = RankingData(np.zeros((QUERIES * DOCUMENTS, 0), np.float32), np.arange(QUERIES + 1) * DOCUMENTS)
Ranker = Callable[[Integers, Integers, Floats, Generator], Floats]
"""From query and day of each list, and the scores of its query's documents, to what it is sorted by."""


def logged(ranker: Ranker, *, seed: int = 0, screens: bool = False, cutoff: int = 0) -> SampledImpressions:
    rng = np.random.default_rng(seed)
    query, day = rng.integers(0, QUERIES, LISTS), np.sort(rng.integers(0, DAYS, LISTS))
    lists = np.argsort(-ranker(query, day, 1.5 * rng.normal(size=(QUERIES, DOCUMENTS))[query], rng), axis=1)
    length = np.where(rng.random(LISTS) < 0.5, 1, CUTOFF) if screens else np.full(LISTS, CUTOFF)
    length = np.full(LISTS, cutoff) if cutoff else length
    shown = np.arange(DOCUMENTS) < length[:, None]
    rows = np.repeat(np.arange(LISTS), length)
    return SampledImpressions(
        offsets=np.append(0, np.cumsum(length)),
        document=query[rows] * DOCUMENTS + lists[shown],
        rank=np.nonzero(shown)[1],
        click=np.zeros(len(rows)),
        period=day[rows],
        moment=rows,
    )


def drawn(_query: Integers, _day: Integers, scores: Floats, rng: Generator) -> Floats:
    return scores + 0.7 * rng.gumbel(size=scores.shape)


def hardly_varied(_query: Integers, _day: Integers, scores: Floats, rng: Generator) -> Floats:
    return scores + 0.1 * rng.normal(size=scores.shape)


def at_random(_query: Integers, _day: Integers, scores: Floats, rng: Generator) -> Floats:
    return np.asarray(rng.random(scores.shape))


def a_tenth_at_random(query: Integers, day: Integers, scores: Floats, rng: Generator) -> Floats:
    return np.where(rng.random((len(scores), 1)) < 0.1, at_random(query, day, scores, rng), scores)


def sold_out(query: Integers, day: Integers, scores: Floats, rng: Generator) -> Floats:
    return np.where(rng.random(scores.shape) < 0.25, -np.inf, drawn(query, day, scores, rng))


def regions(query: Integers, day: Integers, scores: Floats, rng: Generator) -> Floats:
    there = rng.random((12, QUERIES, DOCUMENTS)) < 0.8
    return np.where(there[rng.integers(0, 12, len(scores)), query], drawn(query, day, scores, rng), -np.inf)


def two_per_brand(query: Integers, day: Integers, scores: Floats, rng: Generator) -> Floats:
    """Half of the products are of one brand."""
    scores = drawn(query, day, scores, rng)
    brand = scores[:, : DOCUMENTS // 2]
    brand[brand < np.sort(brand, axis=1)[:, -2:-1]] = -np.inf
    return scores


def two_of_five_swapped(_query: Integers, _day: Integers, scores: Floats, rng: Generator) -> Floats:
    """All lists have the same five documents."""
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1)
    one, other = rng.integers(0, 5, (2, len(scores), 1))
    return -np.where(ranks == one, other, np.where(ranks == other, one, ranks)).astype(np.float64)


def new_on_day_four(query: Integers, day: Integers, scores: Floats, rng: Generator) -> Floats:
    other = 1.5 * rng.normal(size=(QUERIES, DOCUMENTS))[query]
    return drawn(query, day, np.where((day >= DAYS // 2)[:, None], other, scores), rng)


@pytest.mark.parametrize("ranker", [sold_out, regions, two_per_brand])
@pytest.mark.parametrize("by_period", [False, True])
def test_what_is_left_out_is_found(ranker: Ranker, by_period: bool) -> None:
    found = high_or_missing(logged(ranker), PAIRS, by_period=by_period)
    assert found.significant, found
    assert found.impressions > 0.7 * LISTS


@pytest.mark.parametrize("ranker", [drawn, hardly_varied, at_random, a_tenth_at_random])
@pytest.mark.parametrize("by_period", [False, True])
def test_what_one_ranker_draws_is_not(ranker: Ranker, by_period: bool) -> None:
    found = [high_or_missing(logged(ranker, seed=seed), PAIRS, by_period=by_period) for seed in range(3)]
    assert max(one.share for one in found) < 0.005


def test_a_ranker_that_changes_is_not() -> None:
    log = logged(new_on_day_four)
    assert not high_or_missing(log, PAIRS, by_period=False).significant
    log = replace(log, unit=np.repeat(np.arange(LISTS), np.diff(log.offsets)))  # users come before and after
    assert high_or_missing(log, PAIRS, by_period=False).significant
    assert not high_or_missing(log, PAIRS, by_period=True).significant


def test_what_is_always_shown_is_never_missing_in_lists_of_any_length() -> None:
    assert high_or_missing(logged(two_of_five_swapped, cutoff=5), PAIRS, by_period=False).share <= 0.0


def test_users_who_are_shown_the_same_list_again_are_on_one_side() -> None:
    """Chance alone leaves documents out of the lists of so few users: 12 per query, with 17 searches each."""
    rng = np.random.default_rng(3)
    query = rng.integers(0, QUERIES, LISTS)
    user = rng.integers(0, 12, LISTS) + 12 * query
    by_user = drawn(user, user, rng.normal(size=(QUERIES, DOCUMENTS)).repeat(12, axis=0), rng)
    ranked = np.argsort(-by_user, axis=1)[:, :CUTOFF]
    rows = np.repeat(np.arange(LISTS), CUTOFF)
    sample = replace(logged(drawn), document=query[rows] * DOCUMENTS + ranked[user].ravel(), unit=user[rows])
    assert not high_or_missing(sample, PAIRS, by_period=False).significant
    assert high_or_missing(replace(sample, unit=None), PAIRS, by_period=False).share > 0.01


def test_what_is_left_out_and_not_replaced_is_found_too() -> None:
    log, rng = logged(drawn), np.random.default_rng(7)
    best = np.bincount(log.document, log.rank < 2, QUERIES * DOCUMENTS).reshape(QUERIES, -1).argmax(axis=1)
    best += DOCUMENTS * np.arange(QUERIES)
    row = np.repeat(np.arange(LISTS), CUTOFF)
    kept = ~(np.isin(log.document, best) & (rng.random(LISTS) < 0.5)[row])
    lengths = np.bincount(row, kept).astype(np.int64)
    rank = np.arange(kept.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    shorter = SampledImpressions(
        np.append(0, np.cumsum(lengths)), log.document[kept], rank, log.click[kept], log.period[kept], moment=row[kept]
    )
    assert high_or_missing(shorter, PAIRS, by_period=False).significant
    screens = logged(drawn, screens=True)
    assert high_or_missing(screens, PAIRS, by_period=False).share < 0.005


def test_lists_of_one_document_say_nothing_and_other_lengths_are_apart() -> None:
    screens = logged(sold_out, screens=True)
    assert high_or_missing(screens, PAIRS, by_period=False).significant
    single = SampledImpressions(
        np.arange(11), np.arange(10), np.zeros(10, np.int64), np.zeros(10), np.zeros(10, np.int64)
    )
    assert high_or_missing(single, PAIRS, by_period=False) == HighOrMissing()
    assert high_or_missing(None, PAIRS, by_period=False) == HighOrMissing()


def test_plackett_luce_leaves_no_document_out_more_often_than_the_square() -> None:
    """Which is what it is compared with; all rankings are enumerated."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = np.exp(2.0 * rng.normal(size=6))
        not_above = np.zeros((6, 7))
        for ranking in permutations(range(6)):
            left = np.cumsum(weights[list(ranking)][::-1])[::-1]
            chance = np.prod(weights[list(ranking)] / left)
            for place, document in enumerate(ranking):
                not_above[document, : place + 1] += chance  # not in the first 0 to `place` ranks
        for half in (1, 2):
            assert (not_above[:, 2 * half] <= not_above[:, half] ** 2 + 1e-12).all()
