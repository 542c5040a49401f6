"""Drawn logs against enumerated probabilities, truth against enumeration, aggregated tables against a loop."""

from collections import Counter, defaultdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.features.load_features import load_features
from saferank.logs.load_log import load_log
from tests.oracles.enumeration import ranking_probabilities
from tests.shop_log import DAY, HOUR, ShopLog
from tests.shops import (
    SLOTS,
    Bots,
    Cascade,
    PositionBased,
    Ranker,
    Shop,
    Tastes,
    TrustBias,
    Users,
    World,
    by_hour,
    changed_once,
    draw,
    feature_table,
    in_slots,
    learned,
    make_shop,
    nightly,
    noisy,
    with_rows,
)

USERS: list[Users] = [PositionBased(), TrustBias(), Bots(), Cascade()]


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@cache
def tiny() -> Shop:
    return make_shop(rng(0), queries=2, documents=4, cutoff=3, days=3, zipf=1.0, drift=0.8, power=0.5)


def rankers() -> dict[str, Ranker]:
    fixed = noisy(tiny(), rng(1))
    other = noisy(tiny(), rng(2))
    return {
        "sampled": fixed,
        "deterministic": noisy(tiny(), rng(1), sampled=False),
        "nightly": nightly(tiny(), rng(3)),
        "changed": changed_once(tiny(), fixed, other, day=2),
    }


def chance_of_clicks(users: Users, examination: list[float], relevance: list[float], clicks: tuple[bool, ...]) -> float:
    """P(these clicks | what was shown), written out for one impression."""

    def product_of(chances: list[float]) -> float:
        return float(
            np.prod([chance if clicked else 1 - chance for chance, clicked in zip(chances, clicks, strict=True)])
        )

    plain = [theta * wanted for theta, wanted in zip(examination, relevance, strict=True)]
    if isinstance(users, Cascade):
        if not clicks:
            return 1.0
        here = relevance[0] if clicks[0] else 1 - relevance[0]
        stops = users.stop if clicks[0] else users.tire
        later = chance_of_clicks(users, examination[1:], relevance[1:], clicks[1:])
        return here * (stops * (not any(clicks[1:])) + (1 - stops) * later)
    if isinstance(users, Bots):
        return users.share * all(clicks) + (1 - users.share) * product_of(plain)
    if isinstance(users, TrustBias):
        trust = [users.trust / (rank + 1) for rank in range(len(relevance))]
        return product_of([
            theta * (wanted + (1 - wanted) * misled)
            for theta, wanted, misled in zip(examination, relevance, trust, strict=True)
        ])  # fmt: skip
    return product_of(plain)


def outcomes(shop: Shop, ranker: Ranker, users: Users) -> dict[Any, float]:
    """P(day, query, ranking, clicks) of one impression."""
    found = {}
    for day, query in product(range(shop.days), range(shop.queries)):
        scores = ranker.scores[min(day, len(ranker.scores) - 1), query].tolist()
        best = tuple(sorted(range(shop.documents), key=lambda d: -scores[d])[: shop.cutoff])
        shown = ranking_probabilities(scores, shop.cutoff) if ranker.sampled else {best: 1.0}
        for ranking, chance in shown.items():
            relevance = [float(shop.relevance[day, query, d]) for d in ranking]
            for clicks in product((False, True), repeat=shop.cutoff):
                clicked = chance_of_clicks(users, shop.examination.tolist(), relevance, clicks)
                found[day, query, ranking, clicks] = float(shop.traffic[query]) / shop.days * chance * clicked
    return found


