"""What a certificate shows in addition to the verdict: other bounds, deltas and curves, and segments."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from saferank.engine.bounds.registry import BOUNDS
from saferank.verdict.certificate import BoundRow, Certificate, CurveRow, SegmentRow, Verdict
from saferank.verdict.curves import OTHER_POWERS
from saferank.verdict.judge import Judge

DIAL = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
MOST_SEGMENTS = 50
"""Only the largest segments are reported."""
NEW_QUERIES = 0.001
"""Share of the held-out interactions above which new queries are reported separately."""


def with_details(certificate: Certificate, judge: Judge, seen_queries: NDArray[np.int64]) -> Certificate:
    """Return the certificate with what is not needed for the verdict."""
    delta, share = certificate.spent, certificate.spent / certificate.delta
    fixed = judge.comparison.logging_placement is not None and judge.curves.covariance is None
    units = judge.comparison.part.patterns.unit is not None
    curve = judge.curves.curve
    curves = []
    for power in OTHER_POWERS:
        if power == 1.0:
            improvement, lower, name = certificate.improvement, certificate.lower, "as used"
        else:
            improvement, lower = judge.at(curve**power, delta)
            name = "all ranks alike" if power == 0.0 else f"to the power {power:g}"
        verdict = Verdict.DEPLOY.value if lower >= -certificate.tolerance else "no DEPLOY"
        curves.append(CurveRow(name, float(curve[-1] ** power), improvement, lower, verdict))
    return replace(
        certificate,
        bounds=tuple(
            BoundRow(
                name, judge.lower(delta, name)[0], judge.upper(delta, name), bound.guarantee, bound.any_time and fixed
            )
            for name, bound in BOUNDS.items()
            if bound.units or not units
        ),
        delta_dial=tuple((each, judge.lower(each * share)[0]) for each in DIAL),
        other_curves=tuple(curves),
        segments=_segments(judge, delta),
        traffic=_traffic(judge, delta, seen_queries),
    )


def _segments(judge: Judge, delta: float) -> tuple[SegmentRow, ...]:
    """Return the improvement in each segment, worst first; delta is shared out, so that all intervals hold together."""
    segment = judge.comparison.part.patterns.segment
    if segment is None:
        return ()
    names, place = np.unique(segment, return_inverse=True)
    if len(names) > MOST_SEGMENTS:
        sizes = np.bincount(place, judge.comparison.part.patterns.interactions)
        names = names[np.sort(np.argsort(-sizes, kind="stable")[:MOST_SEGMENTS])]
    rows = [_row(str(name), judge.of(segment == name), delta / len(names)) for name in names]
    return tuple(sorted(rows, key=lambda row: row.lower))


def _traffic(judge: Judge, delta: float, seen_queries: NDArray[np.int64]) -> tuple[SegmentRow, ...]:
    """Return the improvement in queries that the training parts have, and in those that they do not have."""
    part = judge.comparison.part
    seen = np.isin(part.query, seen_queries)[part.patterns.query]
    new = float(part.patterns.interactions[~seen].sum()) / part.patterns.total_interactions
    if not NEW_QUERIES < new < 1.0:
        return ()
    named = (("queries seen in training", seen), ("new queries", ~seen))
    return tuple(_row(name, judge.of(chosen), delta / 2.0) for name, chosen in named)


def _row(name: str, judge: Judge, delta: float) -> SegmentRow:
    differences = judge.comparison.differences(judge.curves.curve, judge.limits[0])
    return SegmentRow(name, differences.interactions, differences.mean, judge.lower(delta)[0], judge.upper(delta))
