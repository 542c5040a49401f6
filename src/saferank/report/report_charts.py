"""The report's charts. Each fits the width of a phone; a dashed line is zero, or the loss that is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from saferank.report.chart_svg import BLUE, GREEN, GREY, INK, ORANGE, RED, chart_svg
from saferank.verdict.certificate import Certificate, SegmentRow, confidence

if TYPE_CHECKING:
    import altair as alt

    from saferank.verdict.exposure_shift import Changes

DIFFERENCE = "clicks per interaction, new minus old"
WIDTH, HEIGHT = 350, 190
MOST_ROWS = 25
"""Of a chart with a row a name: more cannot be read."""
CHOSEN, HOLDS, NO_PROMISE = "chosen", "holds too", "no promise"
GAINS, LOSES, OPEN = "gains", "loses", "open"
UP, STAYS, DOWN = "moves up", "stays", "moves down"
GROUPS = (1, 2, 3, 5, 10, 20)
"""Last ranks of the groups in which more than ten ranks are drawn."""


def improvement_chart(certificate: Certificate) -> str:
    """The estimate and its interval, on a ground that is green where the new policy may go live."""
    import altair as alt

    low, high, limit = certificate.lower, certificate.upper, -certificate.tolerance
    pad = 0.2 * (max(high, limit) - min(low, limit)) or 0.01
    ends = [min(low, limit) - pad, max(high, limit) + pad]
    x = alt.X("from:Q", title=DIFFERENCE).scale(domain=ends, nice=False).axis(tickCount=5, grid=False)
    names = ["too much worse", "acceptable"] if certificate.tolerance else ["worse", "as good or better"]
    ground = [{"from": ends[0], "to": limit, "is": names[0]}, {"from": limit, "to": ends[1], "is": names[1]}]
    colour = alt.Color("is:N", title=None, sort=names).scale(domain=names, range=[RED, GREEN])
    bar = [{"from": low, "to": high, "estimate": certificate.improvement}]
    middle = alt.Chart(_data(bar)).encode(x=x.copy())
    point = alt.Chart(_data(bar)).encode(x=alt.X("estimate:Q"))
    layers = [
        alt.Chart(_data(ground)).mark_rect(opacity=0.22).encode(x=x, x2="to:Q", color=colour),
        middle.mark_rule(color=BLUE, strokeWidth=7, strokeCap="round").encode(x2="to:Q"),
        point.mark_circle(size=200, opacity=1, color=INK),
        point.mark_text(dy=-22, fontSize=15, fontWeight="bold", color=INK).encode(
            text=alt.value(_signed(bar, "estimate"))
        ),
        middle.mark_text(dy=22, color=INK).encode(text=alt.value(_signed(bar, "from"))),
        alt.Chart(_data(bar)).mark_text(dy=22, color=INK).encode(x="to:Q", text=alt.value(_signed(bar, "to"))),
    ]
    return chart_svg(alt.LayerChart(layer=layers, width=WIDTH + 30, height=110), "improvement", "The improvement")


def bounds_chart(certificate: Certificate) -> str:
    """Every bound's interval, those without promise set apart."""
    rows = [
        {
            "name": row.name,
            "low": row.lower,
            "high": row.upper,
            "kind": CHOSEN if row.name == certificate.bound else HOLDS if row.guarantee else NO_PROMISE,
        }
        for row in certificate.bounds
    ]
    colours = {CHOSEN: BLUE, HOLDS: GREY, NO_PROMISE: ORANGE}
    return _intervals(rows, colours, certificate, "bounds", "Bounds side by side", middle=certificate.improvement)


def segments_chart(certificate: Certificate) -> str:
    """The interval of each segment, worst first."""
    rows = [
        {"name": row.segment or "(none)", "low": row.lower, "high": row.upper, "at": row.improvement, "kind": lot(row)}
        for row in certificate.segments[:MOST_ROWS]
    ]
    return _intervals(rows, {GAINS: GREEN, OPEN: GREY, LOSES: RED}, certificate, "segments", "Improvement by segment")


def lot(row: SegmentRow) -> str:
    """Whether the segment surely gains or loses, or that is open."""
    return LOSES if row.upper < 0 else GAINS if row.lower > 0 else OPEN


