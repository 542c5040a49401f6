"""Rankings that follow the hour of the day: found with demand that does too, and left alone without it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import Health
from saferank.doctor.hour_of_day import LEAST_SIZE, hour_counts, hour_of_day
from saferank.doctor.log_arrays import sampled_impressions, shown_pairs
from saferank.logs.aggregated_log import AggregatedLog
from tests.shops import Ranker, World, by_hour, in_slots, make_shop, noisy

INTERACTIONS = 6_000


def drawn(seed: int, *, demand: bool, ranker: bool, days: int = 7, **options: Any) -> AggregatedLog:
    rng = np.random.default_rng(seed)
    size = {"queries": 25, "documents": 8, "cutoff": 4, "days": days}
    shop = make_shop(rng, hourly=0.6, **size) if demand else in_slots(make_shop(rng, **size))
    world = World(shop, by_hour(shop, rng, noise=0.5) if ranker else noisy(shop, rng))
    return world.draw(INTERACTIONS, rng).aggregated(rng, **options)


def health_of(log: AggregatedLog) -> Health:
    return diagnose(log, em=False, replicates=2)


def codes(health: Health) -> set[str]:
    return {one.code for one in health.findings}


def test_both_follow_the_hour() -> None:
    health = health_of(drawn(0, demand=True, ranker=True))
    assert health.hours is not None
    assert health.hours.follows_demand
    assert not health.demand.significant  # days are all alike
    assert not health.ranker.significant
    assert "ranker-follows-hour" in {one.code for one in health.blocking}


def test_one_of_them_alone_does_no_harm() -> None:
    blocked = 0
    for seed in range(8):
        ranker = health_of(drawn(seed, demand=False, ranker=True))
        assert ranker.hours is not None
        assert ranker.hours.ranker.significant
        assert ranker.hours.ranker.size > LEAST_SIZE
        assert ranker.hours.demand.z < 4.0
        assert codes(ranker) & {"ranker-by-hour", "ranker-follows-hour"}
        blocked += "ranker-follows-hour" in codes(ranker)
        demand = health_of(drawn(seed, demand=True, ranker=False))
        assert demand.hours is not None
        assert demand.hours.demand.significant
        assert not demand.hours.ranker.significant
        assert not codes(demand) & {"ranker-by-hour", "ranker-follows-hour", "hour-unchecked"}
    assert blocked <= 2  # one clean log in 25


def test_a_ranker_that_is_retrained_in_the_night_does_not_follow_the_hour() -> None:
    """At 3:00 UTC: the first bucket of a day has the ranker of the day before."""
    rng = np.random.default_rng(3)
    shop = make_shop(rng, queries=25, documents=8, cutoff=4, days=10, hourly=0.6)
    scores = rng.standard_normal((shop.days + 1, 25, 8))
    version = (np.arange(shop.days * shop.per_day) - 1) // shop.per_day + 1
    log = World(shop, Ranker(scores[version])).draw(40_000, rng).aggregated(rng)
    hours = health_of(log).hours
    assert hours is not None
    assert hours.demand.significant
    assert not hours.follows_demand


def test_a_log_that_does_not_have_the_hour() -> None:
    log = drawn(0, demand=True, ranker=True)
    assert log.sample is not None
    place = log.sample.schema.get_field_index("hour")
    for hours in (pa.nulls(len(log.sample), pa.int32()), pa.repeat(pa.scalar(0, pa.int32()), len(log.sample))):
        health = health_of(replace(log, sample=log.sample.set_column(place, "hour", hours)))
        assert health.hours is None
        assert "hour-unchecked" in codes(health)
    assert not codes(health_of(drawn(0, demand=True, ranker=True, timestamps=False))) & {"hour-unchecked"}
    short = drawn(0, demand=True, ranker=True, days=2)  # its periods are hours
    assert health_of(short).hours is None
    assert "hour-unchecked" not in codes(health_of(short))


def test_rows_without_an_hour_are_left_out() -> None:
    log = drawn(0, demand=False, ranker=True)
    assert log.sample is not None
    pairs = shown_pairs(log)
    sample = sampled_impressions(log, pairs)
    assert sample is not None
    assert sample.hour is not None
    whole = hour_counts(sample, pairs, log.cutoff)
    some = hour_counts(replace(sample, hour=np.where(sample.hour < 12, sample.hour, -1)), pairs, log.cutoff)
    assert whole is not None
    assert some is not None
    assert (whole.periods, some.periods) == (8, 4)
    first = whole.of(whole.period < 4)
    for name in ("document", "rank", "period", "shown", "clicked"):
        np.testing.assert_array_equal(getattr(some, name), getattr(first, name))
    assert hour_of_day(None, pairs, log.cutoff) is None
