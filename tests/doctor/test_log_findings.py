"""Which findings a log gives, by their codes, and which of them block a verdict."""

from collections.abc import Callable

import numpy as np
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.examination_check import examination_check
from saferank.doctor.health import Health
from saferank.doctor.log_arrays import shown_pairs
from saferank.logs.aggregated_log import PARTS
from tests.doctor.worlds import Log, Shop, aggregate, only_clicked_impressions, only_clicked_rows, simulate

TRUE = Shop().examination


def health_of(
    shop: Shop, change: Callable[[Log], Log] = lambda log: log, given: object = None, **rest: object
) -> Health:
    return diagnose(aggregate(change(simulate(shop, 1)), **rest), examination=given, replicates=20, em=False)  # type: ignore[arg-type]


def codes(health: Health) -> set[str]:
    return {finding.code for finding in health.findings}


def blocking(health: Health) -> set[str]:
    assert all(one.level == "bad" for one in health.blocking)
    return {finding.code for finding in health.blocking}


@pytest.mark.parametrize("shop", [Shop(), Shop(tastes=0.7), Shop(ranker="nightly"), Shop(ranker="release")])
def test_nothing_blocks_a_clean_log(shop: Shop) -> None:
    assert blocking(health_of(shop)) == set()
    health = health_of(shop, given=TRUE)
    assert blocking(health) == set()
    assert {"examination-agrees", "position-based"} <= codes(health)
    assert health.em is None


@pytest.mark.parametrize(
    ("shop", "change", "code"),
    [
        (Shop(), only_clicked_rows, "only-clicked-rows"),
        (Shop(), only_clicked_impressions, "only-clicked-impressions"),
        (Shop(bots=1.0), lambda log: log, "everything-clicked"),
        (Shop(bots=0.1), lambda log: log, "bots"),
        (Shop(stop=0.7), lambda log: log, "not-position-based"),
    ],
)
def test_garbage_blocks_and_is_not_praised(shop: Shop, change: Callable[[Log], Log], code: str) -> None:
    health = health_of(shop, change)
    assert code in blocking(health)
    first = next(one.code for one in health.findings if one.blocks)
    assert first == code  # the reason that certify gives
    praised = {one.code for one in health.findings if one.level == "good"}
    assert praised <= {"steady", "repeated-queries"}


def test_few_bots_are_a_caution() -> None:
    health = health_of(Shop(bots=0.008))
    assert "bots" in codes(health)
    assert blocking(health) == set()


def test_changes_over_time() -> None:
    moved = health_of(Shop(ranker="release"))
    assert "ranker-moved" in codes(moved)
    assert "demand-drifts" not in codes(moved)
    (found,) = (one for one in moved.findings if one.code == "ranker-moved")
    assert "from 2026-03-06 on" in found.text
    drifts = health_of(Shop(drift=0.4))
    assert "demand-drifts" in codes(drifts)
    assert not drifts.within_periods
    assert blocking(drifts) == set()
    assert "steady" in codes(health_of(Shop()))
    assert "no-timestamps" in codes(health_of(Shop(), dated=False))


def test_a_ranker_that_follows_demand() -> None:
    follows = health_of(Shop(ranker="nightly", drift=0.5))
    assert follows.within_periods
    assert blocking(follows) == {"ranker-follows-demand"}
    assert blocking(health_of(Shop(ranker="nightly", drift=0.5), given=TRUE)) == {"examination-unchecked"}


def test_rankings_drawn_at_random_within_the_day_let_it_be_estimated() -> None:
    """Over the days together a document stands higher when it is wanted, and the curve comes out too steep."""
    shop = Shop(ranker="nightly-random", drift=0.6, interactions=10_000)
    log = aggregate(simulate(shop, 2))
    health = diagnose(log, replicates=20, em=False)
    assert health.within_periods
    assert blocking(health) == set()
    pooled = examination_check(log.statistics(PARTS, shown_pairs(log)), np.array(TRUE))
    off = [np.log(one.curve[1:] / TRUE[1:]).mean() for one in (pooled, health.check)]
    assert off[0] < -0.1
    assert abs(off[1]) < 0.08
    assert "examination-agrees" in codes(diagnose(log, examination=TRUE, replicates=20, em=False))


def test_heavy_units_are_a_caution() -> None:
    unit = np.arange(5_000) // 5
    assert "heavy-units" not in codes(health_of(Shop(), unit=unit))
    unit[:400] = 0
    health = health_of(Shop(), unit=unit)
    assert "heavy-units" in codes(health)
    assert blocking(health) == set()