def dial_chart(certificate: Certificate) -> str:
    """The lower bound by how sure one wants to be."""
    import altair as alt

    limit = -certificate.tolerance
    dial = {**dict(certificate.delta_dial), certificate.delta: certificate.lower}
    rows = [
        {"sure": confidence(delta), "lower": lower, "is": "DEPLOY" if lower >= limit else "not DEPLOY"}
        for delta, lower in sorted(dial.items(), reverse=True)
        if lower is not None
    ]
    present = [name for name in ("DEPLOY", "not DEPLOY") if any(row["is"] == name for row in rows)]
    colour = alt.Color("is:N", title=None, sort=present).scale(
        domain=present, range=[GREEN if name == "DEPLOY" else ORANGE for name in present]
    )
    base = alt.Chart(_data(rows)).encode(
        x=alt.X("sure:O", sort=None, title="how sure one wants to be: 1 - delta").axis(labelAngle=0),
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
    return chart_svg(alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT), "dial", "Lower bound by delta")


def watch_chart(looks: Sequence[Mapping[str, Any]], tolerance: float) -> str:
    """Estimate and bounds, look after look."""
    import altair as alt

    base = alt.Chart(_data(looks)).encode(
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
    return chart_svg(alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT), "watch", "The bounds over time")


def training_chart(history: Sequence[Mapping[str, Any]], best_epoch: int) -> str:
    """What training climbed, and what chose the epoch."""
    import altair as alt

    rows: list[dict[str, Any]] = []
    for epoch in history:
        lines = {"estimate, train": epoch["estimate"], "validation": epoch["validation"]}
        if epoch["risk"]:
            lines["estimate - risk, train"] = epoch["estimate"] - epoch["risk"]
        rows += [{"epoch": epoch["epoch"], "line": name, "value": value} for name, value in lines.items()]
    colours = {"estimate, train": GREY, "estimate - risk, train": ORANGE, "validation": BLUE}
    present = {name: colour for name, colour in colours.items() if any(row["line"] == name for row in rows)}
    colour = alt.Color("line:N", title=None, sort=list(present)).scale(
        domain=list(present), range=list(present.values())
    )
    line = (
        alt.Chart(_data(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("epoch:Q").axis(format="d", tickMinStep=1, grid=False).scale(nice=False),
            y=alt.Y("value:Q", title="clicks per interaction").scale(zero=False),
            color=colour,
        )
    )
    best = alt.Chart(_data([{"epoch": best_epoch}])).mark_rule(color=INK, strokeDash=[2, 3]).encode(x="epoch:Q")
    return chart_svg(alt.LayerChart(layer=[best, line], width=WIDTH, height=HEIGHT), "training", "Training curves")


def examination_chart(examination: Sequence[float]) -> str:
    """The chance that each rank is looked at."""
    import altair as alt

    rows = [{"rank": rank, "value": value} for rank, value in enumerate(examination, 1)]
    chart = (
        alt.Chart(_data(rows))
        .mark_line(point={"color": GREEN}, color=GREEN)
        .encode(x=alt.X("rank:O").axis(labelAngle=0), y=alt.Y("value:Q", title="looked at").scale(domain=[0, 1]))
    )
    return chart_svg(chart.properties(width=WIDTH, height=HEIGHT), "examination", "Examination by rank")


def moves_chart(changes: Changes) -> str:
    """From which rank of the log to which rank of the new policy: the share of what stood there."""
    import altair as alt
    import numpy as np

    cutoff = len(changes.moves) - 1
    last = list(range(1, cutoff + 1)) if cutoff <= 10 else [*(rank for rank in GROUPS if rank < cutoff), cutoff]
    first = [1, *(rank + 1 for rank in last[:-1])]
    starts = [rank - 1 for rank in first] + [cutoff]
    grouped = np.add.reduceat(np.add.reduceat(changes.moves, starts, axis=0), starts, axis=1)
    sizes = [b - a + 1 for a, b in zip(first, last, strict=True)] + [1]
    names = [str(a) if a == b else f"{a}-{b}" for a, b in zip(first, last, strict=True)]
    old, new = [*names, "new"], [*names, "gone"]
    rows = [
        {
            "old": old[i],
            "new": new[j],
            "share": share,
            "text": f"{share:.0%}",
            "kind": STAYS if i == j else UP if j < i else DOWN,
        }
        for i, size in enumerate(sizes)
        for j in range(len(sizes))
        if (share := grouped[i, j] / size) >= 0.005
    ]
    kinds = {UP: GREEN, STAYS: GREY, DOWN: ORANGE}
    base = alt.Chart(_data(rows)).encode(
        x=alt.X("new:N", sort=new, title="rank under the new policy")
        .axis(labelAngle=0, orient="top")
        .scale(domain=new),
        y=alt.Y("old:N", sort=old, title="rank in the log").scale(domain=old),
    )
    cells = base.mark_rect(cornerRadius=3).encode(
        color=alt.Color("kind:N", title=None, sort=list(kinds))
        .scale(domain=list(kinds), range=list(kinds.values()))
        .legend(columns=3),
        opacity=alt.Opacity("share:Q", legend=None).scale(type="sqrt", domain=[0, 1], range=[0.08, 0.85]),
    )
    side = min(54, (WIDTH + 20) // len(new))
    layers = [cells, base.mark_text(color=INK, fontSize=12 if side > 40 else 10).encode(text="text:N")]
    chart = alt.LayerChart(layer=layers, width=side * len(new), height=min(side, 36) * len(old))
    return chart_svg(chart, "moves", "Exposure moved from rank to rank")


def moved_chart(changes: Changes) -> str:
    """How many interactions see how much of their exposure move."""
    import altair as alt

    steps = len(changes.interactions_by_moved)
    rows = [
        {"from": k / steps, "to": (k + 1) / steps, "share": float(s)}
        for k, s in enumerate(changes.interactions_by_moved)
    ]
    chart = (
        alt.Chart(_data(rows))
        .mark_bar(color=BLUE, binSpacing=2)
        .encode(
            x=alt.X("from:Q", bin="binned", title="of the query's exposure goes to other documents").axis(
                format=".0%", grid=False
            ),
            x2="to:Q",
            y=alt.Y("share:Q", title="interactions").axis(format=".0%"),
        )
    )
    return chart_svg(chart.properties(width=WIDTH - 20, height=HEIGHT), "moved", "How much queries change")


def _intervals(
    rows: list[dict[str, Any]],
    colours: Mapping[str, str],
    certificate: Certificate,
    name: str,
    label: str,
    middle: float | None = None,
) -> str:
    """A row a name: its interval, with the estimate as a dot."""
    import altair as alt

    present = {kind: colour for kind, colour in colours.items() if any(row["kind"] == kind for row in rows)}
    colour = alt.Color("kind:N", title=None, sort=list(present)).scale(
        domain=list(present), range=list(present.values())
    )
    colour = colour.legend(columns=3, symbolType="stroke", symbolStrokeWidth=5)
    at = [row if middle is None else row | {"at": middle} for row in rows]
    base = alt.Chart(_data(at)).encode(y=alt.Y("name:N", sort=None, title=None).axis(labelLimit=160), color=colour)
    x = alt.X("low:Q", title=DIFFERENCE).axis(tickCount=4, labelFlush=False)
    layers = [
        _limit(-certificate.tolerance, "x"),
        base.mark_rule(strokeWidth=5, strokeCap="round").encode(x=x, x2="high:Q"),
        base.mark_circle(size=90, opacity=1, color=INK).encode(x="at:Q", color=alt.value(INK)),
    ]
    # Names may be wider in the reader's font than they were measured.
    room = {"left": 24, "right": 12, "top": 5, "bottom": 5}
    chart = alt.LayerChart(layer=layers, width=WIDTH - 80, height=32 * len(rows), padding=room)
    return chart_svg(chart, name, label)


def _limit(value: float, axis: str) -> alt.Chart:
    import altair as alt

    rule = alt.Chart(_data([{"limit": value}])).mark_rule(color=INK, strokeDash=[5, 4])
    line: alt.Chart = rule.encode(x="limit:Q") if axis == "x" else rule.encode(y="limit:Q")
    return line


def _data(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    import altair as alt

    return alt.InlineData(values=[dict(row) for row in rows])


def _signed(rows: Sequence[Mapping[str, float]], name: str) -> str:
    return f"{rows[0][name]:+.5f}"
