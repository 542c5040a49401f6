"""Rankings that follow demand from hour to hour: found where both move together, and left alone otherwise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.drift import Drift
from saferank.doctor.log_arrays import SampledImpressions, period_counts, sampled_impressions, shown_pairs
from saferank.doctor.moment import FEW_QUERIES, SIGNIFICANT, Moment, follows_moment
from saferank.doctor.ranker_changes import changes_of, ranker_changes
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict.checks import Refused
from saferank.verdict.log_doubts import log_doubts
from tests.shops import World, make_shop, with_sales


def drawn(seed: int, *, queries: int = 40, days: int = 7, **sales: Any) -> AggregatedLog:
    rng = np.random.default_rng(seed)
    shop = make_shop(rng, queries=queries, documents=8, cutoff=4, days=days)
    return World(*with_sales(shop, rng, **sales)).draw(9_000, rng).aggregated(rng)


def found_in(log: AggregatedLog) -> Moment:
    pairs = shown_pairs(log)
    return follows_moment(sampled_impressions(log, pairs), pairs, changes_of(log, pairs).stretches)


@pytest.mark.parametrize(("queries", "days"), [(40, 7), (FEW_QUERIES // 3, 7), (40, 2)])
def test_a_ranker_that_follows_sales_is_found(queries: int, days: int) -> None:
    log = drawn(0, queries=queries, days=days)
    health = diagnose(log, em=False, replicates=2)
    assert "ranker-follows-moment" in {finding.code for finding in health.blocking}
    if days > 2:  # neither the days nor the hours of the day differ by themselves
        assert health.hours is not None
        assert not health.hours.follows_demand
    with pytest.raises(Refused):
        log_doubts(log, known=False)
    log_doubts(log, known=True)  # exposure is that of the moment


@pytest.mark.parametrize("sales", [{"boost": 0.0}, {"wanted": 1.0}, {"together": False}])
def test_demand_and_ranker_that_move_apart_do_no_harm(sales: dict[str, Any]) -> None:
    found = [found_in(drawn(seed, **sales)).z for seed in range(6)]
    assert max(found) < SIGNIFICANT
    assert np.mean(found) < 1.5  # the largest of three deviates


@pytest.mark.parametrize("hours", [3, 24])
def test_busy_hours_in_which_more_is_clicked_do_no_harm(hours: int) -> None:
    """The ranker changes every few hours, for no reason; by day there is more traffic, and more of it clicks."""
    found = []
    for seed in range(3):
        rng, queries, documents, ranks, count = np.random.default_rng(seed), 60, 6, 4, 15_000
        traffic = np.where(np.arange(24) < 8, 0.25, 1.0)
        hour, day = rng.choice(24, count, p=traffic / traffic.sum()), rng.integers(0, 10, count)
        query = rng.integers(0, queries, count)
        scores = rng.normal(size=(240 // hours, queries, documents))[(24 * day + hour) // hours, query]
        ranking = np.argsort(-scores - rng.gumbel(size=scores.shape), axis=1)[:, :ranks]
        relevance = rng.uniform(0.1, 0.5, (queries, documents))
        chance = np.take_along_axis(relevance[query], ranking, axis=1) / np.arange(1, ranks + 1)
        click = rng.random(chance.shape) < chance * np.where(hour < 8, 0.6, 1.4)[:, None]
        pairs = RankingData(np.zeros((queries * documents, 0), np.float32), np.arange(queries + 1) * documents)
        sample = SampledImpressions(
            offsets=np.arange(count + 1) * ranks,
            document=(query[:, None] * documents + ranking).ravel(),
            rank=np.tile(np.arange(ranks), count),
            click=click.ravel().astype(np.float64),
            period=np.repeat(day, ranks),
            hour=np.repeat(hour, ranks),
        )
        found.append(follows_moment(sample, pairs).z)
    assert np.mean(found) < 1.8
    assert max(found) < SIGNIFICANT


def test_stretches_of_a_ranker_that_seems_to_follow_are_not_compared() -> None:
    log = drawn(0, boost=0.0)
    counts = period_counts(log, shown_pairs(log))
    demand, ranker = Drift(repeated=1.0), Drift(z=9.0)
    assert not ranker_changes(counts, demand, ranker, None, Moment(2.0)).may_drift
    assert ranker_changes(counts, demand, ranker, None, Moment(3.5)).may_drift


def test_nothing_to_compare() -> None:
    log = drawn(0, boost=0.0, queries=5)
    pairs = shown_pairs(log)
    assert follows_moment(None, pairs).z == 0.0
    sample = sampled_impressions(log, pairs)
    assert sample is not None
    assert follows_moment(replace(sample, click=np.zeros_like(sample.click)), pairs).z == 0.0
