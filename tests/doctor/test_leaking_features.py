"""A feature that was computed from held-out clicks is found; honest ones, however good, are not."""

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.leaking_features import leaking_features
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog, pair_ids
from tests.shops import World, noisy_world

Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def world() -> World:
    return noisy_world(60, 10, 5)


@pytest.fixture(scope="module")
def log(world: World) -> AggregatedLog:
    rng = np.random.default_rng(2)
    return world.draw(8_000, rng).aggregated(rng)


def rate(log: AggregatedLog, data: RankingData, parts: tuple[str, ...], added: float = 0.0) -> Floats:
    counts = log.statistics(parts, data)
    shown: Floats = (counts.clicks + added * 0.2) / np.maximum(counts.times_shown + added, 1.0)
    return shown


def leaks(log: AggregatedLog, data: RankingData, **features: Floats) -> list[str]:
    table = np.column_stack(list(features.values())).astype(np.float32)
    made = replace(data, features=table, feature_names=tuple(features))
    return [leak.feature for leak in leaking_features(log, made, np.random.default_rng(0))]


def test_click_through_of_the_whole_log_is_found_however_it_is_computed(world: World, log: AggregatedLog) -> None:
    data, counts = world.shop.data(), log.statistics(PARTS, world.shop.data())
    found = leaks(
        log,
        data,
        rate=rate(log, data, PARTS),
        smoothed=rate(log, data, PARTS, added=20.0),
        logarithm=np.log(0.01 + rate(log, data, PARTS)),
        clicks=counts.clicks.astype(np.float64),
        corrected=counts.clicks / np.maximum(counts.shown @ world.shop.examination, 1e-9),
    )
    assert set(found) == {"rate", "smoothed", "logarithm", "clicks", "corrected"}


def test_honest_features_are_not_accused(world: World, log: AggregatedLog) -> None:
    data, rng = world.shop.data(), np.random.default_rng(3)
    before = world.draw(8_000, rng).aggregated(rng)
    relevance = world.shop.mean_relevance.ravel()
    assert leaks(
        log,
        data,
        relevance=relevance,
        nearly=relevance + 0.01 * rng.standard_normal(len(relevance)),
        noise=rng.standard_normal(len(relevance)),
        constant=np.ones(len(relevance)),
        few_values=np.round(4.0 * relevance),
        earlier=rate(before, data, PARTS),
        training=rate(log, data, PARTS[:2]),
    ) == []  # fmt: skip


def test_a_document_that_many_queries_share(world: World, log: AggregatedLog) -> None:
    data = world.shop.data()
    counts, number = log.statistics(PARTS, data), np.arange(data.documents) % 200
    shared = log.shown_counts.to_pydict()
    ids = zip(*(ids.tolist() for ids in pair_ids(data)), strict=True)
    place = {pair: row for row, pair in enumerate(ids)}
    rows = [f"d{number[place[pair]]}" for pair in zip(shared["query_id"], shared["document_id"], strict=True)]
    column = log.shown_counts.schema.get_field_index("document_id")
    renamed = replace(log, shown_counts=log.shown_counts.set_column(column, "document_id", [rows]))
    popular = (np.bincount(number, counts.clicks) / np.bincount(number, counts.times_shown))[number]
    assert leaks(renamed, replace(data, document_ids=np.array([f"d{n}" for n in number])), popular=popular) == [
        "popular"
    ]


def test_a_leak_blocks(world: World, log: AggregatedLog) -> None:
    data = world.shop.data()
    leaking = replace(data, features=rate(log, data, PARTS)[:, None].astype(np.float32), feature_names=("ctr",))
    found = diagnose(log, leaking, em=False, replicates=2)
    assert [one.code for one in found.blocking] == ["feature-knows-clicks"]
    assert diagnose(log, em=False, replicates=2).blocking == ()


@pytest.mark.parametrize("days", [1, 3, 5])
def test_click_through_of_the_last_days_is_found(world: World, days: int) -> None:
    """Seven days: what a feature knows of the last ones is little of the whole log, but all of those days."""
    rng = np.random.default_rng(7)
    log = world.draw(16_000, rng).aggregated(rng)
    data = world.shop.data()
    within = pc.greater_equal(log.shown_counts["period"], len(log.periods) - days)
    recent = replace(log, shown_counts=log.shown_counts.filter(within))
    (leak,) = leaking_features(
        log,
        replace(data, features=rate(recent, data, PARTS)[:, None].astype(np.float32), feature_names=("recent",)),
        np.random.default_rng(0),
    )
    assert leak.days == days
    assert leaks(log, data, training=rate(recent, data, PARTS[:2])) == []
