"""Products that arrive while the log is written: a new ranker is not credited with what was not there."""

import numpy as np
import pytest

from saferank.doctor.come_and_go import come_and_go
from saferank.doctor.log_arrays import period_counts, shown_pairs
from saferank.doctor.ranker_changes import MOST_COME_AND_GO, steady_stretches
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.new_ranker import NewRanker
from tests.shops import World, arriving, changed_once, make_shop, noisy


def world(seed: int, *, new: bool = True) -> World:
    rng = np.random.default_rng(seed)
    shop = make_shop(rng, days=14)
    if new:
        return World(shop, arriving(shop, rng))
    return World(shop, changed_once(shop, noisy(shop, rng), noisy(shop, rng), 7))


def share(drawn_from: World, seed: int) -> float:
    rng = np.random.default_rng([seed, 1])
    log = drawn_from.draw(12_000, rng).aggregated(rng)
    counts = period_counts(log, shown_pairs(log))
    return come_and_go(counts, steady_stretches(counts))


@pytest.mark.parametrize("seed", range(3))
def test_arrivals_are_told_from_a_ranker_that_was_replaced(seed: int) -> None:
    assert share(world(seed), seed) > MOST_COME_AND_GO
    assert share(world(seed, new=False), seed) < MOST_COME_AND_GO


def test_the_bound_holds_and_the_certificate_says_why_it_is_wide() -> None:
    above = 0
    for seed in range(4):
        made = world(seed)
        rng = np.random.default_rng([seed, 2])
        better = made.better(0.1, rng, noise=0.5)
        log = made.draw(12_000, rng).aggregated(rng)
        new = NewRanker(made.shop.data(), better.flat, "deterministic", complete=True)
        found = certify(new, log, CertifySettings(details=False))
        assert found.strata == "query and period"
        assert "come-and-go" in {doubt.code for doubt in found.doubts}
        above += found.lower > made.improvement(better)
    assert above == 0
