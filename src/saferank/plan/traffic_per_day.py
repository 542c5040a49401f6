"""How fast a log grows."""

from __future__ import annotations

from datetime import UTC, datetime

from saferank.logs.aggregated_log import AggregatedLog

DAY = 86_400.0
MILLISECONDS_FROM = 1e11
"""Numbers above it are milliseconds since the epoch, below it seconds."""


def logged_days(log: AggregatedLog) -> float | None:
    """Days from the first to the last moment of the log, None if it has no timestamps or one moment only."""
    period = log.manifest.get("period")
    if period is None and log.periods:
        period = (log.periods[0][0], log.periods[-1][1])
    if period is None:
        return None
    first, last = (_seconds(moment) for moment in period)
    if first is None or last is None or last <= first:
        return None
    return (last - first) / DAY


def _seconds(moment: object) -> float | None:
    try:
        number = float(str(moment))
    except ValueError:
        try:
            parsed = datetime.fromisoformat(str(moment))
        except ValueError:
            return None
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    return number / 1000.0 if number > MILLISECONDS_FROM else number
