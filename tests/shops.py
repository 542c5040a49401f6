"""Shops whose truth is known: who ranks, who clicks, and what a new ranker would really earn.

All queries have the same number of documents, so everything is an array: (slot, query, document) or (impression, rank).
A slot is a day, or one of several equal stretches of a day if demand or ranker follow the hour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from saferank.engine.plackett_luce import placement
from saferank.engine.ragged import ranks_by_score
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from tests.shop_log import DAY, ShopLog

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Generator = np.random.Generator

SLOTS = 8
"""Slots of a day in a shop whose demand or ranker follows the hour: three hours each."""
DRAWS = 2_000
"""Rankings of each query from which the truth is known where there is no formula for it."""
UNIT = 20
"""Interactions per unit (a user), on average."""


@dataclass(frozen=True, eq=False)
class Shop:
    """Queries with their documents, and what users want of them."""

    relevance: Array
    """P(R = 1), of (slot, query, document)."""
    examination: Array
    traffic: Array
    """Share of each query."""
    per_day: int = 1
    """Slots of a day."""

    @property
    def days(self) -> int:
        return int(self.relevance.shape[0]) // self.per_day

    @property
    def queries(self) -> int:
        return int(self.relevance.shape[1])

    @property
    def documents(self) -> int:
        """Documents of each query."""
        return int(self.relevance.shape[2])

    @property
    def cutoff(self) -> int:
        return len(self.examination)

    @cached_property
    def query_ids(self) -> NDArray[np.str_]:
        return np.array([f"q{query:05d}" for query in range(self.queries)])

    @cached_property
    def document_ids(self) -> NDArray[np.str_]:
        """Ids, query after query; as texts they sort as their numbers do."""
        return np.array([f"d{query:05d}-{d:02d}" for query in range(self.queries) for d in range(self.documents)])

    @property
    def mean_relevance(self) -> Array:
        """Relevance over all days, of (query, document)."""
        mean: Array = self.relevance.mean(axis=0)
        return mean

    def data(self, features: ArrayLike | None = None) -> RankingData:
        """All pairs with their ids; the scores of a ranker have one entry per row of it. No features unless given."""
        rows = self.queries * self.documents
        table = np.zeros((rows, 0)) if features is None else np.asarray(features)
        names = tuple(f"feature_{place + 1}" for place in range(table.shape[1]))
        offsets = np.arange(0, rows + 1, self.documents)
        return RankingData(
            table.astype(np.float32), offsets, query_ids=self.query_ids, document_ids=self.document_ids,
            feature_names=names, source="shop",
        )  # fmt: skip

    def features(self, rng: Generator, *, columns: int = 3, noise: float = 1.0) -> RankingData:
        """All pairs with features: the standardised relevance, each column with noise of its own."""
        signal = standardised(self.mean_relevance).ravel()
        return self.data(signal[:, None] + noise * rng.standard_normal((len(signal), columns)))

    def utility(self, exposure: ArrayLike) -> float:
        """Clicks per interaction of position-based users, by the exposure of each row of `data`."""
        exposed = np.asarray(exposure, np.float64).reshape(self.queries, self.documents)
        return float(self.traffic @ (exposed * self.mean_relevance).sum(axis=1))


def with_rows(data: RankingData, kept: NDArray[np.bool_]) -> RankingData:
    """Return the data with only these rows: features that some documents lack. Each query must keep one."""
    lengths = np.add.reduceat(kept.astype(np.int64), data.offsets[:-1])
    assert data.document_ids is not None
    return replace(
        data, features=data.features[kept], offsets=np.concatenate([[0], np.cumsum(lengths)]),
        document_ids=data.document_ids[kept],
    )  # fmt: skip


def feature_table(data: RankingData) -> pa.Table:
    """One row per pair: ids and features, as a file for `--features` holds them."""
    assert data.query_ids is not None
    ids = {"query_id": data.query_ids[data.query_of_document], "document_id": data.document_ids}
    return pa.table(ids | dict(zip(data.feature_names or (), data.features.T, strict=True)))


def make_shop(
    rng: Generator, *, queries: int = 40, documents: int = 12, cutoff: int = 5, days: int = 7,
    zipf: float = 0.0, drift: float = 0.0, power: float = 1.0, hourly: float = 0.0,
) -> Shop:  # fmt: skip
    """A random shop. Logits of relevance are normal around -1.5.

    Args:
        zipf: traffic of the r-th query is proportional to 1 / r^zipf; 0 is uniform.
        drift: share of the logits' deviation that changes over days (a stationary process, correlation 0.7 from one
            day to the next); 0 keeps relevance constant.
        power: examination is 1 / k^power.
        hourly: share of the logits' deviation that changes with the hour, over the `SLOTS` of a day (independent from
            one to the next) and alike on all days; 0 for a shop whose slots are days.
    """
    moving = rng.standard_normal((days, queries, documents))
    for day in range(1, days):
        moving[day] = 0.7 * moving[day - 1] + np.sqrt(1 - 0.7**2) * moving[day]
    fixed = rng.standard_normal((queries, documents))
    logits = -1.5 + np.sqrt(1 - drift**2 - hourly**2) * fixed + drift * moving
    if hourly:
        of_slot = rng.standard_normal((SLOTS, queries, documents))
        logits = np.repeat(logits, SLOTS, axis=0) + hourly * np.tile(of_slot, (days, 1, 1))
    traffic = 1.0 / np.arange(1, queries + 1) ** zipf
    ranks = np.arange(1, cutoff + 1)
    examination = np.asarray(1.0 / ranks**power, np.float64)
    relevance = 1.0 / (1.0 + np.exp(-logits))
    return Shop(relevance, examination, traffic / traffic.sum(), SLOTS if hourly else 1)


def in_slots(shop: Shop) -> Shop:
    """Return the same shop with `SLOTS` slots of equal relevance in a day, for a ranker that follows the hour."""
    return replace(shop, relevance=np.repeat(shop.relevance, SLOTS, axis=0), per_day=SLOTS)


# Rankers


@dataclass(frozen=True, eq=False)
class Ranker:
    """By score: the same ranking all day, or drawn for each impression (Plackett-Luce) if `sampled`."""

    scores: NDArray[Any]
    """Of (slot, query, document), or (query, document) if they never change; kept in float32.

    A document with -inf is never shown as long as enough others are left."""
    sampled: bool = False

    def __post_init__(self) -> None:
        scores = np.asarray(self.scores, np.float32)
        object.__setattr__(self, "scores", scores if scores.ndim == 3 else scores[None])

    @property
    def flat(self) -> NDArray[np.float32]:
        """Scores of a ranker that never changes, one per row of `Shop.data`."""
        assert len(self.scores) == 1
        return self.scores.ravel()

    def rankings(self, slot: Ints, query: Ints, cutoff: int, rng: Generator) -> Ints:
        """Draw the ranking of each impression: document numbers within the query, the top rank first."""
        slot = np.minimum(slot, len(self.scores) - 1)
        if not self.sampled:
            return np.argsort(-self.scores, axis=-1, kind="stable")[slot, query, :cutoff]
        clocks = np.log(rng.standard_exponential((len(query), self.scores.shape[2])))
        clocks -= self.scores[slot, query]
        first = np.argpartition(clocks, cutoff - 1)[:, :cutoff]
        order = np.argsort(np.take_along_axis(clocks, first, 1))
        return np.take_along_axis(first, order, 1)

    def placement(self, cutoff: int) -> Array:
        """P(rank(d) = k), of (slot, query, document, rank)."""
        documents = self.scores.shape[-1]
        flat, offsets = self.scores.ravel(), np.arange(0, self.scores.size + 1, documents)
        if self.sampled:
            placed = placement(flat.astype(np.float64), offsets, cutoff)
        else:
            placed = ranks_by_score(flat, offsets)[:, None] == np.arange(1, cutoff + 1)
        return placed.reshape(*self.scores.shape, cutoff).astype(np.float64)

    def exposure(self, examination: Array) -> Array:
        """Exposure over all days, one entry per row of `Shop.data`."""
        exposed: Array = (self.placement(len(examination)) @ examination).mean(axis=0).ravel()
        return exposed

    def limiting(self, new: Ranker) -> Ranker:
        """Return the new ranker as users will see it: what is not there for this one is not there for it either."""
        absent = np.isneginf(self.scores)
        return replace(new, scores=np.where(absent, -np.inf, new.scores)) if absent.any() else new

    def without(self, kept: NDArray[np.bool_]) -> Ranker:
        """Return the ranker that never shows the rows that are not kept."""
        return replace(self, scores=np.where(kept.reshape(self.scores.shape[1:]), self.scores, -np.inf))


@dataclass(frozen=True, eq=False)
class Filtered(Ranker):
    """A ranker whose users filter: a share of the impressions shows documents with even, or with odd, numbers only."""

    share: float = 0.4

    def kinds(self) -> list[tuple[float, Ranker]]:
        """Return the rankers, by what is filtered, and how often each is asked."""
        documents = np.arange(self.scores.shape[-1])
        filtered = [Ranker(np.where(documents % 2 == one, self.scores, -np.inf), self.sampled) for one in (0, 1)]
        return [(1.0 - self.share, Ranker(self.scores, self.sampled)), *((self.share / 2, one) for one in filtered)]

    def rankings(self, slot: Ints, query: Ints, cutoff: int, rng: Generator) -> Ints:
        chances, rankers = zip(*self.kinds(), strict=True)
        kind = rng.choice(len(chances), len(query), p=chances)
        drawn = np.stack([ranker.rankings(slot, query, cutoff, rng) for ranker in rankers])
        return drawn[kind, np.arange(len(query))]

    def placement(self, cutoff: int) -> Array:
        placed: Array = sum((chance * ranker.placement(cutoff) for chance, ranker in self.kinds()), np.zeros(()))
        return placed

    def limiting(self, new: Ranker) -> Ranker:
        return Filtered(new.scores, new.sampled, self.share)


@dataclass(frozen=True, eq=False)
class Limited(Ranker):
    """A ranker some of whose documents are left out of an impression, whatever their scores."""

    def left_out(self, query: Ints, keys: Array, rng: Generator) -> NDArray[np.bool_]:
        """Return what is left out, of (impression, document); the lowest `keys` would come first."""
        raise NotImplementedError

    def rankings(self, slot: Ints, query: Ints, cutoff: int, rng: Generator) -> Ints:
        keys = -self.scores[np.minimum(slot, len(self.scores) - 1), query].astype(np.float64)
        if self.sampled:
            keys += np.log(rng.standard_exponential(keys.shape))
        keys = np.where(self.left_out(query, keys, rng), np.inf, keys)
        return np.argsort(keys, axis=1, kind="stable")[:, :cutoff]

    def placement(self, cutoff: int) -> Array:
        """Of `DRAWS` rankings of each query, always the same ones."""
        _, queries, documents = self.scores.shape
        query, placed = np.repeat(np.arange(queries), DRAWS), np.zeros((queries, documents, cutoff))
        rankings = self.rankings(np.zeros(len(query), np.int64), query, cutoff, np.random.default_rng(0))
        np.add.at(placed, (query[:, None], rankings, np.arange(cutoff)), 1.0 / DRAWS)
        return placed[None]

    def limiting(self, new: Ranker) -> Ranker:
        return replace(self, scores=new.scores, sampled=new.sampled)


@dataclass(frozen=True, eq=False)
class SoldOut(Limited):
    """Each document is sold out in a share of the impressions, or not delivered to the user."""

    share: Array | float = 0.15
    """Of (query, document)."""

    def left_out(self, query: Ints, keys: Array, rng: Generator) -> NDArray[np.bool_]:
        share = np.broadcast_to(self.share, self.scores.shape[1:])
        return np.asarray(rng.random(keys.shape) < share[query])


@dataclass(frozen=True, eq=False)
class TwoPerBrand(Limited):
    """The first half of the documents is of one brand, of which a list shows two at most."""

    def left_out(self, _query: Ints, keys: Array, _rng: Generator) -> NDArray[np.bool_]:
        brand = keys[:, : keys.shape[1] // 2]
        left_out = np.zeros(keys.shape, np.bool_)
        left_out[:, : brand.shape[1]] = brand > np.sort(brand, axis=1)[:, 1:2]
        return left_out


def arriving(shop: Shop, rng: Generator, *, share: float = 0.3, noise: float = 1.0) -> Ranker:
    """Rankings drawn from scores that never change, of documents of which this share arrives after the first day."""
    scores = np.repeat(noisy(shop, rng, noise=noise).scores, shop.days, axis=0)
    first = np.where(rng.random(scores.shape[1:]) < share, rng.integers(1, shop.days, scores.shape[1:]), 0)
    return Ranker(np.where(np.arange(shop.days)[:, None, None] < first, -np.inf, scores), sampled=True)


def regional(shop: Shop, rng: Generator, *, local: float = 0.3, regions: int = 4) -> tuple[Shop, Ranker]:
    """A share of the documents is delivered to one region only; the region of a slot is its number modulo `regions`."""
    shop, scores = in_slots(shop), noisy(shop, rng).scores
    home = np.where(rng.random(scores.shape[1:]) < local, rng.integers(0, regions, scores.shape[1:]), -1)
    region = (np.arange(len(shop.relevance)) % regions)[:, None, None]
    return shop, Ranker(np.where((home >= 0) & (home != region), -np.inf, scores), sampled=True)


def nightly(shop: Shop, rng: Generator, *, noise: float = 1.0) -> Ranker:
    """Deterministic within a day: by the previous day's relevance plus noise drawn each night.

    The first day's scores are of its own relevance. Without drift in the shop the ranker changes by noise only.
    """
    yesterday = np.concatenate([shop.relevance[:1], shop.relevance[:-1]])
    return Ranker(standardised(yesterday) + noise * rng.standard_normal(yesterday.shape))


def with_sales(
    shop: Shop, rng: Generator, *, wanted: float = 2.5, boost: float = 2.0, together: bool = True
) -> tuple[Shop, Ranker]:
    """Sales of three hours: at any time a fifth of the documents is on sale, `wanted` so many times as much.

    The ranker, which draws its rankings, raises their scores by `boost`; if not `together`, those of other documents.
    """
    shop = in_slots(shop)
    sales = rng.random((2, *shop.relevance.shape)) < 0.2
    relevance = np.where(sales[0], np.minimum(wanted * shop.relevance, 0.9), shop.relevance)
    shop = replace(shop, relevance=relevance)
    return shop, Ranker(noisy(shop, rng).scores + boost * sales[0 if together else 1], sampled=True)


def by_hour(shop: Shop, rng: Generator, *, noise: float = 1.0, sampled: bool = True) -> Ranker:
    """A ranker that follows the hour, alike on all days: the relevance of each slot plus noise, drawn for each slot.

    Without a change of demand by the hour, it changes by noise only.
    """
    signal = standardised(shop.relevance[: shop.per_day])
    scores = signal + noise * rng.standard_normal(signal.shape)
    return Ranker(np.tile(scores, (shop.days, 1, 1)), sampled)


def changed_once(shop: Shop, before: Ranker, after: Ranker, day: int) -> Ranker:
    """One ranker's scores before the given day and another's from then on."""
    old, new = (np.broadcast_to(ranker.scores, shop.relevance.shape) for ranker in (before, after))
    return Ranker(np.concatenate([old[:day], new[day:]]), before.sampled)


def noisy(shop: Shop, rng: Generator, *, noise: float = 1.0, scale: float = 1.0, sampled: bool = True) -> Ranker:
    """A ranker that never changes: standardised relevance plus noise, times `scale`."""
    signal = standardised(shop.mean_relevance)
    return Ranker(scale * (signal + noise * rng.standard_normal(signal.shape)), sampled)


def learned(shop: Shop, log: AggregatedLog, parts: tuple[str, ...] = PARTS[:2], *, sampled: bool = False) -> Ranker:
    """The naive learner: by clicks over expected examinations, 0 for what was never shown. It exploits all noise."""
    counts = log.statistics(parts, shop.data())
    examined = counts.shown @ shop.examination
    rate = counts.clicked.sum(axis=1) / np.where(examined > 0, examined, 1.0)
    return Ranker(rate.reshape(shop.queries, shop.documents), sampled)


def standardised(values: Array) -> Array:
    """Mean 0 and variance 1 within each query."""
    centred = values - values.mean(axis=-1, keepdims=True)
    result: Array = centred / np.maximum(centred.std(axis=-1, keepdims=True), 1e-12)
    return result


# Users


class Users(Protocol):
    """How users click, and what a ranker earns from them."""

    @property
    def loyal(self) -> bool:
        """Whether each unit repeats a single query."""

    def clicks(self, log: ShopLog, rng: Generator) -> NDArray[np.bool_]:
        """Draw the clicks on what a log shows, of (impression, rank)."""

    def utility(self, shop: Shop, ranker: Ranker) -> float:
        """Return the exact clicks per interaction, over the shop's traffic and days."""


