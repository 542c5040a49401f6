"""What is said about changes of demand and of the ranker while the log was written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from saferank.doctor.health import Finding, Health

RANDOMISE_WITHIN = "Draw rankings at random within the day, so that documents of one day are seen at several ranks."


def time_findings(health: Health) -> Iterator[Finding]:
    """Return what changed over the periods of the log."""
    if not health.periods:
        text = "Without timestamps, whether demand or the ranker changed cannot be checked."
        yield Finding("caution", text, "Log a timestamp for each impression.", code="no-timestamps")
        return
    demand, ranker = health.demand, health.ranker
    if ranker.significant:
        text = (
            f"The ranker changed over time, most {_from(health, ranker.boundary)}: on different {_periods(health)} two "
            f"interactions of a query agree on the document at a rank less often, by {100 * ranker.size:.0f} points."
        )
        remedy = "Use the part of the log after the change, if the ranker before it is gone."
        yield Finding("caution", text, remedy, code="ranker-moved")
    if demand.significant:
        text = (
            f"Demand changed over time, most {_from(health, demand.boundary)}: click-through of a document at a rank "
            f"varies by about {demand.size:.0%} between {_periods(health)}."
        )
        remedy = "What is decided holds for the time of the log; decide again when demand has changed."
        yield Finding("caution", text, remedy, code="demand-drifts")
    if not (demand.significant or ranker.significant) and len(health.periods) > 1:
        text = (
            f"Demand and ranker stayed the same over {len(health.periods)} {_periods(health)}, as far as can be told."
        )
        yield Finding("good", text, code="steady")


def _from(health: Health, boundary: int | None) -> str:
    """Name the moment of a change: `from 2026-03-06 on`."""
    if boundary is None or boundary >= len(health.periods):
        return "in between"
    first = health.periods[boundary][0]
    try:
        moment = datetime.fromisoformat(first)
    except ValueError:
        return f"from {first} on"
    return f"from {moment:%Y-%m-%d} on" if _periods(health) == "days" else f"from {moment:%Y-%m-%d %H:%M} on"


def _periods(health: Health) -> str:
    """Name the periods: `days`, or `hours` of a short log."""
    try:
        first, last = (datetime.fromisoformat(health.periods[place][0]) for place in (0, -1))
    except (ValueError, IndexError):
        return "periods"
    each = (last - first).total_seconds() / max(len(health.periods) - 1, 1)
    return "hours" if each < 12 * 3600 else "days" if each < 36 * 3600 else "periods"
