"""Splits as users and manifests write them."""

import math
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from saferank.engine.errors import DataError, UsageError
from saferank.logs.aggregated_log import PARTS
from saferank.logs.split import HashSplit, Split, TimeSplit, UntilSplit, checked_shares


def split_of(described: dict[str, Any]) -> Split:
    """Return the split that a manifest describes: what `describe` returned."""
    try:
        shares = tuple(described["shares"])
        if described["by"] == "time":
            return TimeSplit(shares, tuple(described["boundaries"]))
        if described["by"] == "until":
            return UntilSplit(parse_until(described["until"]), shares, int(described["seed"]), described["hashed"])
        by = "impression" if described["by"] == "hash" else described["by"]  # even of a log that has units now
        return HashSplit(shares, int(described["seed"]), by)
    except (KeyError, TypeError) as error:
        raise DataError(f"the manifest describes no split ({error!r}).") from error


def parse_split(text: str, *, by: str = "hash", seed: int = 0) -> Split:
    """Return the split that a text such as `60/20/20` asks for: shares of train, validation and certify.

    `by`: hash (of the unit in a log with units, else of the impression), query, unit or time.

    >>> parse_split("80/10/10").shares
    (0.8, 0.1, 0.1)
    """
    if by not in ("hash", "time", "query", "unit"):
        raise UsageError(f"split by {by}: must be hash, time, query or unit.")
    try:
        numbers = [float(share) for share in text.split("/")]
        total = sum(numbers)
        if not (math.isclose(total, 1.0) or math.isclose(total, 100.0)):
            raise ValueError
        shares = checked_shares(tuple(number / total for number in numbers))
    except ValueError as error:
        message = f"split {text}: write the shares of {', '.join(PARTS)} in percent, such as 60/20/20."
        raise UsageError(message) from error
    return TimeSplit(shares) if by == "time" else HashSplit(shares, seed, None if by == "hash" else by)


def parse_until(moment: str | float | date) -> datetime | float:
    """Return the moment until which a ranker was trained; without a time zone it is UTC, a date is the end of its day.

    A number is in the unit of the log's own timestamps.

    >>> parse_until("2026-01-31").isoformat()
    '2026-01-31T23:59:59.999999+00:00'
    """
    try:
        if isinstance(moment, str):
            text = moment.strip()
            try:
                moment = float(text)
            except ValueError:
                only_date = len(text) <= len("2026-01-31")
                moment = date.fromisoformat(text) if only_date else datetime.fromisoformat(text)
        if isinstance(moment, (int, float)):
            if not math.isfinite(moment):
                raise ValueError
            return moment
        if not isinstance(moment, datetime):
            moment = datetime.combine(moment, time.min) + timedelta(days=1, microseconds=-1)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        message = f"trained until {moment}: write a date or a time, such as 2026-01-31 or 2026-01-31T12:00:00+01:00."
        raise UsageError(message) from error


def until_split(moment: str | float | date, split: Split | None) -> UntilSplit:
    """Return the split for a ranker trained until a moment; of `split`, validation and certify share what is later."""
    until = parse_until(moment)
    if split is None:
        return UntilSplit(until)
    if not isinstance(split, HashSplit) or split.by == "query":
        raise UsageError("with --trained-until, the log is split by impression or unit; leave --split-by out.")
    _, *later = split.shares
    if not sum(later):
        raise UsageError("the split leaves nothing to certify on; give shares such as 60/20/20.")
    return UntilSplit(until, tuple(share / sum(later) for share in later), split.seed, split.by)