@dataclass(frozen=True)
class PositionBased:
    """P(click on d at rank k) = slope[k] * R(d) + offset[k], with slope the shop's examination and offset 0."""

    loyal: bool = False

    def curve(self, shop: Shop) -> tuple[Array, Array]:
        """Return slope and offset."""
        return shop.examination, np.zeros(shop.cutoff)

    def clicks(self, log: ShopLog, rng: Generator) -> NDArray[np.bool_]:
        slope, offset = self.curve(log.shop)
        return rng.random(log.ranking.shape) < slope * log.wanted + offset

    def utility(self, shop: Shop, ranker: Ranker) -> float:
        slope, offset = self.curve(shop)
        placed = ranker.placement(shop.cutoff)
        earned = ((placed @ slope) * shop.relevance + placed @ offset).sum(axis=2)
        return float((earned @ shop.traffic).mean())


@dataclass(frozen=True)
class Tastes(PositionBased):
    """Each unit has a taste: relevance is R +- min(R, 1 - R), the sign drawn once per (unit, document number).

    Over units the mean is R, so a ranker earns what it earns from position-based users.
    """

    loyal: bool = True

    def clicks(self, log: ShopLog, rng: Generator) -> NDArray[np.bool_]:
        sign = 2 * rng.integers(0, 2, (log.units, log.shop.documents)) - 1
        wanted = log.wanted + sign[log.unit[:, None], log.ranking] * np.minimum(log.wanted, 1.0 - log.wanted)
        return rng.random(wanted.shape) < log.shop.examination * wanted


