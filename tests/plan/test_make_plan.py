"""A plan of a small log: what it says of traffic, cost and reach, and what it refuses."""

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from saferank.engine.bounds.verdict_choices import POWER
from saferank.engine.errors import DataError, UsageError
from saferank.plan.make_plan import logged_days, make_plan
from saferank.plan.plan import GAINS, Plan, days, percent, recommendation, whole
from saferank.report.plan_page import plan_page
from tests.doctor.logs import Interaction, aggregated, candidates, random_interactions

CURVE = [1.0, 0.6, 0.4]
DOCUMENTS = {f"q{q}": [f"d{d}" for d in range(6)] for q in range(40)}
TEN_DAYS = ["2024-01-01T00:00:00+00:00", "2024-01-11T00:00:00+00:00"]


def small_plan(**options: Any) -> Plan:
    log = aggregated(random_interactions(40, 50, examination=CURVE), cutoff=3, period=options.pop("period", TEN_DAYS))
    scores = np.tile(np.arange(6.0, 0.0, -1.0), 40)
    return make_plan(log, candidates(**DOCUMENTS), scores, options.pop("examination", CURVE), **options)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return small_plan(most_cost=0.3)


def test_days_follow_from_interactions_and_traffic(plan: Plan) -> None:
    assert plan.per_day == pytest.approx(40 * 50 / 10)
    assert (plan.interactions, plan.queries, plan.held_out_share) == (2000, 40, 0.2)
    some = [need for way in plan.ways for need in way.needs if math.isfinite(need.interactions)]
    assert some
    for need in some:
        assert need.days_all == pytest.approx(need.interactions / 200)
        assert need.days_held_out == pytest.approx(need.interactions / 40)


def test_larger_gains_are_certified_sooner_and_heat_costs_more(plan: Plan) -> None:
    heated = [way for way in plan.ways if way.kind == "temperature"]
    assert [way.amount for way in heated] == sorted(way.amount or 0.0 for way in heated)
    assert [way.moved for way in heated] == sorted(way.moved for way in heated)
    hot = heated[-1]
    assert [need.gain for need in hot.needs] == list(GAINS)
    assert math.inf > hot.needs[0].interactions > hot.needs[1].interactions > hot.needs[2].interactions
    assert next(way for way in plan.ways if way.kind == "as logged").cost == pytest.approx(0.0, abs=1e-12)


def test_the_first_look_has_its_share_of_delta(plan: Plan) -> None:
    lax = small_plan(most_cost=0.3, delta=0.1)
    z = NormalDist().inv_cdf
    ratio = ((z(1 - 0.05) + z(POWER)) / (z(1 - 0.025) + z(POWER))) ** 2
    for one, other in zip(lax.ways, plan.ways, strict=True):
        if math.isfinite(other.goal.interactions):
            assert one.goal.interactions == pytest.approx(ratio * other.goal.interactions)


def test_the_recommended_way_is_the_soonest_within_the_cost(plan: Plan) -> None:
    chosen = plan.recommended
    assert chosen is not None
    assert chosen.relative_cost_at_most <= plan.most_cost
    for way in plan.ways:
        if way.random and way.relative_cost_at_most <= plan.most_cost:
            assert chosen.goal.interactions <= way.goal.interactions
    assert days(chosen.goal.days_held_out or 0.0) in recommendation(plan)
    dear = replace(plan, most_cost=-1.0)
    assert dear.recommended is None
    assert "--most-cost" in recommendation(dear)
    assert "5%" in recommendation(replace(plan, unreachable=(0.05,)))
    logged = next(way for way in plan.ways if way.kind == "as logged")
    sooner = replace(logged, needs=tuple(replace(need, interactions=1.0) for need in logged.needs))
    varied = replace(plan, ways=tuple(sooner if way is logged else way for way in plan.ways))
    assert chosen.instruction[1:] in recommendation(plan)
    assert chosen.instruction[1:] not in recommendation(varied)
    assert (plan.advised is chosen, varied.advised is varied.recommended) == (True, False)
    assert varied.advised is not None
    assert varied.advised.kind == "as logged"


