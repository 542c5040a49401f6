"""What is said about a log of a ranker that changes every night, before anything is learned from it."""

import math

import numpy as np

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.effective_size import effective_size
from saferank.doctor.log_arrays import shown_pairs
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.plan.make_plan import make_plan
from tests.shops import Ranker, make_shop, nightly, noisy
from tests.shops import World as ShopWorld

SHOP = make_shop(np.random.default_rng(1), queries=30, documents=8, cutoff=4, days=10)


def draw(ranker: Ranker) -> AggregatedLog:
    return ShopWorld(SHOP, ranker).draw(6_000, np.random.default_rng(5)).aggregated(6)


NIGHTLY = draw(nightly(SHOP, np.random.default_rng(3), noise=2.0))
STEADY = draw(noisy(SHOP, np.random.default_rng(3), noise=2.0))


def test_doctor_adds_the_allowance_to_the_gain_that_can_be_proven() -> None:
    health = diagnose(NIGHTLY, em=False, replicates=20)
    found = health.effective
    assert found is not None
    assert found.provable_gain is not None
    pairs = shown_pairs(NIGHTLY)
    curve, counts = health.harvested.probabilities(), NIGHTLY.statistics(PARTS, pairs)
    without = effective_size(counts, curve, held_out=NIGHTLY.click_patterns("certify", pairs)).provable_gain
    assert without is not None
    assert 0.1 < found.drift_allowance < found.provable_gain - without / 2
    finding = next(one for one in health.findings if one.code == "effective-clicks")
    assert f"{found.drift_allowance:.1%}" in finding.text
    assert "saferank plan" in finding.remedy


def test_plan_does_not_advise_to_keep_logging_what_cannot_prove_the_gain() -> None:
    plan = make_plan(NIGHTLY, SHOP.data(), examination=SHOP.examination, most_cost=0.5)
    assert math.isinf(plan.ways[0].goal.interactions)
    assert plan.advised is not None
    assert plan.advised.random
    assert any("drift of demand" in note for note in plan.notes)


def test_nothing_is_allowed_for_where_the_ranker_did_not_change() -> None:
    health = diagnose(STEADY, em=False, replicates=20)
    assert health.effective is not None
    assert health.effective.drift_allowance == 0.0
    plan = make_plan(STEADY, SHOP.data(), examination=SHOP.examination)
    assert math.isfinite(plan.ways[0].goal.interactions)
    assert not any("drift of demand" in note for note in plan.notes)
