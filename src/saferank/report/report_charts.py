"""The report's charts. A dashed line is zero, or the accepted loss."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from markupsafe import Markup

from saferank.report.chart_style import BLUE, GREEN, GREY, INK, ORANGE, RED, WIDTH, chart_svg, colour_by, inline
from saferank.report.page import signed
from saferank.verdict.certificate import Certificate, confidence
from saferank.verdict.exposure_shift import Changes

DIFFERENCE = "clicks per interaction, new minus current"
MOST_ROWS = 25
"""Of a chart with one row per segment: more cannot be read."""
GROUPS = (1, 2, 3, 5, 10, 20)
"""Last rank of each group, if more than ten ranks are drawn in groups."""


def improvement_chart(certificate: Certificate) -> Markup:
    """The estimate and its interval, on a background that is green where the new policy may be deployed."""
    low, high, limit = certificate.lower, certificate.upper, -certificate.tolerance
    pad = 0.2 * (max(high, limit) - min(low, limit)) or 0.01
    ends = [min(low, limit) - pad, max(high, limit) + pad]
    x = alt.X("from:Q", title=DIFFERENCE).scale(domain=ends, nice=False).axis(tickCount=5, grid=False)
    names = ["too much worse", "acceptable"] if certificate.tolerance else ["worse", "as good or better"]
    ground = [{"from": ends[0], "to": limit, "is": names[0]}, {"from": limit, "to": ends[1], "is": names[1]}]
    colour = colour_by("is", dict(zip(names, (RED, GREEN), strict=True)), ground)
    bar = [{"from": low, "to": high, "estimate": certificate.improvement}]
    middle = alt.Chart(inline(bar)).encode(x=x.copy())
    point = alt.Chart(inline(bar)).encode(x=alt.X("estimate:Q"))
    layers = [
        alt.Chart(inline(ground)).mark_rect(opacity=0.22).encode(x=x, x2="to:Q", color=colour),
        middle.mark_rule(color=BLUE, strokeWidth=7, strokeCap="round").encode(x2="to:Q"),
        point.mark_circle(size=200, opacity=1, color=INK),
        point.mark_text(dy=-22, fontSize=15, fontWeight="bold", color=INK).encode(
            text=alt.value(signed(certificate.improvement))
        ),
        middle.mark_text(dy=22, color=INK).encode(text=alt.value(signed(low))),
        alt.Chart(inline(bar)).mark_text(dy=22, color=INK).encode(x="to:Q", text=alt.value(signed(high))),
    ]
    return chart_svg(layers, "improvement", "The improvement", width=WIDTH + 30, height=110)


def bounds_chart(certificate: Certificate) -> Markup:
    """Every bound's interval, those without a promise in another colour."""
    rows = []
    for row in certificate.bounds:
        kind = "chosen" if row.name == certificate.bound else "holds too" if row.guarantee else "no promise"
        rows.append((row.name, row.lower, certificate.improvement, row.upper, kind))
    colours = {"chosen": BLUE, "holds too": GREY, "no promise": ORANGE}
    return _intervals(rows, colours, certificate, "bounds", "Bounds side by side")


def segments_chart(certificate: Certificate) -> Markup:
    """The interval of each segment, worst first."""
    worst = certificate.segments[:MOST_ROWS]
    rows = [(one.name, one.lower, one.improvement, one.upper, one.outcome) for one in worst]
    colours = {"gains": GREEN, "undecided": GREY, "loses": RED}
    return _intervals(rows, colours, certificate, "segments", "Improvement by segment")


