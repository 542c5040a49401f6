"""plan.html: what randomness costs and how soon it pays."""

from typing import Any

import altair as alt
from markupsafe import Markup

from saferank.plan.plan import Plan, assumptions, recommendation
from saferank.report.chart_style import BLUE, GREEN, GREY, ORANGE, chart_svg, colour_by, inline
from saferank.report.page import render

COLOURS = (ORANGE, BLUE, GREEN)
"""Of the gains, the smallest first."""
LEAST_COST = 1e-3
"""Lower costs are drawn here: the axis is logarithmic."""
LOGARITHMIC: dict[str, Any] = {"type": "log", "nice": False, "padding": 24}
"""A scale with room, in pixels, around what is drawn."""


def plan_page(plan: Plan) -> str:
    """The page as HTML; without a chart if no way would certify a gain."""
    gains = [f"{need.gain:.0%}" for need in plan.ways[0].needs]
    times = [f"{name} {gain}" for name in (plan.unit, *(["all"] if plan.per_day else [])) for gain in gains]
    return render(
        "plan.html",
        plan=plan,
        heading=["rankings", "moved", "lost", "at most", *times],
        recommendation=recommendation(plan),
        chart=cost_chart(plan),
        assumptions=[*assumptions(plan), *plan.notes],
    )


def cost_chart(plan: Plan) -> Markup | None:
    """Upper limit of the cost against the days (or interactions) until each gain is certified; None if none is."""
    names = [f"gain of {need.gain:.0%}" for need in plan.ways[0].needs]
    chosen = plan.advised
    rows: list[dict[str, Any]] = [
        {
            "gain": name,
            "cost": max(way.relative_cost_at_most, LEAST_COST),
            "amount": way.amount,
            "takes": need.taken,
            "kind": way.kind,
            "label": way.name,
            "chosen": way is chosen,
        }
        for way in plan.ways
        if way.random
        for name, need in zip(names, way.needs, strict=True)
        if need.feasible
    ]
    if not rows:
        return None
    title, digits = ("held-out interactions", "~s") if plan.per_day is None else ("days of logging", "~g")
    x = alt.X("cost:Q", title="clicks lost, at most").axis(format="~%", tickCount=5).scale(**LOGARITHMIC)
    y = alt.Y("takes:Q", title=title).axis(format=digits, tickCount=5).scale(**LOGARITHMIC)
    colour = colour_by("gain", dict(zip(names, COLOURS, strict=False)), rows).legend(columns=len(names))

    def layer(kept: list[dict[str, Any]]) -> alt.Chart:
        return alt.Chart(inline(kept)).encode(x=x, y=y, color=colour)

    heated = [row for row in rows if row["kind"] == "temperature"]
    swapped = [row for row in rows if row["kind"] == "swap"]
    labelled = [row for row in heated if row["gain"] == names[min(1, len(names) - 1)]]
    limit = alt.Chart(inline([{"cost": max(plan.most_cost, LEAST_COST)}]))
    layers = [
        limit.mark_rule(strokeDash=[5, 4], color=GREY).encode(x=x),
        layer(heated).mark_line(strokeWidth=2).encode(order="amount:Q"),
        layer(heated).mark_point(filled=True, size=60, opacity=1),
        layer(swapped).mark_point(filled=True, shape="square", size=60, opacity=1),
        layer([row for row in rows if row["chosen"]]).mark_point(size=260, strokeWidth=2, opacity=1),
        layer(labelled).mark_text(dx=9, dy=-8, align="left", fontSize=11).encode(text="label:N"),
    ]
    label = "Upper limit of the cost of logging, against the time until a gain is certified"
    return chart_svg(layers, "cost", label, width=480, height=300)
