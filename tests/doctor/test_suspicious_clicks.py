"""Garbage is found, users are not taken for it."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.doctor.log_arrays import sampled_impressions, shown_pairs
from saferank.doctor.suspicious_clicks import (
    SIGNIFICANT,
    AllClicked,
    SuspiciousClicks,
    likely_unit,
    suspicious_clicks,
    units_of,
)
from saferank.logs.aggregated_log import PARTS
from tests.doctor.worlds import Log, Shop, aggregate, only_clicked_impressions, only_clicked_rows, simulate

SHORT = (1.0, 0.8, 0.65)


def found_in(log: Log, *, sampled: bool = True) -> SuspiciousClicks:
    made = aggregate(log)
    pairs = shown_pairs(made)
    sample = sampled_impressions(made, pairs) if sampled else None
    return suspicious_clicks(made.statistics(PARTS, pairs), made.patterns, sample)


@pytest.mark.parametrize("sampled", [True, False])
def test_what_was_not_clicked_is_missing(sampled: bool) -> None:
    log = simulate(Shop(interactions=1_500), 0)
    clean = found_in(log, sampled=sampled)
    assert not clean.every_row_clicked
    assert clean.rows_missing == 0.0
    assert not clean.clickless_missing
    assert clean.without_click == (~log.click.any(axis=1)).sum()
    assert clean.without_click == pytest.approx(clean.without_click_expected, rel=0.15)
    rows = found_in(only_clicked_rows(log), sampled=sampled)
    assert rows.every_row_clicked
    assert rows.rows_missing > 0.1
    assert found_in(only_clicked_impressions(log), sampled=sampled).clickless_missing


@pytest.mark.parametrize("sampled", [True, False])
def test_one_row_less_is_a_gap_and_a_list_that_ends_early_is_none(sampled: bool) -> None:
    """A quarter of the impressions have no row at rank 2, and another quarter none at the last rank."""
    log = simulate(Shop(interactions=1_000), 0)
    kept = log.kept.copy()
    kept[:250, 1] = kept[250:500, -1] = False
    found = found_in(replace(log, kept=kept, click=log.click & kept), sampled=sampled)
    assert found.rows_missing == 0.25


@pytest.mark.parametrize(
    "shop",
    [Shop(), Shop(tastes=0.7), Shop(ranks=3, examination=SHORT, tastes=0.7)],
)
def test_users_are_no_bots(shop: Shop) -> None:
    for seed in range(3):
        bots = found_in(simulate(shop, seed)).all_clicked
        assert bots is not None
        assert not bots.significant


@pytest.mark.parametrize(("share", "ranks"), [(0.02, 6), (0.1, 6), (0.1, 3)])
def test_bots(share: float, ranks: int) -> None:
    shop = Shop(bots=share, ranks=ranks, examination=Shop().examination[:ranks], relevance=(0.02, 0.3))
    bots = found_in(simulate(shop, 0)).all_clicked
    assert bots is not None
    assert bots.significant
    assert bots.share == pytest.approx(share, rel=0.4)
    assert bots.impressions == 5_000


def test_lists_of_two_are_often_clicked_whole() -> None:
    assert found_in(simulate(Shop(ranks=2, examination=(1.0, 0.8)), 0)).all_clicked is None


def test_units() -> None:
    unit = np.repeat(np.arange(200), 2)
    even = units_of(unit, np.ones(400, np.int64), np.ones(400, np.int64))
    assert (even.units, even.largest, even.clicks_of_top) == (200, 1 / 200, 2 / 200)
    assert not even.heavy
    large = units_of(np.append(unit, [7, -1]), np.append(np.ones(400, np.int64), [50, 900]), np.ones(402, np.int64))
    assert large.largest == pytest.approx(52 / 450)  # rows without a unit do not count
    assert large.heavy
    clicks = np.where(unit < 2, 200, 1)
    assert units_of(unit, np.ones(400, np.int64), clicks).heavy
    few = units_of(np.arange(10), np.ones(10, np.int64), np.ones(10, np.int64))
    assert not few.heavy  # a tenth each


@pytest.mark.parametrize(
    ("share", "z", "significant"),
    [(0.002, SIGNIFICANT + 0.1, True), (0.002, SIGNIFICANT - 0.1, False), (0.0005, SIGNIFICANT + 0.1, False)],
)
def test_all_clicked_must_be_beyond_chance_and_not_few(share: float, z: float, significant: bool) -> None:
    assert AllClicked(share, z, found=20, expected=1.0, impressions=1_000).significant == significant


@pytest.mark.parametrize(
    ("columns", "few_values", "unit"),
    [
        (["device"], [], "device"),
        (["device"], ["device"], None),  # phone, tablet
        (["Device-ID"], ["Device-ID"], "Device-ID"),  # of a small log
        (["member", "session"], ["member"], "session"),
    ],
)
def test_a_kind_of_device_names_no_users(columns: list[str], few_values: list[str], unit: str | None) -> None:
    assert likely_unit({"other_columns": columns, "groups": few_values}) == unit
