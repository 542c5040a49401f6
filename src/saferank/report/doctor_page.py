"""doctor.html: the health of a log, with its two charts."""

import math
from typing import Any

import altair as alt
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from saferank.doctor.health import Health
from saferank.report.chart_style import BLUE, GREEN, GREY, ORANGE, chart_svg, colour_by, inline
from saferank.report.page import render

CURVES = {
    "click-through": GREY,
    "examination, harvested": BLUE,
    "examination, EM": ORANGE,
    "examination, given": GREEN,
}


def doctor_page(health: Health) -> str:
    """The page as HTML."""
    return render("doctor.html", inf=math.inf, health=health, curve_chart=curve_chart, traffic_chart=traffic_chart)


def curve_chart(health: Health) -> Markup:
    """Click-through and examination by rank, each relative to rank 1, with the intervals of the estimates."""
    rows: list[dict[str, Any]] = []

    def add(name: str, curve: NDArray[np.float64], **ends: NDArray[np.float64]) -> None:
        for rank, value in enumerate(curve):
            if np.isfinite(value):
                at = {end: float(of[rank]) if np.isfinite(of[rank]) else None for end, of in ends.items()}
                rows.append({"rank": rank + 1, "curve": name, "value": float(value), **at})

    if health.click_rate[0] > 0:
        add("click-through", health.click_rate / health.click_rate[0])
    for name, estimate in (("harvested", health.harvested), ("EM", health.em)):
        if estimate is not None:
            add(f"examination, {name}", estimate.curve, low=estimate.low, high=estimate.high)
    if health.given is not None and health.given[0] > 0:
        add("examination, given", health.given / health.given[0])
    # A far interval is cut off: it must not flatten the curves.
    top = max([1.0, *(row["value"] for row in rows)]) * 1.15
    base = alt.Chart(inline(rows)).encode(
        x=alt.X("rank:Q", title="rank")
        .axis(values=list(range(1, health.cutoff + 1)), format="d", grid=False)
        .scale(domain=[0.7, health.cutoff + 0.3], nice=False),
        color=colour_by("curve", CURVES, rows),
    )
    y = alt.Y("value:Q", title="relative to rank 1").scale(domain=[0, top], nice=False).axis(format=".1f")
    with_ends = inline(row for row in rows if row.get("low") is not None)
    band = base.mark_area(opacity=0.18, clip=True).encode(y="low:Q", y2="high:Q").properties(data=with_ends)
    line = base.mark_line(strokeWidth=2.2, clip=True).encode(y=y)
    dots = base.mark_circle(size=38, opacity=1, clip=True).encode(y=y)
    return chart_svg([band, line, dots], "curve", "Click-through and examination by rank", width=430, height=240)


def traffic_chart(health: Health) -> Markup:
    """Shares of the interactions and of the queries, by how often a query was issued."""
    traffic = health.traffic
    colours = {"interactions": BLUE, "queries": GREY}
    rows = [
        {"class": one.name, "of": name, "share": getattr(one, name) / max(getattr(traffic, name), 1)}
        for one in traffic.classes
        for name in colours
    ]
    bars = alt.Chart(inline(rows)).mark_bar()
    bars = bars.encode(
        x=alt.X("class:N", sort=None, title="interactions per query").axis(labelAngle=0),
        xOffset=alt.XOffset("of:N", sort=list(colours)),
        y=alt.Y("share:Q", title="share").axis(format=".0%").scale(domain=[0, 1]),
        color=colour_by("of", colours, rows),
    )
    return chart_svg(bars, "traffic", "Interactions and queries by traffic", width=320, height=240)
