"""Made-up inputs of all pages, with everything in them; their ids would break a page that does not escape."""

from dataclasses import replace
from functools import cache
from typing import Any

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import Finding, Health
from saferank.engine.bounds.registry import BOUNDS
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from saferank.plan.plan import GAINS, Need, Plan, Way
from saferank.plan.randomisation import Kind
from saferank.report.report_page import Report
from saferank.verdict.certificate import BoundRow, Certificate, CurveRow, Doubt, SegmentRow, Verdict
from saferank.verdict.exposure_shift import Changes, exposure_changes
from saferank.verdict.words import EXAMINATION, STABLE
from tests.doctor.logs import aggregated, random_interactions
from tests.policy.made import EXAMINATION as CURVE
from tests.policy.made import make_data, make_policy

EVIL = "<script>document.title='broken'</script>&\"'"
"""An id, a segment, the name of a log: what comes from data."""
NAME = "model<b>"

LOOKS = [
    {
        "at": f"2026-01-0{day}",
        "interactions": 1000 * day,
        "improvement": 0.03,
        "lower": low,
        "upper": 0.06,
        "verdict": v,
    }
    for day, low, v in ((1, -0.0211, "MORE DATA"), (2, -0.0122, "MORE DATA"), (3, 0.0133, "DEPLOY"))
]
FILES = {"weights.safetensors": {"bytes": 3, "sha256": "ab12"}}


def made_certificate(**changes: Any) -> Certificate:
    return replace(
        Certificate(
            verdict=Verdict.DEPLOY,
            improvement=0.03127,
            lower=0.01234,
            upper=0.05678,
            delta=0.05,
            spent=0.025,
            look=1,
            tolerance=0.0,
            bound="betting",
            serve_as="deterministic",
            interactions=12_345,
            click_rate=0.4321,
            logging_exposure="counted",
            strata="query",
            examination={"kind": "estimated", "unchecked": False, "curve": CURVE.tolist(), "worst": CURVE.tolist()},
            effective_clicks=2_345.6,
            unsupported_exposure=0.0123,
            without_features={"clicks": 0.0, "exposure": 0.0, "interactions": 0.0},
            covers=f"the queries of {EVIL}",
            low=-3.0,
            high=12.0,
            most_weight=20.0,
            standard_error=0.0098,
            bounds=tuple(
                BoundRow(name, 0.01234 - 0.01 * place, 0.05678 + 0.01 * place, bound.guarantee, bound.any_time)
                for place, (name, bound) in enumerate(BOUNDS.items())
            ),
            delta_dial=((0.2, 0.021), (0.05, 0.01234), (0.01, 0.004), (0.001, -0.007)),
            other_curves=(
                CurveRow("all ranks alike", 1.0, 0.0222, -0.0033, "no DEPLOY"),
                CurveRow("as used", 0.25, 0.03127, 0.01234, "DEPLOY"),
            ),
            segments=(
                SegmentRow(EVIL, 100, -0.0456, -0.0789, -0.0111),
                SegmentRow("", 200, 0.001, -0.002, 0.003),
                SegmentRow("desktop", 300, 0.0567, 0.0234, 0.0899),
            ),
            traffic=(SegmentRow("new queries", 150, 0.0345, -0.0012, 0.0678),),
            doubts=(Doubt("bots", f"Doubtful: {EVIL}.", "Leave them out."),),
            assumptions=(*BOUNDS["betting"].assumptions, EXAMINATION, STABLE, "nobody has thought of it yet"),
            warnings=(f"beware of {EVIL}.",),
            inputs={"model": {"files": FILES}, "looks": LOOKS},
            saferank="0.1.0",
            created="2026-01-03T10:00:00+00:00",
        ),
        **changes,
    )


def made_manifest() -> dict[str, Any]:
    history = [{"epoch": k, "estimate": 0.1 * k, "risk": 0.2 / k, "validation": 0.05 * k} for k in range(1, 5)]
    policy = {"estimate": 0.4321, "lower_bound": 0.3456, "divergence": 1.2345, "never_shown": 0.0321}
    return {
        "examination": CURVE.tolist(),
        "files": FILES,
        "settings": {"method": "exposure-crm"},
        "inputs": {"log": {"source": EVIL, "period": None}, "examination": "given: 1,0.5,0.25"},
        "training": {"best_epoch": 3, "history": history},
        "comparison": {
            "note": "Not a certificate.",
            "part": "validation",
            "policies": [policy | {"name": "current ranker"}, policy | {"name": EVIL, "divergence": None}],
        },
    }


@cache
def made_data() -> RankingData:
    data = make_data((6, 6, 6))
    assert data.query_ids is not None
    assert data.document_ids is not None
    queries, documents = data.query_ids.astype("<U60"), data.document_ids.astype("<U60")
    queries[0] = documents[0] = EVIL
    return replace(data, query_ids=queries, document_ids=documents)


@cache
def made_log() -> AggregatedLog:
    """Random rankings of three queries with six documents each; d0 of the first query has the evil name."""
    interactions = [
        (EVIL if query == "q0" else query, *([EVIL if query == "q0" and d == "d0" else d for d in of] for of in rest))
        for query, *rest in random_interactions(3, 60, examination=CURVE.tolist())
    ]
    return aggregated(interactions[::2], interactions[1::2], cutoff=len(CURVE), source=EVIL)  # type: ignore[arg-type]


@cache
def made_changes() -> Changes:
    return exposure_changes(make_policy(), made_log(), made_data())


@cache
def made_health() -> Health:
    findings = (
        Finding("bad", f"Too few clicks in {EVIL}.", "Log more (`saferank plan`).", code="few-clicks", blocks=True),
        Finding("caution", "Some bots.", code="bots"),
    )
    health = diagnose(made_log(), made_data(), CURVE, replicates=20)
    assert health.em is not None
    harvested = replace(health.harvested, warnings=("few documents moved.",))
    return replace(health, findings=findings, harvested=harvested, em=replace(health.em, warnings=()))


def made_plan(per_day: float | None = 1_000.0) -> Plan:
    """One way that cannot certify anything, one that takes too long, and two that can be drawn."""

    def way(kind: Kind, amount: float | None, cost: float, interactions: float) -> Way:
        needs = tuple(
            Need(gain, took, None, *((None, None) if per_day is None else (5 * took / per_day, took / per_day)))
            for gain in GAINS
            for took in [interactions * (0.05 / gain) ** 2]
        )
        return Way(kind, amount, 0.1, cost / 2, cost, cost / 2, cost, needs)

    ways = (
        way("as logged", None, 0.0, float("inf")),
        way("temperature", 0.5, 0.002, 1e7),
        way("temperature", 1.0, 0.008, 20_000.0),
        way("swap", 0.2, 0.02, 30_000.0),
    )
    return Plan(
        source=EVIL, interactions=12_345, queries=3, click_rate=0.4321, cutoff=3, examination=tuple(CURVE.tolist()),
        examination_from="given", scores_from="column `score`", delta=0.05, held_out_share=0.2, per_day=per_day,
        most_cost=0.01, unreachable=(), ways=ways, notes=(f"Note of {EVIL}.",),
    )  # fmt: skip


def full_report(**changes: Any) -> Report:
    return replace(
        Report(NAME, made_manifest(), made_certificate(), made_changes(), made_health()),
        **changes,
    )
