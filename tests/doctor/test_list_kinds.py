"""Lists that come in kinds are found; lists that a ranker draws, or that changed for a harmless reason, are not."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from saferank.doctor.list_kinds import ListKinds, _at_random, _excess, _trade, list_kinds
from saferank.doctor.log_arrays import SampledImpressions
from saferank.engine.types.ranking_data import RankingData

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
QUERIES, DOCUMENTS, CUTOFF, IMPRESSIONS, DAYS = 30, 12, 5, 4_000, 5
Limit = Callable[[Integers, Integers, Floats, Generator], Floats]
"""From query, second and scores of each impression to its scores; -inf for what cannot be shown."""


def kinds(limit: Limit | None = None, *, seed: int = 0, noise: float = 1.0, screens: bool = False) -> ListKinds:
    rng = np.random.default_rng(seed)
    query, second = rng.integers(0, QUERIES, IMPRESSIONS), rng.integers(0, DAYS * 86_400, IMPRESSIONS)
    scores = rng.normal(size=(QUERIES, DOCUMENTS))[query] + noise * rng.gumbel(size=(IMPRESSIONS, DOCUMENTS))
    if limit is not None:
        scores = limit(query, second, scores, rng)
    lists = np.argsort(-scores, axis=1)
    length = np.where(rng.random(IMPRESSIONS) < 0.5, 3, CUTOFF) if screens else np.full(IMPRESSIONS, CUTOFF)
    length = np.minimum(length, np.isfinite(scores).sum(axis=1))
    shown = np.arange(DOCUMENTS) < length[:, None]
    rows = np.repeat(np.arange(IMPRESSIONS), length)
    sample = SampledImpressions(
        offsets=np.append(0, np.cumsum(length)),
        document=query[rows] * DOCUMENTS + lists[shown],
        rank=np.nonzero(shown)[1],
        click=np.zeros(len(rows)),
        period=(second // 86_400)[rows],
        hour=(second // 3_600 % 24)[rows],
    )
    pairs = RankingData(np.zeros((QUERIES * DOCUMENTS, 0), np.float32), np.arange(QUERIES + 1) * DOCUMENTS)
    return list_kinds(sample, pairs, rng, by_period=True)


def facet(_query: Integers, _second: Integers, scores: Floats, rng: Generator) -> Floats:
    brand = rng.choice(3, len(scores), p=[0.6, 0.2, 0.2])[:, None]
    return np.where((brand == 2) | (np.arange(DOCUMENTS) % 2 == brand), scores, -np.inf)


def second_page(_query: Integers, _second: Integers, scores: Floats, rng: Generator) -> Floats:
    seen = np.argsort(np.argsort(-scores, axis=1), axis=1) < CUTOFF
    return np.where(seen & (rng.random(len(scores)) < 0.3)[:, None], -np.inf, scores)


def warehouse(query: Integers, _second: Integers, scores: Floats, rng: Generator) -> Floats:
    there = rng.random((5, QUERIES, DOCUMENTS)) < 0.7
    return np.where(there[rng.integers(0, 5, len(scores)), query], scores, -np.inf)


def by_price(query: Integers, _second: Integers, scores: Floats, rng: Generator) -> Floats:
    price = rng.normal(size=(QUERIES, DOCUMENTS))[query]
    return np.where((rng.random(len(scores)) < 0.3)[:, None], price, scores)


def retrained_at_three(query: Integers, second: Integers, scores: Floats, rng: Generator) -> Floats:
    version = (second + 21 * 3_600) // 86_400
    return 3.0 * rng.normal(size=(DAYS + 2, QUERIES, DOCUMENTS))[version, query] + 0.3 * scores


def tenth_at_random(_query: Integers, _second: Integers, scores: Floats, rng: Generator) -> Floats:
    return np.where((rng.random(len(scores)) < 0.1)[:, None], rng.random(scores.shape), 2.0 * scores)


def rare_filter(_query: Integers, _second: Integers, scores: Floats, rng: Generator) -> Floats:
    """Two brands, each asked for in one of twelve searches."""
    brand = rng.choice(3, len(scores), p=[0.84, 0.08, 0.08])[:, None]
    return np.where((brand == 0) | (np.arange(DOCUMENTS) % 2 == brand - 1), 2.0 * scores, -np.inf)


def rare_filter_at_random(_query: Integers, _second: Integers, scores: Floats, rng: Generator) -> Floats:
    """Of these brands all documents are shown equally often, but never together."""
    brand = rng.choice(3, len(scores), p=[0.8, 0.1, 0.1])[:, None]
    filtered = np.where(np.arange(DOCUMENTS) % 2 == brand - 1, rng.random(scores.shape), -np.inf)
    return np.where(brand == 0, 4.0 * scores, filtered)


@pytest.mark.parametrize("limit", [facet, second_page, warehouse, by_price])
def test_what_a_ranker_cannot_change_is_found(limit: Limit) -> None:
    found = kinds(limit)
    assert found.significant
    assert found.impressions == IMPRESSIONS


@pytest.mark.parametrize("seed", range(3))
def test_a_share_of_random_rankings_does_no_harm_but_rare_filters_do(seed: int) -> None:
    assert not kinds(tenth_at_random, seed=seed).significant
    assert kinds(rare_filter, seed=seed).significant
    assert kinds(rare_filter_at_random, seed=seed, noise=0.3).significant


def test_lists_that_one_ranker_draws_have_no_kinds() -> None:
    found = [kinds(seed=seed, noise=noise) for seed, noise in ((1, 0.3), (2, 1.0), (3, 3.0))]
    found += [kinds(seed=seed, screens=True) for seed in (4, 5)]
    assert not any(one.significant for one in found)
    assert max(abs(one.size) for one in found) < 0.02


def test_a_ranker_that_changes_every_night_at_three_has_none_within_hours() -> None:
    assert not kinds(retrained_at_three).significant


def test_rankings_that_never_vary_have_none() -> None:
    assert kinds(lambda query, *_: np.arange(DOCUMENTS) + np.zeros((len(query), 1))) == ListKinds(0.0, 0.0, IMPRESSIONS)


def test_trades_keep_lengths_and_how_often_each_document_is_shown() -> None:
    rng = np.random.default_rng(0)
    lists = np.argsort(rng.random((40, 9)), axis=1)[:, :4]
    before, cell = lists.copy(), np.zeros(40, np.int64)
    one, other = np.arange(0, 40, 2), np.arange(1, 40, 2)
    _trade(lists, one, other, rng.random((20, 8)))
    assert (np.sort(lists) != np.sort(before)).any()
    np.testing.assert_array_equal(np.bincount(lists.ravel()), np.bincount(before.ravel()))
    assert all(len(set(row)) == 4 for row in lists.tolist())
    for i, j in zip(one, other, strict=True):
        assert set(lists[i]) & set(lists[j]) == set(before[i]) & set(before[j])
    assert abs(_excess(lists, cell, rng)[0]) < 0.5


@pytest.mark.parametrize("filtered", [False, True])
def test_lists_at_random_have_no_kinds(filtered: bool) -> None:
    """Half of them from the even documents and half from the odd ones, so that all are there equally often; or not."""
    rng = np.random.default_rng(0)
    usual = np.tile(np.arange(4), (300, 1))
    odd = np.arange(200)[:, None] % 2
    drawn = np.argsort(rng.random((200, 12)) + filtered * (np.arange(12) % 2 != odd), axis=1)[:, :4]
    found = _at_random(np.concatenate([usual, drawn]), np.zeros(500, np.int64), rng)
    assert not found[:300].any()
    assert found[300:].mean() == pytest.approx(0.0 if filtered else np.mean((drawn < 4).sum(axis=1) <= 2))