def test_without_timestamps_there_are_interactions_only(plan: Plan) -> None:
    undated = small_plan(period=None, most_cost=0.3)
    assert undated.per_day is None
    assert undated.ways[-1].needs[0].days_held_out is None
    chosen = undated.recommended
    assert chosen is not None
    assert chosen.goal.in_words == f"{whole(chosen.goal.interactions)} held-out interactions"
    for one, other in zip(undated.ways, plan.ways, strict=True):  # the same seed gives the same numbers
        assert (one.cost, one.moved) == (other.cost, other.moved)
        assert [need.interactions for need in one.needs] == [need.interactions for need in other.needs]


def test_without_scores_and_examination_the_log_is_asked() -> None:
    log = aggregated(random_interactions(40, 50, examination=CURVE), cutoff=3)
    plan = make_plan(log, candidates(**DOCUMENTS))
    assert "mean rank" in plan.scores_from
    assert "harvesting" in plan.examination_from
    np.testing.assert_allclose(plan.examination, CURVE, rtol=0.3)


def test_a_given_curve_is_held_against_the_log(plan: Plan) -> None:
    assert plan.notes == ()
    assert any("contradicts" in note for note in small_plan(examination=[1.0, 0.1, 0.01]).notes)
    fixed: list[Interaction] = [(f"q{q}", ["d0", "d1", "d2"], ["d0"]) for q in range(40) for _ in range(5)]
    made = make_plan(aggregated(fixed, cutoff=3), candidates(**DOCUMENTS), None, CURVE)
    assert any("too little to check" in note for note in made.notes)
    assert made.unreachable == GAINS  # only rank 1 is ever clicked: nothing to gain
    assert "<svg" not in plan_page(made)


def test_a_log_that_never_varies_gets_a_plan_with_an_assumed_curve() -> None:
    rng = np.random.default_rng(0)
    fixed: list[Interaction] = [
        (f"q{q}", ["d0", "d1", "d2"], [f"d{d}" for d, chance in enumerate([0.3, 0.1, 0.25]) if rng.random() < chance])
        for q in range(40)
        for _ in range(20)
    ]
    made = make_plan(aggregated(fixed, cutoff=3), candidates(**DOCUMENTS), most_cost=0.5)
    np.testing.assert_allclose(made.examination, [1.0, 1.0 / 2.0, 1.0 / 3.0])
    assert made.examination_from.startswith("assumed")
    assert len(made.notes) == 1
    assert made.recommended is not None


def test_refusals() -> None:
    fixed: list[Interaction] = [(f"q{q}", ["d0", "d1", "d2"], ["d0"]) for q in range(40) for _ in range(5)]
    unclicked, single = aggregated([("q0", ["d0"], [])], cutoff=1), aggregated([("q0", ["d0"], ["d0"])], cutoff=1)
    log = aggregated(fixed, cutoff=3)
    for call in (
        (unclicked, candidates(q0=["d0", "d1"]), None, [1.0]),
        (log, candidates(other=["d0"]), None, CURVE),
        (single, candidates(q0=["d0"]), None, [1.0]),
    ):
        with pytest.raises(DataError) as error:
            make_plan(*call)
        assert error.value.file == "clicks.parquet"
    for wrong in ({"delta": 0.7}, {"most_cost": -0.1}, {"examination": [1.0, 0.5]}, {"examination": [0.0, 0.5, 0.1]}):
        with pytest.raises(UsageError):
            small_plan(**wrong)
    with pytest.raises(UsageError, match="documents"):
        make_plan(log, candidates(**DOCUMENTS), np.ones(3), CURVE)


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"period": TEN_DAYS}, 10.0),
        ({"period": ["2024-01-01", "2024-01-02T12:00:00"]}, 1.5),
        ({"period": [1_700_000_000_000, 1_700_043_200_000]}, 0.5),
        ({"period": None}, None),
        ({"period": ["then", "now"]}, None),
        ({"period": [5, 5]}, None),
    ],
)
def test_days_of_a_log(manifest: dict[str, Any], expected: float | None) -> None:
    assert logged_days(aggregated([("a", ["x"], [])], cutoff=1, **manifest)) == expected


def test_numbers_as_one_reads_them() -> None:
    assert [whole(value) for value in (0.2, 99.5, 100.0, 101.0, 123_456.0)] == ["1", "100", "100", "110", "130,000"]
    assert whole(math.inf) == "never"
    assert [days(value) for value in (0.4, 1.0, 1.2)] == ["less than 1 day", "1 day", "2 days"]
    assert [percent(-1e-9, 2), percent(0.01), percent(-0.0123, 1)] == ["0.00%", "1%", "-1.2%"]
