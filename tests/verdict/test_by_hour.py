"""Rankings that follow the hour of the day: refused with demand that does too, and allowed for without it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.possible_drift import possible_drift_by_hour
from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import Refused
from saferank.verdict.log_doubts import log_doubts
from saferank.verdict.new_ranker import NewRanker
from tests.shops import Ranker, World, by_hour, in_slots, make_shop, noisy

SIZE: dict[str, Any] = {"queries": 25, "documents": 8, "cutoff": 4}


def hourly(rng: np.random.Generator, *, demand: bool) -> World:
    shop = make_shop(rng, hourly=0.6, **SIZE) if demand else in_slots(make_shop(rng, **SIZE))
    return World(shop, by_hour(shop, rng, noise=0.5))


def certified(world: World, ranker: Ranker, rng: np.random.Generator, interactions: int = 8_000) -> Certificate:
    log = world.draw(interactions, rng).aggregated(rng)
    return certify(NewRanker(world.shop.data(), ranker.flat), log, CertifySettings(details=False))


def test_a_ranker_that_follows_the_hour_as_demand_does_is_refused() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        world = hourly(rng, demand=True)
        with pytest.raises(Refused) as error:
            certified(world, world.no_better(rng), rng)
        assert error.value.code == "ranker-follows-hour"


def test_with_known_scores_the_hour_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    log = hourly(rng, demand=True).draw(8_000, rng).aggregated(rng)
    assert not log_doubts(log, known=True).changes.by_hour


def test_where_only_the_ranker_follows_the_hour_the_bound_has_an_allowance() -> None:
    rng = np.random.default_rng(1)
    world = hourly(rng, demand=False)
    ranker = world.better(0.1, rng, noise=0.5)
    found = certified(world, ranker, rng)
    assert 0.0 < found.drift_allowance < 0.1 * found.click_rate
    assert any("hour of the day" in warning for warning in found.warnings)
    assert found.lower < world.improvement(ranker)
    steady = certified(World(world.shop, noisy(world.shop, rng)), ranker, rng)
    assert steady.drift_allowance == 0.0


def test_variation_of_exposure_over_the_hours() -> None:
    """Of a document that is on top in half of the day and not shown in the other: 1. Of one that never moves: 0."""
    rng = np.random.default_rng(2)
    shop = in_slots(make_shop(rng, queries=4, documents=4, cutoff=2))
    scores = np.tile([3.0, 2.0, 1.0, 0.0], (shop.per_day, 4, 1))
    scores[4:, :, [0, 2]] = scores[4:, :, [2, 0]]  # documents 0 and 2 change places at noon
    ranker = Ranker(np.tile(scores, (shop.days, 1, 1)))
    log = World(shop, ranker).draw(4_000, rng).aggregated(rng)
    pairs = shown_pairs(log)
    assert [one[-1] for one in pairs.document_ids[:3]] == ["0", "1", "2"]  # type: ignore[index]
    drift = possible_drift_by_hour(log, pairs, shop.examination)
    np.testing.assert_allclose(drift.variation.reshape(4, 3)[:, [0, 2]], 1.0, atol=0.2)
    np.testing.assert_allclose(drift.variation.reshape(4, 3)[:, 1], 0.0, atol=0.01)
    assert 0.0 < drift.at_most < 0.5
    assert log.sample is not None
    one_query = replace(log, sample=log.sample.filter(pc.equal(log.sample["query_id"], shop.query_ids[0])))
    thin = possible_drift_by_hour(one_query, pairs, shop.examination).variation.reshape(4, 3)
    np.testing.assert_array_equal(thin[0], drift.variation[:3])
    assert (thin[1:] == thin[1, 0]).all()  # unknown: as in the query that was sampled
    assert thin[0].min() < thin[1, 0] < thin[0].max()


def test_variation_of_rankings_drawn_at_random_is_zero_on_average() -> None:
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shop = make_shop(rng, queries=10, documents=4, cutoff=2)
        log = World(shop, Ranker(np.zeros((10, 4)), sampled=True)).draw(1_000, rng).aggregated(rng)
        found.append(possible_drift_by_hour(log, shown_pairs(log), shop.examination).variation.mean())
    assert abs(np.mean(found)) < 5 * np.std(found) / np.sqrt(len(found))
    assert np.std(found) < 0.05
