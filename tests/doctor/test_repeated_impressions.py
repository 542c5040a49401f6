"""Impressions that were logged twice are found; users who see the same list at the same time are left alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.log_arrays import sampled_impressions, shown_pairs
from saferank.doctor.repeated_impressions import RepeatedImpressions, repeated_impressions
from saferank.logs.load_log import load_log
from tests.shop_log import ShopLog
from tests.shops import World, make_shop, noisy

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def drawn(seed: int, interactions: int = 9_000, *, sampled: bool = True) -> ShopLog:
    """A log of rankings that are drawn, or always the same."""
    rng = np.random.default_rng(seed)
    shop = make_shop(rng, queries=30, documents=8, cutoff=4, days=7)
    return World(shop, noisy(shop, rng, sampled=sampled, scale=1.0 if sampled else 4.0)).draw(interactions, rng)


def with_copies(log: ShopLog, share: float, seed: int = 0) -> ShopLog:
    """Some impressions twice, anywhere in the log: so many, as a share of the result, are copies."""
    count = len(log.query)
    twice = np.random.default_rng(seed).choice(count, round(share / (1 - share) * count), replace=False)
    rows = np.sort(np.concatenate([np.arange(count), twice]))
    fields = {name: getattr(log, name)[rows] for name in ("second", "query", "unit", "ranking", "clicks")}
    return replace(log, **fields)


def found_in(log: ShopLog, *, kept: float = 1.0) -> RepeatedImpressions:
    """What is found in a sample of this share of the log."""
    aggregated = log.aggregated(0)
    assert aggregated.sample is not None
    chosen = np.random.default_rng(1).random(len(log.query)) < kept
    aggregated = replace(aggregated, sample=aggregated.sample.filter(pa.array(np.repeat(chosen, 4))))
    pairs = shown_pairs(aggregated)
    return repeated_impressions(sampled_impressions(aggregated, pairs), pairs, len(log.query))


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize(("share", "kept"), [(0.2, 1.0), (0.2, 0.3), (0.5, 1.0), (0.03, 1.0)])
def test_copies_are_found_and_counted(share: float, kept: float, sampled: bool) -> None:
    found = found_in(with_copies(drawn(0, sampled=sampled), share), kept=kept)
    assert found.significant
    assert found.share == pytest.approx(share, rel=0.2)


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("length", [1, MINUTE, HOUR, DAY])
def test_users_who_see_the_same_list_at_the_same_time_are_no_copies(length: int, sampled: bool) -> None:
    log = drawn(1, 15_000, sampled=sampled)
    found = found_in(replace(log, second=log.second // length * length))
    assert not found.significant
    assert abs(found.z) < 4.0


@pytest.mark.parametrize("length", [1, MINUTE, HOUR, DAY])
def test_a_burst_of_users_who_all_click_on_the_first_result_are_no_copies(length: int) -> None:
    """One list, which most users leave by its first document, is shown many times within an hour."""
    log, rng = drawn(5, sampled=False), np.random.default_rng(5)
    burst = np.flatnonzero(log.query == 0)
    second, clicks = log.second.copy(), log.clicks.copy()
    second[burst] = 3 * DAY + rng.integers(0, HOUR, len(burst))
    clicks[burst] = rng.random((len(burst), 4)) < [0.8, 0.02, 0.02, 0.02]
    order = np.argsort(second, kind="stable")
    fields = {name: getattr(log, name)[order] for name in ("query", "unit", "ranking")}
    found = found_in(replace(log, second=second[order] // length * length, clicks=clicks[order], **fields))
    assert not found.significant


def test_times_that_most_queries_share_tell_nothing() -> None:
    log = with_copies(drawn(5), 0.2)
    assert found_in(replace(log, second=log.second // HOUR * HOUR)) == RepeatedImpressions()


def test_few_copies_do_not_matter() -> None:
    found = found_in(with_copies(drawn(2), 0.005))
    assert found.z > 4.0
    assert not found.significant


def test_a_raw_log_with_copies_is_refused(tmp_path: Path) -> None:
    log = drawn(3)
    pq.write_table(log.table(), tmp_path / "clean.parquet")
    pq.write_table(with_copies(log, 0.2).table(), tmp_path / "log.parquet")
    codes = {}
    for name in ("clean", "log"):
        health = diagnose(load_log(tmp_path / f"{name}.parquet"), em=False, replicates=2)
        codes[name] = {finding.code for finding in health.blocking}
    assert codes == {"clean": set(), "log": {"repeated-impressions"}}


def test_copies_within_two_hours_are_found_too(tmp_path: Path) -> None:
    log = with_copies(drawn(6, 1_500), 0.2)
    pq.write_table(replace(log, second=log.second // 84).table(), tmp_path / "log.parquet")
    assert diagnose(load_log(tmp_path / "log.parquet"), em=False, replicates=2).repeated.significant


def test_nothing_to_compare() -> None:
    log = drawn(4, 200)
    assert repeated_impressions(None, shown_pairs(log.aggregated(0)), 0) == RepeatedImpressions()
    for undated in (log.aggregated(0, timestamps=False), replace(log, clicks=log.clicks & False).aggregated(0)):
        pairs = shown_pairs(undated)
        assert repeated_impressions(sampled_impressions(undated, pairs), pairs, 200) == RepeatedImpressions()
