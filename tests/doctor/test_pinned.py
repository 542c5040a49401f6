"""Results that are pinned to a slot are found; what drawing from scores, swapping or mixing rankers makes is not."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions
from saferank.doctor.pinned import Pinned, pinned
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.load_log import load_log
from saferank.verdict.checks import Refused
from saferank.verdict.log_doubts import log_doubts
from tests.shops import World, make_shop, noisy

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
QUERIES, DOCUMENTS, CUTOFF, LISTS = 40, 16, 6, 8_000
PAIRS = RankingData(np.zeros((QUERIES * DOCUMENTS, 0), np.float32), np.arange(QUERIES + 1) * DOCUMENTS)
Ranker = Callable[[Floats, Integers, Generator], Integers]
"""From the scores of each list's documents, and its query, to rankings."""


def by(keys: Floats) -> Integers:
    return np.argsort(-keys, axis=1)


def drawn(scores: Floats, _query: Integers, rng: Generator) -> Integers:
    return by(scores + 0.7 * rng.gumbel(size=scores.shape))


def inserted(rankings: Integers, rows: Integers, document: Integers, slot: int) -> Integers:
    """Return the rankings with a document moved to a slot (from 0) in some of them."""
    others = rankings[rows][rankings[rows] != document[:, None]].reshape(len(rows), -1)
    rankings[rows] = np.insert(others, slot, document, axis=1)
    return rankings


def pin(slot: int) -> Ranker:
    def ranker(scores: Floats, query: Integers, rng: Generator) -> Integers:
        """In two of five queries."""
        rows = np.flatnonzero(query % 5 < 2)
        return inserted(drawn(scores, query, rng), rows, query[rows] % DOCUMENTS, slot)

    return ranker


def in_tiers(scores: Floats, query: Integers, rng: Generator) -> Integers:
    """The same two documents are always above the third, and that above all others."""
    return drawn(scores + np.where(np.arange(DOCUMENTS) < 2, 20.0, 10.0 * (np.arange(DOCUMENTS) == 2)), query, rng)


def never_varied(scores: Floats, _query: Integers, _rng: Generator) -> Integers:
    return by(scores)


def one_slot_at_random(scores: Floats, _query: Integers, rng: Generator) -> Integers:
    return inserted(by(scores), np.arange(len(scores)), rng.integers(0, DOCUMENTS, len(scores)), 2)


def one_slot_of_the_rest(scores: Floats, _query: Integers, rng: Generator) -> Integers:
    """The third slot shows something that would not be shown otherwise; all others keep their ranks."""
    ranking, row = by(scores), np.arange(len(scores))
    further = ranking[row, rng.integers(CUTOFF, DOCUMENTS, len(scores))]
    ranking[row, 2] = further
    return ranking


def two_swapped(scores: Floats, _query: Integers, rng: Generator) -> Integers:
    ranking, row = by(scores), np.arange(len(scores))
    one, other = rng.integers(0, CUTOFF, (2, len(scores)))
    ranking[row, one], ranking[row, other] = ranking[row, other], ranking[row, one]
    return ranking


def neighbours_swapped(scores: Floats, _query: Integers, rng: Generator) -> Integers:
    ranking = by(scores)
    for first in range(0, CUTOFF, 2):
        row = np.flatnonzero(rng.random(len(scores)) < 0.5)
        ranking[row, first], ranking[row, first + 1] = ranking[row, first + 1], ranking[row, first]
    return ranking


def two_rankers(scores: Floats, query: Integers, rng: Generator) -> Integers:
    other = scores + 0.5 * np.random.default_rng(9).normal(size=(QUERIES, DOCUMENTS))[query]
    return by(np.where(rng.random(len(scores))[:, None] < 0.5, scores, other))


def logged(ranker: Ranker, seed: int, *, scale: float = 1.5, lists: int = LISTS) -> SampledImpressions:
    rng = np.random.default_rng(seed)
    query = rng.integers(0, QUERIES, lists)
    ranking = ranker(scale * rng.normal(size=(QUERIES, DOCUMENTS))[query], query, rng)[:, :CUTOFF]
    return SampledImpressions(
        offsets=np.arange(lists + 1) * CUTOFF,
        document=(query[:, None] * DOCUMENTS + ranking).ravel(),
        rank=np.tile(np.arange(CUTOFF), lists),
        click=np.zeros(lists * CUTOFF),
        period=np.repeat(np.arange(lists) * 4 // lists, CUTOFF),
    )


@pytest.mark.parametrize("slot", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.5, 1.5])
@pytest.mark.parametrize("by_period", [False, True])
def test_what_is_pinned_below_the_first_rank_is_found(slot: int, scale: float, by_period: bool) -> None:
    found = pinned(logged(pin(slot), 0, scale=scale), PAIRS, by_period=by_period)
    assert found.significant
    assert 10 <= found.queries <= 16  # of 16 with a pin; in some the first document hardly changes
    assert found.share == pytest.approx(found.queries / QUERIES, abs=0.05)


def test_what_is_pinned_to_the_first_rank_cannot_be_found() -> None:
    assert pinned(logged(pin(0), 0), PAIRS, by_period=False) == Pinned()


@pytest.mark.parametrize(
    "ranker",
    [
        drawn,
        in_tiers,
        never_varied,
        one_slot_at_random,
        one_slot_of_the_rest,
        two_swapped,
        neighbours_swapped,
        two_rankers,
    ],
)
@pytest.mark.parametrize("scale", [0.5, 1.5, 4.0])
def test_what_rankers_do_is_not(ranker: Ranker, scale: float) -> None:
    for seed in range(3):
        assert pinned(logged(ranker, seed, scale=scale), PAIRS, by_period=False) == Pinned()


def test_few_lists_say_nothing() -> None:
    assert pinned(logged(pin(2), 0, lists=25 * QUERIES), PAIRS, by_period=True) == Pinned()
    assert pinned(None, PAIRS, by_period=False) == Pinned()


def test_lists_of_different_lengths() -> None:
    log, rng = logged(pin(2), 0), np.random.default_rng(1)
    length = rng.integers(2, CUTOFF + 1, LISTS)
    kept = np.tile(np.arange(CUTOFF), LISTS) < np.repeat(length, CUTOFF)
    cut = replace(
        log, offsets=np.append(0, np.cumsum(length)), document=log.document[kept], rank=log.rank[kept],
        click=log.click[kept], period=log.period[kept],
    )  # fmt: skip
    assert pinned(cut, PAIRS, by_period=False).queries >= 10


def test_certify_refuses_unless_the_new_ranker_may_move_it() -> None:
    rng = np.random.default_rng(3)
    shop = make_shop(rng, queries=20, documents=8, cutoff=4)
    log = World(shop, noisy(shop, rng)).draw(6_000, rng)
    ranking = log.ranking.copy()
    rest = log.ranking[log.query == 0]
    rest = np.array([[d for d in one if d != 7][:3] for one in rest])
    ranking[log.query == 0] = np.insert(rest, 2, 7, axis=1)
    log = replace(log, ranking=ranking)
    counted = load_log(log.table().set_column(6, "click", pa.array(log.clicks.ravel().astype(np.int8))))
    with pytest.raises(Refused) as raised:
        log_doubts(counted, known=False)
    assert raised.value.code == "pinned"
    assert "1 query " in str(raised.value)
    assert "pinned" in [doubt.code for doubt in log_doubts(counted, known=False, trust_candidates=True).doubts]