@dataclass(frozen=True)
class TrustBias(PositionBased):
    """Examined documents that are not relevant are clicked too, with probability trust / k at rank k."""

    trust: float = 0.4

    def curve(self, shop: Shop) -> tuple[Array, Array]:
        misled = self.trust / np.arange(1, shop.cutoff + 1)
        return shop.examination * (1.0 - misled), shop.examination * misled


@dataclass(frozen=True)
class Bots(PositionBased):
    """In a share of the impressions everything is clicked; the utility counts such clicks, the same for any ranker."""

    share: float = 0.1

    def curve(self, shop: Shop) -> tuple[Array, Array]:
        return (1.0 - self.share) * shop.examination, np.full(shop.cutoff, self.share)

    def clicks(self, log: ShopLog, rng: Generator) -> NDArray[np.bool_]:
        bot = rng.random(len(log.query)) < self.share
        return PositionBased().clicks(log, rng) | bot[:, None]


@dataclass(frozen=True)
class Cascade:
    """Users scan from the top, click what is relevant, and stop after a click or, rarely, without one.

    The shop's examination plays no role.
    """

    stop: float = 0.7
    """Chance of stopping after a click."""
    tire: float = 0.1
    """Chance of stopping at a rank without a click."""
    loyal: bool = False

    def clicks(self, log: ShopLog, rng: Generator) -> NDArray[np.bool_]:
        relevant = rng.random(log.ranking.shape) < log.wanted
        goes_on = rng.random(log.ranking.shape) >= np.where(relevant, self.stop, self.tire)
        reached = np.logical_and.accumulate(goes_on, axis=1)
        relevant[:, 1:] &= reached[:, :-1]
        return relevant

    def utility(self, shop: Shop, ranker: Ranker) -> float:
        """By recursion over the set S of documents shown so far: with p(d | S) the chance that d comes next,

        V(S) = sum_d p(d | S) (R(d) + P(goes on after d) V(S + d)),  V = 0 at the cutoff.
        """
        scores, relevance = np.broadcast_arrays(ranker.scores.astype(np.float64), shop.relevance)
        goes_on = 1.0 - self.stop * relevance - self.tire * (1.0 - relevance)
        if not ranker.sampled:
            top = np.argsort(-scores, axis=-1, kind="stable")[..., : shop.cutoff]
            relevance, goes_on = (np.take_along_axis(values, top, -1) for values in (relevance, goes_on))
            reached = np.cumprod(goes_on, axis=-1) / goes_on
            return float(((reached * relevance).sum(axis=-1) @ shop.traffic).mean())
        weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
        value: dict[tuple[int, ...], Array] = {}
        for size in range(shop.cutoff - 1, -1, -1):
            below, value = value, {}
            for shown in combinations(range(shop.documents), size):
                left = [d for d in range(shop.documents) if d not in shown]
                earned = relevance[..., left]
                if below:
                    after = np.stack([below[tuple(sorted((*shown, d)))] for d in left], axis=-1)
                    earned = earned + goes_on[..., left] * after
                value[shown] = (weight[..., left] * earned).sum(axis=-1) / weight[..., left].sum(axis=-1)
        return float((value[()] @ shop.traffic).mean())


