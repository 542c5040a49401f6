"""report.html: a policy, its verdict and what it changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup

from saferank.doctor.health import Health
from saferank.engine.bounds.registry import BOUNDS, INDEPENDENT, MIX, NORMAL, POSITION_BASED, THEOREM_1
from saferank.report import report_charts as charts
from saferank.report.doctor_charts import curve_chart, traffic_chart
from saferank.report.page import render
from saferank.verdict.certificate import Certificate, confidence, meaning
from saferank.verdict.decision import EXAMINATION, GIVEN, KNOWN, STABLE, UNSEEN, WITHIN
from saferank.verdict.exposure_shift import Changes

TITLES = {
    "improvement": "Improvement", "bounds": "Bounds", "curves": "Curves", "watch": "Over time", "segments": "Segments",
    "traffic": "New queries", "exposure": "Exposure moved", "most": "What changes most", "examination": "Examination",
    "training": "Training", "health": "Log health", "assumptions": "Assumptions", "manifest": "Inputs",
}  # fmt: skip
"""Section -> its name in the contents."""
BROKEN_BY = {
    INDEPENDENT: "users who come back (give `--unit`), bots, a sale or a season in the log; other traffic after "
    "deployment. A split by time, with the last days held out, shows whether the past predicts the future.",
    MIX: "other queries after deployment than in the held-out part.",
    POSITION_BASED: "users who click high ranks because they are high; a good document that takes clicks from those "
    "below it; a layout in which ranks look different.",
    EXAMINATION: "several devices or layouts mixed in one log; users who are not position-based.",
    GIVEN: "a curve from other traffic, another device or another layout. If it is too steep, clicks at low ranks "
    "count too much, and documents moved up from there look better than they are.",
    KNOWN: "rules or filters that change the ranking after the scores; scores of another version of the ranker.",
    STABLE: "a ranker that moves documents up on the day on which they are wanted. With timestamps this is checked.",
    UNSEEN: "a ranker trained on all clicks of this log: it then looks better than it is. Train it on what `saferank "
    "split` writes.",
    WITHIN: "a ranker that follows demand within a day. Whether it does so with the hour of the day is checked.",
    NORMAL: "a few clicks with very large weights: then far more interactions are needed than it seems.",
    THEOREM_1: "rankings in which documents appear and disappear together: there the constant is too small.",
}
"""Assumption -> what would break it."""


@dataclass(frozen=True, eq=False)
class Report:
    """What is known about a policy; a section without data is left out, and the page says how to get it."""

    name: str
    manifest: Mapping[str, Any]
    """Of the model."""
    certificate: Certificate | None = None
    changes: Changes | None = None
    health: Health | None = None


def report_page(report: Report) -> str:
    """The page as HTML."""
    manifest, certificate = report.manifest, report.certificate
    sections = {name: TITLES[name] for name in _sections(report)}
    values: dict[str, Any] = {}
    json_texts = {"Model": json.dumps(manifest, indent=2)}
    if certificate is not None:
        bound = BOUNDS.get(certificate.bound)
        json_texts["Certificate"] = json.dumps(asdict(certificate) | {"verdict": certificate.verdict.value}, indent=2)
        values = {
            "verdict": certificate.verdict.value,
            "meaning": meaning(certificate),
            "sure": confidence(certificate.spent),
            "looks": certificate.inputs.get("looks") or [],
            "outcome": charts.outcome,
            "most_drawn": charts.MOST_ROWS,
            "guarantee": bound is None or bound.guarantee,
            "any_time": [name for name, one in BOUNDS.items() if one.any_time],
            "assumptions": [(text, BROKEN_BY.get(text)) for text in certificate.assumptions],
        }
    return render(
        "report.html",
        name=report.name,
        certificate=certificate,
        changes=report.changes,
        health=report.health,
        manifest=manifest,
        origin=list(_origin(report)),
        examination_source=manifest.get("inputs", {}).get("examination"),
        training=manifest.get("training") or {},
        comparison=manifest.get("comparison") or {},
        sections=sections,
        charts=_charts(report, sections),
        json=json_texts,
        absent=list(_absent(report)),
        **values,
    )


def _sections(report: Report) -> Iterator[str]:
    """Names of the sections that have data, in the order of the page."""
    manifest, certificate = report.manifest, report.certificate
    if certificate is not None:
        data: dict[str, Any] = {
            "improvement": True,
            "bounds": certificate.bounds,
            "curves": certificate.other_curves,
            "watch": certificate.inputs.get("looks"),
            "segments": certificate.segments,
            "traffic": certificate.traffic,
        }
        yield from (name for name, rows in data.items() if rows)
    if report.changes is not None:
        yield "exposure"
        if report.changes.queries:
            yield "most"
    if manifest.get("examination"):
        yield "examination"
    if manifest.get("training", {}).get("history") or manifest.get("comparison"):
        yield "training"
    if report.health is not None:
        yield "health"
    if certificate is not None:
        yield "assumptions"
    yield "manifest"


def _charts(report: Report, sections: Mapping[str, str]) -> dict[str, Markup]:
    drawn = {}
    if (certificate := report.certificate) is not None:
        drawn["improvement"] = charts.improvement_chart(certificate)
        drawn["dial"] = charts.dial_chart(certificate)
        if "bounds" in sections:
            drawn["bounds"] = charts.bounds_chart(certificate)
        if "segments" in sections:
            drawn["segments"] = charts.segments_chart(certificate)
        if len(looks := certificate.inputs.get("looks") or []) > 1:
            drawn["watch"] = charts.watch_chart(looks, certificate.tolerance)
    if report.changes is not None:
        drawn["moves"], drawn["moved"] = charts.moves_chart(report.changes), charts.moved_chart(report.changes)
    if report.health is not None:
        drawn["examination"], drawn["traffic"] = curve_chart(report.health), traffic_chart(report.health)
    elif "examination" in sections:
        drawn["examination"] = charts.examination_chart(report.manifest["examination"])
    if history := (training := report.manifest.get("training") or {}).get("history"):
        drawn["training"] = charts.training_chart(history, training["best_epoch"])
    return drawn


def _origin(report: Report) -> Iterator[str]:
    """What the page is about: the model, its method, its log and the day of its certificate."""
    yield report.name
    if method := report.manifest.get("settings", {}).get("method"):
        yield str(method)
    if log := report.manifest.get("inputs", {}).get("log"):
        yield f"learned from {log.get('source')}"
        if period := log.get("period"):
            yield f"{str(period[0])[:10]} to {str(period[1])[:10]}"
    if report.certificate is not None:
        yield f"certified {report.certificate.created[:10]}"


def _absent(report: Report) -> Iterator[str]:
    """What the page lacks, and how to get it."""
    if report.certificate is None:
        yield "The verdict, its bounds and its assumptions: `saferank certify`, then `--certificate`."
    else:
        if not report.certificate.segments:
            yield "Who gains and who loses: `saferank certify --segment COLUMN`."
        if not report.certificate.inputs.get("looks"):
            yield "The verdict over time: `saferank certify --watch`."
    if report.health is None:
        yield "The health of the log: `--log LOG`."
    if report.changes is None:
        yield "Exposure moved, and what changes most: `--log LOG --features F`."
