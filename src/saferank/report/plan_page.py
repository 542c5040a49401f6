"""plan.html: what randomness costs and how soon it pays, on one page that needs no network and no script."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank import __version__
from saferank.plan.plan import MOST_DAYS, assumptions, percent, recommendation, takes, whole
from saferank.report.chart_svg import BLUE, GREEN, GREY, ORANGE, chart_svg
from saferank.report.page import figure, finding, items, page, table, tiles, write_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from saferank.plan.plan import Plan, Way

COLOURS = (ORANGE, BLUE, GREEN)
"""Of the gains, the smallest first."""
LEAST_COST = 1e-3
"""Costs below it are drawn here: the axis is logarithmic."""
STEPS = (1, 2, 5)
"""Of a decade: where an axis has its ticks."""


def plan_page(plan: Plan) -> str:
    """Return the page."""
    chosen = plan.recommended
    body = [
        "<h1>How much randomness, at what cost, for how long</h1>",
        f'<p class="soft source">{escape(plan.source)}. Top {plan.cutoff} ranks.</p>',
        finding("caution" if chosen is None else "good", recommendation(plan), word="plan"),
        tiles(_tiles(plan)),
        *_picture(plan),
        "<h2>All ways that were considered</h2>",
        table(*_ways(plan), kinds=["chosen" if way is chosen else "" for way in plan.ways]),
        "<h2>What it rests on</h2>",
        items((*assumptions(plan), *plan.notes)),
        f'<p class="soft">Made by saferank {__version__}. Moved: share of the exposure that goes to other documents '
        "than in the ranking by score. Lost: share of the clicks, against the log as it is; at most: with "
        f"{plan.cost_confidence:.0%} confidence, as if documents that the log never shows were never clicked. "
        f"Days: with {plan.held_out_share:.0%} of the log held out; all: with the whole log held out, for a "
        "candidate made elsewhere. To draw with temperature T: add -T log(-log(u)) to each score, with u uniform "
        "between 0 and 1, and sort.</p>",
    ]
    return page("saferank plan", body, style="tr.chosen td { font-weight: 600; color: var(--good); }")


def _picture(plan: Plan) -> Iterable[str]:
    """Yield the chart, unless there is no point to draw."""
    if any(need.feasible for way in plan.ways if way.random for need in way.needs):
        unit = "interactions" if plan.per_day is None else "days"
        yield figure(
            cost_chart(plan),
            f"What logging costs at most, against the {unit} until a gain is certified: the further down and to the "
            "left, the better. Circles: temperatures; squares: swaps of neighbouring ranks; ring: recommended. The "
            "dashed line is the accepted cost; what never certifies the gain has no point.",
        )


def write_plan_page(plan: Plan, path: str | Path) -> None:
    """Write the page atomically."""
    write_page(plan_page(plan), path)


def cost_chart(plan: Plan) -> str:
    """Cost at most against the days (or interactions) until each gain is certified."""
    import altair as alt

    names = [f"gain of {need.gain:.0%}" for need in plan.ways[0].needs]
    chosen = plan.recommended
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
    across, up = (
        _ticks([row[name] for row in rows] + more) for name, more in (("cost", [plan.most_cost]), ("takes", []))
    )
    x = alt.X("cost:Q", title="clicks lost, at most").axis(format="~%", values=across).scale(**_logarithmic(across))
    title, digits = ("held-out interactions", "~s") if plan.per_day is None else ("days of logging", "~g")
    y = alt.Y("takes:Q", title=title).axis(format=digits, values=up).scale(**_logarithmic(up))
    colour = alt.Color("gain:N", sort=names, title=None).scale(domain=names, range=list(COLOURS[: len(names)]))
    colour = colour.legend(columns=len(names))

    def layer(kept: list[dict[str, Any]]) -> alt.Chart:
        return alt.Chart(alt.InlineData(values=kept)).encode(x=x, y=y, color=colour)

    heated = [row for row in rows if row["kind"] == "temperature"]
    swapped = [row for row in rows if row["kind"] == "swap"]
    labelled = [row for row in heated if row["gain"] == names[min(1, len(names) - 1)]]
    limit = alt.Chart(alt.InlineData(values=[{"cost": max(plan.most_cost, LEAST_COST)}]))
    layers = [
        limit.mark_rule(strokeDash=[5, 4], color=GREY).encode(x=x),
        layer(heated).mark_line(strokeWidth=2).encode(order="amount:Q"),
        layer(heated).mark_point(filled=True, size=60, opacity=1),
        layer(swapped).mark_point(filled=True, shape="square", size=60, opacity=1),
        layer([row for row in rows if row["chosen"]]).mark_point(size=260, strokeWidth=2, opacity=1),
        layer(labelled).mark_text(dx=9, dy=-8, align="left", fontSize=11).encode(text="label:N"),
    ]
    label = "Cost of logging at most against the time until a gain is certified, by temperature"
    return chart_svg(alt.LayerChart(layer=layers, width=720, height=330), "cost", label)


def _logarithmic(ticks: list[float]) -> dict[str, Any]:
    return {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False}


def _ticks(values: list[float]) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, from below the smallest value to above the largest."""
    values = [max(value, LEAST_COST) for value in values]
    low, high = math.floor(math.log10(min(values))) - 1, math.ceil(math.log10(max(values))) + 1
    steps = [float(f"{step}e{power}") for power in range(low, high + 1) for step in STEPS]
    first = max(place for place, step in enumerate(steps) if step < min(values))
    last = min(place for place, step in enumerate(steps) if step > max(values))
    return steps[first : last + 1]


def _tiles(plan: Plan) -> Iterable[tuple[str, str]]:
    yield f"{plan.interactions:,}", "interactions in the log"
    if plan.per_day is not None:
        yield f"{plan.per_day:,.0f}", "interactions per day"
    yield f"{plan.click_rate:.3f}", "clicks per interaction"
    if plan.recommended is not None:
        yield plan.recommended.name, "recommended"
        yield f"{max(plan.recommended.relative_cost_at_most, 0.0):.2%}", "of the clicks lost, at most"


def _ways(plan: Plan) -> tuple[list[str], list[list[str]]]:
    gains = [f"{need.gain:.0%}" for need in plan.ways[0].needs]
    heading = [f"{'interactions' if plan.per_day is None else 'days'} {gain}" for gain in gains]
    if plan.per_day is not None:
        heading += [f"all {gain}" for gain in gains]
    return ["rankings", "moved", "lost", "at most", *heading], [_row(way) for way in plan.ways]


def _row(way: Way) -> list[str]:
    costs = (percent(cost, 2) for cost in (way.relative_cost, way.relative_cost_at_most))
    alone = (need.days_all for need in way.needs if need.days_all is not None)
    return [
        way.name,
        percent(way.moved, 1),
        *costs,
        *map(takes, way.needs),
        *(whole(days) if not MOST_DAYS < days < math.inf else "> 10 years" for days in alone),
    ]