# Logs and truth


def draw(shop: Shop, ranker: Ranker, users: Users, interactions: int, rng: Generator) -> ShopLog:
    """Draw a log: impressions uniform over the days, queries by traffic, units uniform, about 20 impressions each."""
    units = max(interactions // UNIT, 1)
    second = np.sort(rng.integers(0, shop.days * DAY, interactions))
    unit = rng.integers(0, units, interactions)
    asked = rng.choice(shop.queries, units if users.loyal else interactions, p=shop.traffic)
    query = asked[unit] if users.loyal else asked
    ranking = ranker.rankings(second * shop.per_day // DAY, query, shop.cutoff, rng)
    log = ShopLog(shop, second, query, unit, ranking, np.zeros(ranking.shape, np.bool_))
    return replace(log, clicks=users.clicks(log, rng))


@dataclass(frozen=True, eq=False)
class World:
    """A shop, who ranked when the log was made, and who clicks: what a log is drawn from, and the truth about it."""

    shop: Shop
    logging: Ranker
    users: Users = PositionBased()

    def draw(self, interactions: int, rng: Generator) -> ShopLog:
        return draw(self.shop, self.logging, self.users, interactions, rng)

    @cached_property
    def logging_utility(self) -> float:
        return self.users.utility(self.shop, self.logging)

    def improvement(self, new: Ranker) -> float:
        """U(new) - U(logging), exact: what a lower bound may exceed with probability delta only."""
        return self.users.utility(self.shop, self.logging.limiting(new)) - self.logging_utility

    def no_better(self, rng: Generator, *, noise: float = 1.0, sampled: bool = False) -> Ranker:
        """A ranker whose true improvement is 0 or just below; the best of its kind where none comes near 0."""
        return self._tuned(0.0, rng, noise, sampled)[0]

    def worse(self, by: float, rng: Generator, *, noise: float = 1.0, sampled: bool = False) -> Ranker:
        """A ranker that loses the share `by` of the utility, or just more."""
        return self._tuned(-by, rng, noise, sampled)[0]

    def better(self, by: float, rng: Generator, *, noise: float = 1.0, sampled: bool = False) -> Ranker:
        """A ranker that gains the share `by` of the utility, or just more."""
        new = self._tuned(by, rng, noise, sampled)[1]
        if self.improvement(new) < by * self.logging_utility:
            raise ValueError(f"no such ranker is better by {by:.1%}: ranking by relevance itself is not.")
        return new

    def _tuned(self, by: float, rng: Generator, noise: float, sampled: bool) -> tuple[Ranker, Ranker]:
        """Return a ranker at or just below the wanted improvement, and one just above if there is any.

        Scores are the logging ranker's mean scores + noise + weight * relevance; the weight is found by bisection.
        """
        base = self.logging.scores.mean(axis=0, dtype=np.float64)
        base = base if self.logging.sampled else standardised(base)
        base = base + noise * rng.standard_normal(base.shape)
        best = standardised(self.shop.mean_relevance)

        def ranker(weight: float) -> Ranker:
            return Ranker(base + weight * best, sampled)

        def above(weight: float) -> bool:
            return self.improvement(ranker(weight)) > by * self.logging_utility

        low, high = -30.0, 30.0
        if above(low):
            raise ValueError(f"every such ranker is better than by {by:+.1%}.")
        if not above(high):
            low = high
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if above(middle) else (middle, high)
        return ranker(low), ranker(high)


def noisy_world(queries: int = 30, documents: int = 6, cutoff: int = 3, seed: int | Generator = 1) -> World:
    """A shop whose rankings are drawn by noisy scores."""
    rng = np.random.default_rng(seed)
    shop = make_shop(rng, queries=queries, documents=documents, cutoff=cutoff)
    return World(shop, noisy(shop, rng))