@pytest.mark.parametrize(
    ("name", "users"),
    [*((name, PositionBased()) for name in rankers()), *(("sampled", one) for one in USERS if one != PositionBased())],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_draws_and_truth_are_those_of_enumeration(name: str, users: Users) -> None:
    shop, ranker, interactions = tiny(), rankers()[name], 40_000
    chances = outcomes(shop, ranker, users)
    assert sum(chances.values()) == pytest.approx(1.0)
    utility = sum(chance * sum(clicks) for (*_, clicks), chance in chances.items())
    assert users.utility(shop, ranker) == pytest.approx(utility, rel=1e-6)
    log = draw(shop, ranker, users, interactions, rng(4))
    rows = zip(log.day.tolist(), log.query.tolist(), log.ranking.tolist(), log.clicks.tolist(), strict=True)
    counts = Counter((day, query, tuple(ranking), tuple(clicks)) for day, query, ranking, clicks in rows)
    assert set(counts) <= set(chances)
    common = {key: chance for key, chance in chances.items() if chance * interactions > 20}
    assert sum(common.values()) > 0.8
    for key, chance in common.items():
        assert abs(counts[key] - interactions * chance) < 5 * np.sqrt(interactions * chance * (1 - chance))


def test_utility_by_exposure_is_that_of_position_based_users() -> None:
    shop = make_shop(rng(0), queries=2, documents=4, cutoff=3, days=1)
    for sampled in (False, True):
        ranker = noisy(shop, rng(1), sampled=sampled)
        assert shop.utility(ranker.exposure(shop.examination)) == pytest.approx(PositionBased().utility(shop, ranker))


def test_units_share_a_taste_and_a_query_and_are_unbiased() -> None:
    shop, ranker = tiny(), rankers()["sampled"]
    log = draw(shop, ranker, Tastes(), 200_000, rng(5))
    assert log.units == 10_000
    per_unit = np.bincount(log.unit, log.clicks.sum(axis=1) - Tastes().utility(shop, ranker), log.units)
    assert abs(per_unit.mean()) < 5 * per_unit.std() / np.sqrt(log.units)
    assert all(len(np.unique(log.query[log.unit == unit])) == 1 for unit in range(50))
    even = Shop(np.full((1, 2, 4), 0.5), np.ones(3), shop.traffic)
    log = draw(even, ranker, Tastes(), 2_000, rng(6))
    opinions = defaultdict(set)
    for unit, ranking, clicks in zip(log.unit.tolist(), log.ranking.tolist(), log.clicks.tolist(), strict=True):
        for document, clicked in zip(ranking, clicks, strict=True):
            opinions[unit, document].add(clicked)
    assert all(len(opinion) == 1 for opinion in opinions.values())
    assert set.union(*opinions.values()) == {False, True}


def test_rankers_over_days() -> None:
    shop = tiny()
    retrained = nightly(shop, rng(0), noise=0.0)
    order = np.argsort(-shop.relevance, axis=-1)
    np.testing.assert_array_equal(np.argsort(-retrained.scores, axis=-1), order[[0, 0, 1]])
    before, after = noisy(shop, rng(1)), noisy(shop, rng(2))
    changed = changed_once(shop, before, after, day=2).scores
    np.testing.assert_array_equal(changed, [before.scores[0], before.scores[0], after.scores[0]])
    constant = make_shop(rng(0), queries=2, documents=4, cutoff=3, days=3)
    np.testing.assert_array_equal(constant.relevance[0], constant.relevance[2])
    assert (nightly(constant, rng(0)).scores[1] != nightly(constant, rng(0)).scores[2]).all()


def test_demand_and_ranker_follow_the_hour() -> None:
    shop = make_shop(rng(0), queries=3, documents=4, cutoff=2, days=3, hourly=0.8)
    assert (shop.days, shop.per_day, len(shop.relevance)) == (3, SLOTS, 3 * SLOTS)
    np.testing.assert_array_equal(shop.relevance[:SLOTS], shop.relevance[SLOTS : 2 * SLOTS])  # alike on all days
    assert (shop.relevance[0] != shop.relevance[1]).all()
    ranker = by_hour(shop, rng(1), noise=0.0, sampled=False)
    log = draw(shop, ranker, PositionBased(), 20_000, rng(2))
    best = np.argsort(-shop.relevance, axis=-1)
    for place in range(0, 20_000, 500):
        slot = int(log.second[place]) % DAY // (3 * HOUR)
        assert log.ranking[place].tolist() == best[slot, log.query[place], :2].tolist()
        expected = shop.relevance[slot, log.query[place], log.ranking[place]]
        np.testing.assert_array_equal(log.wanted[place], expected)
    clicks = log.clicks.sum(axis=1)
    error = clicks.std() / np.sqrt(len(clicks))
    assert abs(clicks.mean() - PositionBased().utility(shop, ranker)) < 5 * error
    still = in_slots(make_shop(rng(0), queries=3, documents=4, cutoff=2, days=3))
    np.testing.assert_array_equal(still.relevance, np.repeat(still.relevance[::SLOTS], SLOTS, axis=0))
    assert (by_hour(still, rng(1)).scores[0] != by_hour(still, rng(1)).scores[1]).all()


def counted(table: pa.Table, values: tuple[str, ...]) -> Counter[Any]:
    """Sums over parts and impressions, by all but `groups` and `moment`; `values`: their columns, or none: the rows."""
    sums: Counter[Any] = Counter()
    for row in table.drop_columns(
        [name for name in ("part", "impression", "groups", "moment") if name in table.column_names]
    ).to_pylist():
        key = tuple(tuple(of) if isinstance(of, list) else of for name, of in row.items() if name not in values)
        sums.update({(*key, name): row[name] for name in values} or {key: 1})
    return sums


@pytest.mark.parametrize(("days", "units", "timestamps"), [(2, False, True), (4, True, True), (4, False, False)])
def test_aggregating_the_raw_table_gives_the_same_counts(
    days: int, units: bool, timestamps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saferank.logs.aggregate._without_names", lambda _: {})  # to recognise the units
    log = small_log(0, days)
    raw = log.table() if timestamps else log.table().drop_columns("timestamp")
    theirs = load_log(raw, rankings=True, unit="user_id" if units else None)
    ours = log.aggregated(0, rankings=True, units=units, timestamps=timestamps)
    for name, values in (
        ("shown_counts", ("shown", "clicked")),
        ("patterns", ("interactions",)),
        ("rankings", ("interactions",)),
        ("sample", ()),
    ):
        assert getattr(theirs, name).schema == getattr(ours, name).schema
        assert counted(getattr(theirs, name), values) == counted(getattr(ours, name), values), name
    for name in ("cutoff", "periods", "period", "unit", "rows"):
        assert theirs.manifest[name] == ours.manifest[name], name
    for name in ("interactions", "shown", "clicks"):
        sums = [sum(part[name] for part in one.manifest["parts"].values()) for one in (theirs, ours)]
        assert sums[0] == sums[1], name
    ours.write(tmp_path / "statistics")
    assert load_log(tmp_path / "statistics").shown_counts.equals(ours.shown_counts)


@pytest.mark.parametrize("split", ["impression", "query", "unit"])
def test_an_owner_has_one_part(split: Literal["impression", "query", "unit"]) -> None:
    log = small_log(0)
    sample = log.aggregated(3, split=split).sample
    assert sample is not None
    part = sample["part"].to_pylist()[:: log.shop.cutoff]  # all impressions are in the sample
    owner = {"impression": range(2_000), "query": log.query.tolist(), "unit": log.unit.tolist()}[split]
    assert len(set(zip(owner, part, strict=True))) == len(set(owner))
    assert len(set(part)) > 1


def small_log(seed: int, days: int = 4) -> ShopLog:
    shop = make_shop(rng(0), queries=6, documents=5, cutoff=3, days=days)
    return draw(shop, noisy(shop, rng(1)), PositionBased(), 2_000, rng(seed))


def test_the_seed_decides() -> None:
    first, again, other = small_log(0), small_log(0), small_log(1)
    assert first.table().equals(again.table())
    assert not first.table().equals(other.table())
    assert first.aggregated(0).patterns.equals(again.aggregated(0).patterns)
    assert not first.aggregated(0).patterns.equals(first.aggregated(1).patterns)


@pytest.mark.parametrize("users", USERS, ids=lambda users: type(users).__name__)
@pytest.mark.parametrize("sampled", [False, True])
def test_new_rankers_improve_as_asked(users: Users, sampled: bool) -> None:
    shop = make_shop(rng(0), queries=30, documents=5, cutoff=3, days=2)
    world = World(shop, noisy(shop, rng(1)), users)
    margin = 0.01 if not sampled else 1e-5
    assert -margin <= world.improvement(world.no_better(rng(2), sampled=sampled)) / world.logging_utility <= 0.0
    worse = world.improvement(world.worse(0.05, rng(2), sampled=sampled)) / world.logging_utility
    assert -0.05 - margin <= worse <= -0.05
    better = world.improvement(world.better(0.03, rng(2), sampled=sampled)) / world.logging_utility
    assert 0.03 <= better <= 0.03 + margin


def test_nothing_beats_the_optimal_ranker() -> None:
    shop = make_shop(rng(0), queries=30, documents=5, cutoff=3, days=2)
    world = World(shop, noisy(shop, rng(1), noise=0.0, sampled=False))
    assert world.improvement(world.no_better(rng(2), noise=0.0)) == 0.0
    assert world.improvement(world.no_better(rng(2), noise=1.0, sampled=True)) < 0.0
    with pytest.raises(ValueError, match="better by"):
        world.better(0.01, rng(2))


def test_learner_ranks_by_clicks_over_examinations() -> None:
    log = small_log(0)
    shop, made = log.shop, log.aggregated(0)
    assert made.sample is not None
    clicks, examined = Counter[str](), Counter[str]()
    for row in made.sample.to_pylist():
        if row["part"] != "certify":
            clicks[row["document_id"]] += row["click"]
            examined[row["document_id"]] += shop.examination[row["position"] - 1]
    expected = [clicks[name] / examined[name] for name in shop.document_ids.tolist()]
    np.testing.assert_allclose(learned(shop, made).flat, expected, rtol=1e-6)


def test_features_without_the_most_shown_documents(tmp_path: Path) -> None:
    log = small_log(0)
    shop, kept = log.shop, log.without_most_shown()
    data = with_rows(shop.features(rng(3), noise=0.1), kept)
    shown = Counter(log.table()["document_id"].to_pylist())
    for query in range(shop.queries):
        ids = [name for name in shop.document_ids.tolist() if name.startswith(f"d{query:05d}")]
        lost = [max(ids, key=shown.__getitem__)] if query % 2 == 0 else []
        left = data.document_ids[data.offsets[query] : data.offsets[query + 1]].tolist()  # type: ignore[index]
        assert left == [name for name in ids if name not in lost]
    assert np.corrcoef(data.features[:, 0], shop.mean_relevance.ravel()[kept])[0, 1] > 0.5
    pq.write_table(feature_table(data), tmp_path / "features.parquet")
    read = load_features(tmp_path / "features.parquet")
    np.testing.assert_array_equal(read.features, data.features)
    for sampled in (False, True):
        ranker = noisy(shop, rng(1), sampled=sampled).without(kept)
        assert not kept.all()
        assert (ranker.exposure(shop.examination)[~kept] == 0.0).all()
        new = draw(shop, ranker, PositionBased(), 1_000, rng(2))
        assert kept[new.rows].all()
