"""Whole logs, and what is said about them."""

import numpy as np
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import Finding, Health
from saferank.engine.errors import UsageError
from saferank.logs.row_checks import KINDS
from tests.doctor.logs import aggregated, candidates, random_interactions

EXAMINATION = [1.0, 0.5, 0.25]


@pytest.fixture(scope="module")
def healthy() -> Health:
    """120 queries with rankings in random order."""
    interactions = random_interactions(120, 60, examination=EXAMINATION)
    log = aggregated(
        interactions[: len(interactions) // 2],
        interactions[len(interactions) // 2 :],
        cutoff=3,
        rankings=True,
        period=["2026-01-01T00:00:00.250+00:00", "2026-01-31T23:59:59"],
    )
    return diagnose(log, candidates(**{f"q{q}": [f"d{d}" for d in range(6)] for q in range(120)}))


def said(health: Health, about: str) -> Finding:
    found = [finding for finding in health.findings if about in finding.text]
    assert len(found) == 1, [finding.text for finding in health.findings]
    return found[0]


def test_a_random_log_is_healthy(healthy: Health) -> None:
    assert healthy.traffic.interactions == 7_200
    assert healthy.period == ("2026-01-01 00:00:00", "2026-01-31 23:59:59")
    assert np.all((healthy.harvested.low <= EXAMINATION) & (healthy.harvested.high >= EXAMINATION))
    np.testing.assert_array_equal(healthy.examination, healthy.harvested.probabilities())
    np.testing.assert_array_equal(healthy.click_rate, healthy.clicked / healthy.shown)
    assert said(healthy, "Rankings vary: two impressions of a query differ at rank 1 in 83").level == "good"
    assert said(healthy, "Position bias can be told from this log: rank 3 is looked at 0.2").level == "good"
    assert said(healthy, "0% of the candidates were never shown.").level == "good"
    assert said(healthy, "100% of the interactions are of queries with at least 10; 0% of").level == "good"


def test_what_can_be_proven(healthy: Health) -> None:
    effective = healthy.effective
    assert effective is not None
    assert effective.provable_gain is not None
    worth = said(healthy, f"{effective.clicks:,} clicks are worth {effective.by_clicks:,.0f} (")
    assert f"can prove gains in clicks from about {effective.provable_gain:.1%} up" in worth.text
    assert worth.level == ("bad" if effective.provable_gain > 0.1 else "caution")
    assert worth.remedy.startswith(f"Log about {(effective.provable_gain / 0.05) ** 2:.1f} times as much to prove 5%")


def test_a_log_that_never_varies() -> None:
    fixed = [(f"q{q}", ["x", "y"], ["x"] if q % 2 else []) for q in range(30) for _ in range(20)]
    health = diagnose(aggregated(fixed, cutoff=2))
    assert said(health, "Rankings hardly vary: two impressions of a query differ at rank 1 in 0.0%").level == "bad"
    unknown = said(health, "Examination of any rank but the first cannot be estimated")
    assert unknown.level == "bad"
    assert unknown.remedy.startswith("Swap neighbouring ranks at random")
    assert health.examination is None
    assert health.effective is None
    assert said(health, "How much the clicks are worth cannot be told").level == "bad"
    assert said(health, "Without --features it cannot be told which candidates").level == "caution"
    assert health.coverage is None
    assert health.level == "bad"
    given = diagnose(aggregated(fixed, cutoff=2), examination=[0.8, 0.4])
    assert given.effective is not None
    unchecked = said(given, "The examination given cannot be checked")
    assert (unchecked.level, unchecked.code, unchecked.blocks) == ("bad", "examination-unchecked", True)
    assert said(given, "clicks are worth").level == "bad"  # 300, and nothing held out to prove by


def test_examination_given_against_the_log(healthy: Health) -> None:
    interactions = random_interactions(120, 60, examination=EXAMINATION)
    health = diagnose(aggregated(interactions, cutoff=3), examination=[1.0, 0.9, 0.25])
    assert healthy.given is None
    doubted = said(health, "The log contradicts the examination given: rank 2 is given as 0.90 of rank 1")
    assert (doubted.level, doubted.code, doubted.blocks) == ("bad", "examination-contradicted", True)
    agreed = diagnose(aggregated(interactions, cutoff=3), examination=[0.8, 0.4, 0.2])
    assert said(agreed, "The examination given agrees with the log").code == "examination-agrees"
    assert f"estimated as {health.harvested.curve[1]:.2f} (" in doubted.text
    np.testing.assert_array_equal(health.examination, [1.0, 0.9, 0.25])
    blind = diagnose(aggregated(interactions, cutoff=3), examination=[0.0, 0.9, 0.25])
    assert said(blind, "says that rank 1 is never looked at").level == "bad"
    assert blind.effective is None
    with pytest.raises(UsageError, match="examination is for 2 ranks, but the log was cut at 3"):
        diagnose(aggregated(interactions, cutoff=3), examination=[1.0, 0.5])


def test_doubts_about_examination_are_told() -> None:
    few = random_interactions(15, 8, examination=[1.0, 0.5])
    health = diagnose(aggregated(few, cutoff=2))
    doubts = said(health, "with doubts.")
    assert doubts.level == "caution"
    assert "Only 14 queries have documents that moved" in doubts.text


def test_features_that_do_not_fit() -> None:
    interactions = random_interactions(10, 12, examination=[1.0, 0.5])
    log = aggregated(interactions, cutoff=2)
    strangers = diagnose(log, candidates(other=["d0"]))
    assert said(strangers, "No query of the log has features.").level == "bad"
    some = candidates(**{f"q{q}": [f"d{d}" for d in range(2, 20)] for q in range(9)})
    health = diagnose(log, some)
    left_out = said(health, "of what was shown has no features and is left out of training (1 query lacks them altog")
    assert left_out.level == "bad"  # a third of 9 queries, and the tenth
    unseen = said(health, "78% of the candidates were never shown: nothing can be said about them.")
    assert (unseen.level, unseen.remedy) == (
        "caution",
        "Let candidates from below rank 2 into the list at random, now and then.",
    )


def test_queries_that_hardly_come_twice() -> None:
    rare = random_interactions(400, 3, examination=[1.0, 0.5])
    finding = said(diagnose(aggregated(rare, cutoff=2)), "0% of the interactions are of queries with at least 10")
    assert finding.level == "caution"
    assert "--logging-scores" in finding.remedy
    once = random_interactions(300, 1, examination=[1.0, 0.5])
    health = diagnose(aggregated(once, cutoff=2))
    assert said(health, "No query has two impressions").level == "bad"
    assert "100% of the queries were seen once" in said(health, "seen once").text


def test_no_click_is_all_there_is_to_say() -> None:
    health = diagnose(aggregated([("a", ["x", "y"], [])] * 5, cutoff=2))
    assert [finding.text for finding in health.findings] == [
        "There is no click in this log: nothing can be learned from it."
    ]
    assert health.level == "bad"


def test_what_was_dropped_is_told() -> None:
    log = aggregated(
        random_interactions(5, 5, examination=[1.0]), cutoff=1, bad_rows={"repeated document": 2, "bad click": 0}
    )
    health = diagnose(log)
    assert health.dropped == {"repeated document": 2}
    assert said(health, f"Left out: {KINDS['repeated document'].describe_dropped(2)}.").level == "caution"


def test_the_same_seed_gives_the_same_numbers() -> None:
    log = aggregated(random_interactions(30, 10, examination=[1.0, 0.5]), cutoff=2)
    one, same, other = (diagnose(log, seed=seed).harvested.high[1] for seed in (0, 0, 1))
    assert one == same != other