def dial_chart(certificate: Certificate) -> Markup:
    """The lower bound at other confidence levels.

    The limit of the weights is chosen for each, so that the next level may by chance have a higher bound. A stricter
    one is drawn no higher than those before it; a laxer one that is lower says nothing and is left out.
    """
    limit = -certificate.tolerance
    rows, lowest = [], certificate.lower
    for delta, bound in sorted({**dict(certificate.delta_dial), certificate.delta: certificate.lower}.items())[::-1]:
        if bound is None or (delta > certificate.delta and bound < certificate.lower):
            continue
        lower = bound if delta > certificate.delta else (lowest := min(lowest, bound))
        rows.append({"sure": confidence(delta), "lower": lower, "is": "DEPLOY" if lower >= limit else "not DEPLOY"})
    colour = colour_by("is", {"DEPLOY": GREEN, "not DEPLOY": ORANGE}, rows)
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("sure:O", sort=None, title="confidence level, 1 - delta").axis(labelAngle=0),
        y=alt.Y("lower:Q", title="lower bound").scale(zero=False).axis(tickCount=5),
    )
    asked = alt.datum.sure == confidence(certificate.delta)
    layers = [
        _limit(limit, "y"),
        base.mark_line(color=GREY),
        base.mark_circle(size=110, opacity=1).encode(color=colour),
        base.mark_point(size=330, color=INK).transform_filter(asked),
        base.mark_text(dy=-19, color=INK).encode(text=alt.value("asked for")).transform_filter(asked),
    ]
    return chart_svg(layers, "dial", "Lower bound by delta")


def watch_chart(looks: Sequence[Mapping[str, Any]], tolerance: float) -> Markup:
    """Estimate and bounds, look after look."""
    base = alt.Chart(inline(looks)).encode(
        x=alt.X("interactions:Q", title="held-out interactions at the look")
        .axis(grid=False, format="~s", tickCount=6)
        .scale(zero=False)
    )
    y = alt.Y("improvement:Q", title="improvement")
    layers = [
        base.mark_area(opacity=0.22, color=BLUE).encode(y="lower:Q", y2="upper:Q"),
        _limit(-tolerance, "y"),
        base.mark_line(color=BLUE).encode(y=y),
        base.mark_circle(color=BLUE, size=50, opacity=1).encode(y=y),
    ]
    return chart_svg(layers, "watch", "The bounds over time")


def training_chart(history: Sequence[Mapping[str, Any]], best_epoch: int) -> Markup:
    """The objective that training maximised, and the validation value that chose the epoch."""
    rows: list[dict[str, Any]] = []
    for epoch in history:
        lines = {"estimate, train": epoch["estimate"], "validation": epoch["validation"]}
        if epoch["risk"]:
            lines["estimate - risk, train"] = epoch["estimate"] - epoch["risk"]
        rows += [{"epoch": epoch["epoch"], "line": name, "value": value} for name, value in lines.items()]
    colours = {"estimate, train": GREY, "estimate - risk, train": ORANGE, "validation": BLUE}
    line = alt.Chart(inline(rows)).mark_line(point=True)
    line = line.encode(
        x=alt.X("epoch:Q").axis(format="d", tickMinStep=1, grid=False).scale(nice=False),
        y=alt.Y("value:Q", title="clicks per interaction").scale(zero=False),
        color=colour_by("line", colours, rows),
    )
    best = alt.Chart(inline([{"epoch": best_epoch}])).mark_rule(color=INK, strokeDash=[2, 3]).encode(x="epoch:Q")
    return chart_svg([best, line], "training", "Training curves")


def examination_chart(examination: Sequence[float]) -> Markup:
    """The chance that each rank is examined."""
    rows = [{"rank": rank, "value": value} for rank, value in enumerate(examination, 1)]
    line = alt.Chart(inline(rows)).mark_line(point={"color": GREEN}, color=GREEN)
    line = line.encode(
        x=alt.X("rank:O").axis(labelAngle=0), y=alt.Y("value:Q", title="examination").scale(domain=[0, 1])
    )
    return chart_svg(line, "examination", "Examination by rank")


