"""The doctor's two charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saferank.report.chart_svg import BLUE, GREEN, GREY, ORANGE, chart_svg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from saferank.doctor.health import Health

COLOURS = {
    "click rate": GREY,
    "examination, harvested": BLUE,
    "examination, EM": ORANGE,
    "examination, given": GREEN,
}


def curve_chart(health: Health) -> str:
    """Click rate and examination by rank, each relative to rank 1, with the intervals of the estimates."""
    import altair as alt

    rows: list[dict[str, Any]] = []

    def add(name: str, curve: NDArray[np.float64], low: Any = None, high: Any = None) -> None:
        for rank, value in enumerate(curve):
            if np.isfinite(value):
                ends = {} if low is None else {"low": _number(low[rank]), "high": _number(high[rank])}
                rows.append({"rank": rank + 1, "curve": name, "value": float(value), **ends})

    if health.click_rate[0] > 0:
        add("click rate", health.click_rate / health.click_rate[0])
    for name, estimate in (("harvested", health.harvested), ("EM", health.em)):
        if estimate is not None:
            add(f"examination, {name}", estimate.curve, estimate.low, estimate.high)
    if health.given is not None and health.given[0] > 0:
        add("examination, given", health.given / health.given[0])
    present = [name for name in COLOURS if any(row["curve"] == name for row in rows)]
    colour = alt.Color("curve:N", sort=present, title=None).scale(domain=present, range=[COLOURS[n] for n in present])
    # A far interval is cut off: it must not flatten the curves.
    top = max([1.0, *(row["value"] for row in rows)]) * 1.15
    base = alt.Chart({"values": rows}).encode(
        x=alt.X("rank:Q", title="rank")
        .axis(values=list(range(1, health.cutoff + 1)), format="d", grid=False)
        .scale(domain=[0.7, health.cutoff + 0.3], nice=False),
        color=colour,
    )
    y = alt.Y("value:Q", title="relative to rank 1").scale(domain=[0, top], nice=False).axis(format=".1f")
    with_ends = alt.InlineData(values=[row for row in rows if row.get("low") is not None])
    band = base.mark_area(opacity=0.18, clip=True).encode(y="low:Q", y2="high:Q").properties(data=with_ends)
    line = base.mark_line(strokeWidth=2.2, clip=True).encode(y=y)
    dots = base.mark_circle(size=38, opacity=1, clip=True).encode(y=y)
    return chart_svg(alt.LayerChart(layer=[band, line, dots], width=430, height=240), "curve")


def traffic_chart(health: Health) -> str:
    """Shares of the interactions and of the queries, by how often a query was issued."""
    import altair as alt

    traffic = health.traffic
    rows = [
        {"class": one.name, "of": name, "share": count / max(total, 1)}
        for one in traffic.classes
        for name, count, total in (
            ("interactions", one.interactions, traffic.interactions),
            ("queries", one.queries, traffic.queries),
        )
    ]
    names = ["interactions", "queries"]
    chart = (
        alt.Chart({"values": rows})
        .mark_bar()
        .encode(
            x=alt.X("class:N", sort=None, title="interactions of a query").axis(labelAngle=0),
            xOffset=alt.XOffset("of:N", sort=names),
            y=alt.Y("share:Q", title="share").axis(format=".0%").scale(domain=[0, 1]),
            color=alt.Color("of:N", sort=names, title=None).scale(domain=names, range=[BLUE, GREY]),
        )
        .properties(width=320, height=240)
    )
    return chart_svg(chart, "traffic")


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
