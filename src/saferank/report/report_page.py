"""report.html: a policy, its verdict and what it changes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from saferank.doctor.health import Health
from saferank.engine.bounds.registry import BOUNDS, INDEPENDENT, MIX, NORMAL, POSITION_BASED, THEOREM_1
from saferank.report import report_charts
from saferank.report.doctor_page import curve_chart, traffic_chart
from saferank.report.page import render
from saferank.verdict.certificate import Certificate, confidence, meaning
from saferank.verdict.exposure_shift import Changes
from saferank.verdict.words import (
    ALONE,
    ANYBODY,
    EARLIER,
    EXAMINATION,
    GIVEN,
    IN_ORDER,
    KNOWN,
    STABLE,
    UNSEEN,
    UNTIL,
    WITHIN,
)

BROKEN_BY = {
    INDEPENDENT: "users who come back (use `--unit`), bots, a sale or a season in the log; other traffic after "
    "deployment. A split by time, with the last days held out, shows whether the past predicts the future.",
    MIX: "queries after deployment that differ from those in the held-out part.",
    POSITION_BASED: "users who click high ranks because they are high; a good document that takes clicks from those "
    "below it; a layout in which ranks look different.",
    EXAMINATION: "several devices or layouts mixed in one log; users who are not position-based.",
    GIVEN: "a curve from other traffic, another device or another layout. If it is too steep, clicks at low ranks "
    "count too much, and documents moved up from there look better than they are.",
    KNOWN: "rules or filters that change the ranking after scoring; scores of another version of the ranker.",
    ANYBODY: "a ranker that knows the user, the device or the region, unless that is part of the query.",
    ALONE: "users who are done with what they have clicked, and search again. With users named, this is checked.",
    IN_ORDER: "at most two products per brand, pinned or sponsored results. Certify the order after such rules.",
    STABLE: "a ranker that moves documents up on days of high demand for them. With timestamps, this is checked.",
    UNSEEN: "a ranker trained on all clicks of this log, which makes it look better than it is. Train it on what "
    "`saferank split` writes.",
    EARLIER: "an earlier log of several rankers, or from other devices or another layout.",
    UNTIL: "a ranker, or features of it, made from clicks after that moment, which makes it look better than it is.",
    WITHIN: "a ranker that follows demand within a day. Whether it follows the hour of the day is checked.",
    NORMAL: "a few clicks with very large weights, which need far more interactions than it seems.",
    THEOREM_1: "rankings in which documents appear and disappear together, for which the constant is too small.",
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
    certificate = report.certificate
    values: dict[str, Any] = {}
    if certificate is not None:
        bound = BOUNDS.get(certificate.bound)
        values = {
            "verdict": certificate.verdict.value,
            "meaning": meaning(certificate),
            "sure": confidence(certificate.spent),
            "guarantee": bound is None or bound.guarantee,
            "any_time": [name for name, one in BOUNDS.items() if one.any_time],
            "broken_by": {
                text: why
                for text in certificate.assumptions
                for assumption, why in BROKEN_BY.items()
                if text.startswith(assumption.partition("{")[0])  # where a moment is filled in
            },
            "certificate_json": asdict(certificate) | {"verdict": certificate.verdict.value},
        }
    return render(
        "report.html",
        **vars(report),
        **values,
        charts=report_charts,
        curve_chart=curve_chart,
        traffic_chart=traffic_chart,
    )