def moves_chart(changes: Changes) -> Markup:
    """Share of the documents at each rank of the log that each rank of the new policy gets."""
    cutoff = len(changes.moves) - 1
    last = list(range(1, cutoff + 1)) if cutoff <= 10 else [*(rank for rank in GROUPS if rank < cutoff), cutoff]
    first = [1, *(rank + 1 for rank in last[:-1])]
    starts = [rank - 1 for rank in first] + [cutoff]
    grouped = np.add.reduceat(np.add.reduceat(changes.moves, starts, axis=0), starts, axis=1)
    sizes = [b - a + 1 for a, b in zip(first, last, strict=True)] + [1]
    names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last, strict=True)]
    old, new = [*names, "new"], [*names, "gone"]
    rows = []
    for i, j in np.ndindex(grouped.shape):
        if (share := grouped[i, j] / sizes[i]) >= 0.005:
            kind = "stays" if i == j else "moves up" if j < i else "moves down"
            rows.append({"old": old[i], "new": new[j], "share": share, "text": f"{share:.0%}", "kind": kind})
    colours = {"moves up": GREEN, "stays": GREY, "moves down": ORANGE}
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("new:N", sort=new, title="rank under the new policy")
        .axis(labelAngle=0, orient="top")
        .scale(domain=new),
        y=alt.Y("old:N", sort=old, title="rank in the log").scale(domain=old),
    )
    cells = base.mark_rect(cornerRadius=3).encode(
        color=colour_by("kind", colours, rows).legend(columns=3),
        opacity=alt.Opacity("share:Q", legend=None).scale(type="sqrt", domain=[0, 1], range=[0.08, 0.85]),
    )
    side = min(54, (WIDTH + 20) // len(new))
    layers = [cells, base.mark_text(color=INK, fontSize=12 if side > 40 else 10).encode(text="text:N")]
    height = min(side, 36) * len(old)
    return chart_svg(layers, "moves", "Exposure moved from rank to rank", width=side * len(new), height=height)


def moved_chart(changes: Changes) -> Markup:
    """Share of the interactions by how much of their query's exposure moves."""
    steps = len(changes.interactions_by_moved)
    rows = [
        {"from": k / steps, "to": (k + 1) / steps, "share": float(s)}
        for k, s in enumerate(changes.interactions_by_moved)
    ]
    x = alt.X("from:Q", bin="binned", title="query's exposure that goes to other documents")
    bars = alt.Chart(inline(rows)).mark_bar(color=BLUE, binSpacing=2)
    bars = bars.encode(
        x=x.axis(format=".0%", grid=False), x2="to:Q", y=alt.Y("share:Q", title="interactions").axis(format=".0%")
    )
    return chart_svg(bars, "moved", "How much queries change", width=WIDTH - 20)


def _intervals(
    intervals: Sequence[tuple[object, ...]], colours: Mapping[str, str], certificate: Certificate, name: str, label: str
) -> Markup:
    """One row per interval (name, low, at, high, kind), with the estimate as a dot."""
    rows = [dict(zip(("name", "low", "at", "high", "kind"), one, strict=True)) for one in intervals]
    colour = colour_by("kind", colours, rows).legend(columns=3, symbolType="stroke", symbolStrokeWidth=5)
    base = alt.Chart(inline(rows)).encode(y=alt.Y("name:N", sort=None, title=None).axis(labelLimit=160), color=colour)
    x = alt.X("low:Q", title=DIFFERENCE).axis(tickCount=4, labelFlush=False)
    layers = [
        _limit(-certificate.tolerance, "x"),
        base.mark_rule(strokeWidth=5, strokeCap="round").encode(x=x, x2="high:Q"),
        base.mark_circle(size=90, opacity=1, color=INK).encode(x="at:Q", color=alt.value(INK)),
    ]
    # Names may be wider in the reader's font than they were measured.
    room = {"left": 24, "right": 12, "top": 5, "bottom": 5}
    return chart_svg(layers, name, label, width=WIDTH - 80, height=32 * len(rows), padding=room)


def _limit(value: float, axis: str) -> alt.Chart:
    rule = alt.Chart(inline([{"limit": value}])).mark_rule(color=INK, strokeDash=[5, 4])
    line: alt.Chart = rule.encode(**{axis: "limit:Q"})
    return line
