"""Periods of a click log: calendar days or clock hours, within which later steps compare what was shown and clicked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import ibis
import ibis.expr.types as ir

HOUR, DAY = 3_600, 86_400
"""In seconds."""
FEWEST, MOST = 3, 400
"""Periods of a log, unless it is too short for as many hours."""
_PER_SECOND = ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000), (math.inf, 1_000_000_000))
"""Numeric timestamps up to the first are seconds since 1970, then milliseconds, microseconds and nanoseconds."""

EARLIEST, LATEST = 1e8, 1e10
"""Seconds since 1970 that are shown as times, of the years 1973 to 2286: other numbers are of another unit."""


@dataclass(frozen=True)
class Periods:
    """Periods of equal length, numbered from 0, of a log whose timestamps run from `first` to `last`."""

    first: Any
    """A datetime (UTC if it has no time zone), or a number since 1970."""
    last: Any
    begin: int
    """Of period 0, in seconds since 1970."""
    length: int
    """Of each period, in seconds."""
    count: int
    per_second: int = 1
    """How many units of the log's timestamps make a second."""

    def number(self, moment: ir.Value) -> ir.IntegerValue:
        """Return the period of each moment, 0 where there is none."""
        value = moment.truncate("s").epoch_seconds() if moment.type().is_timestamp() else moment
        period = (value - self.begin * self.per_second) // (self.length * self.per_second)
        return ibis.coalesce(period.cast("int32"), 0)

    def hour(self, moment: ir.Value) -> ir.IntegerValue:
        """Return the hour of the day (UTC, 0 to 23) of each moment, null where there is none."""
        value = moment.truncate("s").epoch_seconds() if moment.type().is_timestamp() else moment
        return ((value // (HOUR * self.per_second)).cast("int64") % 24).cast("int32")

    def describe(self) -> list[list[Any]]:
        """Return the first and last moment of each period, within those of the log, as ISO text or numbers."""
        begins = [self.begin + place * self.length for place in range(1, self.count)]
        first = [self.first, *map(self._moment, begins)]
        last = [*(self._moment(begin, before=True) for begin in begins), self.last]
        return [[_plain(moment) for moment in pair] for pair in zip(first, last, strict=True)]

    def _moment(self, seconds: int, *, before: bool = False) -> Any:
        """Return a moment as the log writes it, or the one just before it: to the second, or to the log's unit."""
        if not isinstance(self.first, datetime):
            return seconds * self.per_second - before
        moment = datetime.fromtimestamp(seconds, UTC) - timedelta(seconds=before)
        return moment if self.first.tzinfo else moment.replace(tzinfo=None)


def periods_of(first: Any, last: Any) -> Periods:
    """Return the periods of a log whose timestamps run from `first` to `last`.

    A period is a calendar day (UTC) if the log touches three or more of them, else a clock hour if it touches three or
    more of those, else the whole log. With more than 400 days, each period is as many whole days as needed.
    """
    if isinstance(first, datetime):
        numbers = [(moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() for moment in (first, last)]
        per_second = 1
    elif math.isfinite(first) and math.isfinite(last):
        numbers = [first, last]
        per_second = next(unit for most, unit in _PER_SECOND if max(abs(first), abs(last)) <= most)
    else:
        return Periods(first, last, 0, DAY, 1)
    low, high = (math.floor(number / per_second) for number in numbers)
    for length in (DAY, HOUR):
        begin = low // length * length
        count = (high - begin) // length + 1
        if count >= FEWEST:
            length *= math.ceil(count / MOST)
            return Periods(first, last, begin, length, (high - begin) // length + 1, per_second)
    return Periods(first, last, low, high - low + 1, 1, per_second)


def seconds_of(moment: Any) -> float | None:
    """Return a moment of a manifest in seconds since 1970: ISO text, or a number of s, ms, µs or ns; else None."""
    try:
        number = float(moment)  # before ISO text: as that, 1612110512345 is a moment of the year 1612
    except (TypeError, ValueError):
        try:
            parsed = datetime.fromisoformat(str(moment))
        except ValueError:
            return None
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    return None if math.isnan(number) else number / next(unit for most, unit in _PER_SECOND if abs(number) <= most)


def datetime_of(moment: Any) -> datetime | None:
    """Return a moment of a manifest as a time, in UTC if it is a number; None if it is no time."""
    try:
        float(moment)
    except (TypeError, ValueError):
        try:
            return datetime.fromisoformat(str(moment))
        except ValueError:
            return None
    seconds = seconds_of(moment)
    if seconds is None or not EARLIEST <= seconds <= LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def moment_text(moment: Any) -> str:
    """Return a moment of a manifest as ISO text if it is a time, else as it is."""
    time = datetime_of(moment)
    return str(moment) if time is None else time.isoformat()


def span_of(period: Sequence[Any] | None) -> tuple[float, float] | None:
    """Return the first and last moment of a manifest's `period` in seconds since 1970; None if one is unknown."""
    first, last = map(seconds_of, period or (None, None))
    return None if first is None or last is None else (first, last)


def _plain(moment: Any) -> Any:
    """Return what JSON can hold."""
    if isinstance(moment, datetime):
        return moment.isoformat()
    return moment if isinstance(moment, int) else float(moment)
