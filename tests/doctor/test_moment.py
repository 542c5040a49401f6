"""Rankings that follow demand from hour to hour: found where both move together, and left alone otherwise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.drift import Drift
from saferank.doctor.log_arrays import period_counts, sampled_impressions, shown_pairs
from saferank.doctor.moment import FEW_QUERIES, SIGNIFICANT, Moment, follows_moment
from saferank.doctor.ranker_changes import changes_of, ranker_changes
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
