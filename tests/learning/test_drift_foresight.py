"""A ranker that changes every night: what is predicted reckons with the allowance for drift that `certify` applies."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow.compute as pc
import pytest

from saferank.doctor.ranker_changes import Compared
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.learning.fit_policy import fit_policy
from saferank.learning.foresight import Foreseen, Foresight
from saferank.learning.logged_parts import USED_PARTS, judged_parts
from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import certify
from saferank.verdict.new_ranker import NewRanker
from tests.shops import Ranker, World, make_shop, nightly, noisy

SHOP = make_shop(np.random.default_rng(1), queries=30, documents=8, cutoff=4, days=10)
SCORES = nightly(SHOP, np.random.default_rng(3), noise=2.0).scores
NIGHTLY, DRAWN = World(SHOP, Ranker(SCORES)), World(SHOP, Ranker(SCORES, sampled=True))
STEADY = World(SHOP, noisy(SHOP, np.random.default_rng(3), noise=2.0))
NEW = noisy(SHOP, np.random.default_rng(4), noise=0.5, scale=20.0, sampled=False)


@cache  # a world is known by itself, and several tests draw the same log
def draw(world: World, size: int, shares: tuple[float, ...] = (0.6, 0.2, 0.2)) -> AggregatedLog:
    return world.draw(size, np.random.default_rng(5)).aggregated(6, shares=shares)


def foreseen(log: AggregatedLog, judged: tuple[Compared, ...]) -> Foreseen:
    """Return what is foreseen of the new ranker by someone who knows the relevances."""
    counts = log.statistics(USED_PARTS, SHOP.data())
    rho_0 = estimated_logging_exposure(counts, SHOP.examination)
    size, relevance = log.manifest["parts"]["certify"]["interactions"], SHOP.mean_relevance.ravel()
    return Foresight(counts, SHOP.examination, relevance, rho_0, rho_0, size, judged=judged).of("new", NEW.flat)


def judged(log: AggregatedLog) -> tuple[Compared, ...]:
    return judged_parts(log, SHOP.data(), SHOP.examination)


def certified(log: AggregatedLog) -> Certificate:
    return certify(NewRanker(SHOP.data(), NEW.flat), log, details=False, trained_without_held_out=True)


@pytest.mark.parametrize("size", [3_000, 12_000])
def test_the_foreseen_allowance_and_chance_are_those_of_the_verdict(size: int) -> None:
    """It is certain of a proof if it leaves the allowance out, and wrong with 3,000 interactions."""
    log = draw(NIGHTLY, size)
    found, certificate = foreseen(log, judged(log)), certified(log)
    assert found.allowance == pytest.approx(certificate.drift_allowance, rel=0.1)
    assert (found.chance > 0.5) == (certificate.verdict == "DEPLOY") == (size == 12_000)
    assert foreseen(log, ()).chance > 0.99


def test_with_most_of_the_log_held_out_the_allowance_is_that_of_all_clicks() -> None:
    """Half of the clicks are a quarter of the pairs: the drift that they cannot exclude would be 1.4 times as large."""
    log = draw(NIGHTLY, 12_000, (0.3, 0.2, 0.5))
    assert foreseen(log, judged(log)).allowance == pytest.approx(certified(log).drift_allowance, rel=0.1)


def test_rankings_drawn_within_the_day_are_compared_there_without_an_allowance() -> None:
    log = draw(DRAWN, 3_000)
    found, certificate = foreseen(log, judged(log)), certified(log)
    assert found.allowance == certificate.drift_allowance == 0.0
    assert found.chance < 0.5 < foreseen(log, ()).chance  # within a day, little of what is new was shown
    assert certificate.verdict == "MORE DATA"


def test_nothing_changes_for_a_ranker_that_does_not() -> None:
    assert judged(draw(STEADY, 6_000)) == ()


def test_the_held_out_part_is_not_read() -> None:
    log = draw(NIGHTLY, 3_000)
    tables = {
        name: getattr(log, name).filter(pc.not_equal(getattr(log, name)["part"], "certify"))
        for name in ("shown_counts", "sample")
    }
    (whole,), (rest,) = judged(log), judged(replace(log, **tables))
    np.testing.assert_array_equal(whole.counts.clicked, rest.counts.clicked)
    assert whole.drifts[0].at_most == rest.drifts[0].at_most


@pytest.mark.usefixtures("short_training")
def test_fit_foresees_its_own_policy_with_the_allowance() -> None:
    log, data = draw(NIGHTLY, 3_000), SHOP.features(np.random.default_rng(7))
    chosen, steady = (
        fit_policy(one, data, SHOP.examination).policy.manifest["training"]["chosen"]
        for one in (log, draw(STEADY, 3_000))
    )
    assert chosen["allowance"] > 0.05
    assert chosen["chance"] < 0.9
    assert steady["allowance"] == 0.0


def test_the_flatter_curve_is_flatter_by_the_drift_that_is_allowed_for() -> None:
    log = draw(NIGHTLY, 3_000)
    (one,) = judged(log)
    counts, rho_0 = log.statistics(USED_PARTS, SHOP.data()), np.full(SHOP.data().documents, 0.1)
    plain = Foresight(counts, SHOP.examination, rho_0, rho_0, rho_0, 600)
    np.testing.assert_allclose(plain.flatter, SHOP.examination**0.8)
    allowing = replace(plain, drifts=one.drifts)
    np.testing.assert_allclose(allowing.flatter, SHOP.examination ** (1.0 - one.drifts[0].at_most))
