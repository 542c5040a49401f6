"""plan.html: what randomness costs and how soon it pays."""

from __future__ import annotations

import math

from saferank.plan.plan import MOST_DAYS, Plan, Way, assumptions, percent, recommendation, takes, whole
from saferank.report.page import render
from saferank.report.plan_chart import cost_chart


def plan_page(plan: Plan) -> str:
    """The page as HTML; without a chart if no way would certify a gain."""
    unit = "interactions" if plan.per_day is None else "days"
    gains = [f"{need.gain:.0%}" for need in plan.ways[0].needs]
    everything = [] if plan.per_day is None else [f"all {gain}" for gain in gains]
    feasible = any(need.feasible for way in plan.ways if way.random for need in way.needs)
    return render(
        "plan.html",
        plan=plan,
        recommendation=recommendation(plan),
        unit=unit,
        chart=cost_chart(plan) if feasible else None,
        heading=["rankings", "moved", "lost", "at most", *(f"{unit} {gain}" for gain in gains), *everything],
        rows=[(way, _row(way)) for way in plan.ways],
        assumptions=[*assumptions(plan), *plan.notes],
    )


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
