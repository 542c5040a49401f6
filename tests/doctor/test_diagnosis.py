"""Whole logs, and what is said about them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.feature_columns import FeatureColumns, feature_columns
from saferank.doctor.health import Finding, Health
from saferank.engine.errors import UsageError
from saferank.logs.row_checks import describe_dropped
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


def about(health: Health, code: str) -> Finding:
    (found,) = (finding for finding in health.findings if finding.code == code)
    return found


def test_a_random_log_is_healthy(healthy: Health) -> None:
    assert healthy.traffic.interactions == 7_200
    assert healthy.period == ("2026-01-01 00:00:00", "2026-01-31 23:59:59")
    assert np.all((healthy.harvested.low <= EXAMINATION) & (healthy.harvested.high >= EXAMINATION))
    np.testing.assert_array_equal(healthy.click_rate, healthy.clicked / healthy.shown)
    for code, number in (
        ("rankings-vary", "83"),
        ("examination-estimated", "rank 3 is examined 0.2"),
        ("never-shown", "Every candidate was shown"),
        ("repeated-queries", "100% of the interactions"),
    ):
        assert about(healthy, code).level == "good"
        assert number in about(healthy, code).text
    assert healthy.blocking == ()


def test_what_can_be_proven(healthy: Health) -> None:
    effective = healthy.effective
    assert effective is not None
    assert effective.provable_gain is not None
    worth = about(healthy, "effective-clicks")
    assert f"{effective.clicks:,} clicks are worth {effective.by_clicks:,.0f} (" in worth.text
    assert f"about {effective.provable_gain:.1%} or more" in worth.text
    assert worth.level == ("bad" if effective.provable_gain > 0.1 else "caution")
    assert f"{(effective.provable_gain / 0.05) ** 2:.1f} times as much" in worth.remedy


def test_a_position_that_no_row_has() -> None:
    """As if an advertisement stood at rank 3 and was left out."""
    log = aggregated(random_interactions(20, 400, examination=[1.0, 0.7, 0.5]), cutoff=3)
    shown = log.shown_counts
    moved = pc.if_else(pc.equal(shown["position"], 3), pa.scalar(4, pa.int32()), shown["position"])
    shown = shown.set_column(shown.schema.get_field_index("position"), "position", moved)
    health = diagnose(replace(log, shown_counts=shown, manifest=log.manifest | {"cutoff": 4}))
    found = about(health, "position-without-rows")
    assert found.blocks
    assert "position 3," in found.text


def test_times_as_numbers_are_shown_as_dates() -> None:
    days = [[1_760_313_600 + 86_400 * day, 1_760_399_999 + 86_400 * day] for day in range(14)]
    period = [str(days[0][0]), str(days[-1][1])]
    rows = random_interactions(20, 400, examination=[1.0, 0.7])
    health = diagnose(aggregated(rows, cutoff=2, period=period, periods=days))
    assert health.period == ("2025-10-13 00:00:00", "2025-10-26 23:59:59")
    assert "14 days" in about(health, "steady").text
    other = diagnose(aggregated(rows, cutoff=2, period=["0", "1209599"], periods=[[0, 604799], [604800, 1209599]]))
    assert other.period == ("0", "1209599")  # of a unit that nobody knows


def test_a_log_that_never_varies() -> None:
    fixed = [(f"q{q}", ["x", "y"], ["x"] if q % 2 else []) for q in range(30) for _ in range(20)]
    health = diagnose(aggregated(fixed, cutoff=2))
    levels = {finding.code: finding.level for finding in health.findings}
    assert {code for code, level in levels.items() if level == "bad"} == {
        "rankings-vary",
        "examination-incomplete",
        "effective-clicks",
    }
    assert levels["never-shown"] == "caution"
    assert (health.effective, health.coverage, health.level) == (None, None, "bad")
    given = diagnose(aggregated(fixed, cutoff=2), examination=[0.8, 0.4])
    assert [finding.code for finding in given.blocking] == ["examination-unchecked"]
    assert about(given, "effective-clicks").level == "bad"  # 300, and nothing held out to prove by


def test_examination_given_against_the_log() -> None:
    log = aggregated(random_interactions(120, 60, examination=EXAMINATION), cutoff=3)
    health = diagnose(log, examination=[1.0, 0.9, 0.25])
    doubted = about(health, "examination-contradicted")
    assert doubted.blocks
    assert "rank 2 is given as 0.90 of rank 1" in doubted.text
    assert f"estimated as {health.harvested.curve[1]:.2f} (" in doubted.text
    assert about(diagnose(log, examination=[0.8, 0.4, 0.2]), "examination-agrees").level == "good"
    blind = diagnose(log, examination=[0.0, 0.9, 0.25])
    assert about(blind, "examination-contradicted").blocks
    assert blind.effective is None
    with pytest.raises(UsageError):
        diagnose(log, examination=[1.0, 0.5])


def test_doubts_about_examination_are_reported() -> None:
    health = diagnose(aggregated(random_interactions(15, 8, examination=[1.0, 0.5]), cutoff=2))
    doubts = about(health, "examination-estimated")
    assert doubts.level == "caution"
    assert "Only 14 queries" in doubts.text


def test_features_that_do_not_fit() -> None:
    log = aggregated(random_interactions(10, 12, examination=[1.0, 0.5]), cutoff=2)
    assert about(diagnose(log, candidates(other=["d0"])), "unmatched-ids").level == "bad"
    health = diagnose(log, candidates(**{f"q{q}": [f"d{d}" for d in range(2, 20)] for q in range(9)}))
    left_out = about(health, "missing-features")
    assert left_out.level == "bad"  # a third of 9 queries, and the tenth
    assert "1 query has none at all" in left_out.text
    unseen = about(health, "never-shown")
    assert unseen.level == "caution"
    assert unseen.text.startswith("78% of the candidates")


def test_columns_that_fit_cannot_use() -> None:
    log = aggregated(random_interactions(2, 12, examination=[1.0, 0.5]), cutoff=2)
    data = candidates(q0=["d0", "d1", "d2"], q1=["d0", "d1", "d2"])
    nan = float("nan")
    values = {"id": [0, 1, 2, 3, 4, 5], "price": [1, 2, nan, 1, 1, 1], "length": [4] * 6, "empty": [nan] * 6}
    table = np.array(list(values.values()), np.float32).T
    columns = feature_columns(replace(data, features=table, feature_names=tuple(values), check_finite=False), ["brand"])
    assert columns == FeatureColumns(6, 4, {"price": 1, "empty": 6}, ("length", "empty"), ("brand",))
    ids = {"query_id": [f"q{i // 3}" for i in range(6)], "document_id": [f"d{i % 3}" for i in range(6)]}
    health, sound = (
        diagnose(log, pa.table(ids | columns))
        for columns in (values | {"brand": ["a"] * 6}, {"price": [1.0, 2.0, 3.0] * 2})
    )
    assert health.columns == columns
    assert {one.code: one.level for one in health.findings if one not in sound.findings} == {
        "missing-values": "caution", "text-columns": "caution", "constant-features": "caution",
    }  # fmt: skip


def test_queries_that_hardly_come_twice() -> None:
    rare = about(
        diagnose(aggregated(random_interactions(400, 3, examination=[1.0, 0.5]), cutoff=2)), "repeated-queries"
    )
    assert rare.level == "caution"
    assert rare.text.startswith("0% of the interactions")
    once = diagnose(aggregated(random_interactions(300, 1, examination=[1.0, 0.5]), cutoff=2))
    assert about(once, "rankings-vary").level == "bad"
    assert "100% of the queries were seen once" in about(once, "repeated-queries").text


def test_no_click_is_all_there_is_to_say() -> None:
    health = diagnose(aggregated([("a", ["x", "y"], [])] * 5, cutoff=2))
    assert [finding.code for finding in health.findings] == ["no-clicks"]
    assert health.level == "bad"


def test_what_was_dropped_is_reported() -> None:
    log = aggregated(
        random_interactions(5, 5, examination=[1.0]), cutoff=1, bad_rows={"repeated document": 2, "bad click": 0}
    )
    health = diagnose(log)
    assert health.dropped == {"repeated document": 2}
    assert describe_dropped("repeated document", 2) in about(health, "dropped-rows").text


def test_the_same_seed_gives_the_same_numbers() -> None:
    log = aggregated(random_interactions(30, 10, examination=[1.0, 0.5]), cutoff=2)
    one, same, other = (diagnose(log, seed=seed).harvested.high[1] for seed in (0, 0, 1))
    assert one == same != other
