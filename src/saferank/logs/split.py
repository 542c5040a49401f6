"""Which part of a log an impression belongs to: train, validation or certify. Every engine decides alike."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

import ibis
import ibis.expr.types as ir

from saferank.engine.errors import DataError, UsageError
from saferank.logs.aggregated_log import PARTS
from saferank.logs.periods import periods_of
from saferank.logs.run_query import fetch_row

DEFAULT_SHARES = (0.6, 0.2, 0.2)
HASHED = ("impression", "query", "unit")
"""What a split by hash can hash."""
_DIGITS = 13
"""Hexadecimal digits of a threshold: 52 bits, all that the mantissa of a share has."""


@ibis.udf.scalar.builtin(name="md5")  # type: ignore[untyped-decorator]
def _md5(value: str) -> str:  # type: ignore[empty-body]
    """Hexadecimal digest, by the function of this name that every engine has."""


@ibis.udf.scalar.builtin(name="to_hex")  # type: ignore[untyped-decorator]
def _to_hex(value: str) -> str:  # type: ignore[empty-body]
    """BigQuery's, whose digests are bytes."""


def digest(text: ir.StringValue, engine: str) -> ir.StringValue:
    """Return the MD5 digest of a text in hexadecimal: the same on every engine."""
    return _to_hex(_md5(text)) if engine == "bigquery" else _md5(text)


@dataclass(frozen=True)
class HashSplit:
    """By the MD5 digest of `seed:id`: at random, but the same on every engine and in every run.

    The id is that of the impression, of its query or of its unit (a user or session), so that all impressions of a
    query or unit belong to one part. An impression keeps its part when the log grows. The digest, in hexadecimal, is
    compared as text.
    """

    shares: tuple[float, ...] = DEFAULT_SHARES
    seed: int = 0
    by: str | None = None
    """Whose id is hashed: impression, query or unit. None: the unit in a log with units, else the impression."""
    timed: ClassVar[bool] = False
    """Whether every impression needs a time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", checked_shares(self.shares))
        if self.by is not None and self.by not in HASHED:
            raise UsageError(f"split by the hash of {self.by}: must be {', '.join(HASHED)}.")

    def fitted(self, log: ir.Table, source: str) -> Self:  # noqa: ARG002
        """Return the split with what is hashed: that depends on whether the log has units."""
        return self.of_units("unit" in log.columns)

    def of_units(self, there: bool) -> Self:
        """Return the split of a log with or without units."""
        if self.by == "unit" and not there:
            raise UsageError("a split by unit needs the column of the user or session; name it with --unit COLUMN.")
        return replace(self, by=self.by or ("unit" if there else "impression"))

    def part(self, impression: ir.Table, engine: str = "") -> ir.IntegerValue:
        """Return the part, 0 to 2, of each row by its `impression_id`, `query` or `unit`."""
        return _part(_digest(impression, self.by, self.seed, engine), [threshold(end) for end in _ends(self.shares)])

    def describe(self) -> dict[str, Any]:
        """Return what the manifest keeps."""
        by = self.by if self.by in ("query", "unit") else "hash"
        return {"by": by, "seed": self.seed, "shares": list(self.shares)}


@dataclass(frozen=True)
class TimeSplit:
    """By time: the first impressions train, the last ones certify. An impression's time is its earliest timestamp.

    The boundaries are quantiles of the impressions' times (to the second), unless given: validation begins at the
    first, certify at the second.
    """

    shares: tuple[float, ...] = DEFAULT_SHARES
    boundaries: tuple[Any, ...] | None = None
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", checked_shares(self.shares))
        if self.boundaries is not None and len(self.boundaries) != len(PARTS) - 1:
            raise UsageError(f"got {len(self.boundaries)} time boundaries, but {len(PARTS)} parts need 2.")

    def fitted(self, log: ir.Table, source: str) -> Self:
        """Return the split with its boundaries, those of the log's quantiles if none were given."""
        _check_timestamp(log, source, "or use --split-by hash")
        boundaries = self.boundaries
        if boundaries is None:
            first = log.group_by("impression_id").aggregate(first=log["timestamp"].min())
            seconds = first.first.epoch_seconds() if first.first.type().is_timestamp() else first.first
            quantiles = {f"end_{place}": seconds.quantile(end) for place, end in enumerate(_ends(self.shares))}
            boundaries = tuple(float(value) for value in fetch_row(first.aggregate(**quantiles)).values())
        low, high = (_moment(boundary, log["timestamp"]) for boundary in boundaries)
        if high < low:
            raise UsageError(f"certify would begin at {high}, before validation at {low}; give them in order.")
        return replace(self, boundaries=(low, high))

    def part(self, impression: ir.Table, engine: str = "") -> ir.IntegerValue:  # noqa: ARG002
        """Return the part, 0 to 2, of each row by its `first` timestamp."""
        return _part(impression["first"], list(self.boundaries or ()))

    def describe(self) -> dict[str, Any]:
        """Return what the manifest keeps."""
        moments = [value.isoformat() if isinstance(value, datetime) else value for value in self.boundaries or ()]
        return {"by": "time", "shares": list(self.shares), "boundaries": moments}


@dataclass(frozen=True)
class UntilSplit:
    """For a ranker that was trained until some moment: what the log has up to it is `train`, the rest is evaluated.

    Later impressions belong to validation or certify by the MD5 digest of `seed:id`, as for `HashSplit`. An
    impression's time is its earliest timestamp.
    """

    until: datetime | float
    """A moment, or a number of the unit that the log's own timestamps have."""
    shares: tuple[float, ...] = (0.2, 0.8)
    """Of validation and certify among the later impressions."""
    seed: int = 0
    by: str | None = None
    """Whose id is hashed: impression or unit. None: the unit in a log with units, else the impression."""
    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        shares = tuple(float(share) for share in self.shares)
        if len(shares) != 2 or not (min(shares) >= 0 and shares[1] > 0 and math.isclose(sum(shares), 1.0)):
            raise UsageError(f"shares {shares} of validation and certify: certify needs a share above 0.")
        object.__setattr__(self, "shares", shares)

    def fitted(self, log: ir.Table, source: str) -> Self:
        """Return the split with the moment as a value of the log's kind of timestamp."""
        _check_timestamp(log, source, "or, if that is true, use --trained-without-held-out")
        kind, until = log["timestamp"].type(), self.until
        ends = fetch_row(log.aggregate(first=log["timestamp"].min(), last=log["timestamp"].max()))
        if kind.is_timestamp():
            if not isinstance(until, datetime):
                raise UsageError(f"trained until {until}: the log has dates; write one, such as 2026-01-31T12:00:00.")
            until = _moment(until, log["timestamp"])
        elif isinstance(until, datetime) and ends["last"] is not None:
            until = until.timestamp() * periods_of(ends["first"], ends["last"]).per_second
            until = math.floor(until) if kind.is_integer() else until
        if ends["last"] is None or ends["last"] <= until:
            raise DataError(
                f"has nothing after {until}, until which the ranker was trained; give a log that goes on after it.",
                file=source,
                column="timestamp",
            )
        return replace(self, until=until, by=HashSplit(by=self.by).of_units("unit" in log.columns).by)

    def part(self, impression: ir.Table, engine: str = "") -> ir.IntegerValue:
        """Return the part, 0 to 2, of each row by its `first` timestamp and its `impression_id` or `unit`."""
        before = impression["first"] <= self.until
        later = _digest(impression, self.by, self.seed, engine) < threshold(self.shares[0])
        return ibis.cases((before, 0), (later, 1), else_=2)

    def describe(self) -> dict[str, Any]:
        """Return what the manifest keeps."""
        until = self.until.isoformat() if isinstance(self.until, datetime) else self.until
        return {"by": "until", "until": until, "hashed": self.by, "seed": self.seed, "shares": list(self.shares)}


Split = HashSplit | TimeSplit | UntilSplit


def checked_shares(shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return the shares of the parts, or raise unless there is one for each and they add up to 1."""
    shares = tuple(float(share) for share in shares)
    if len(shares) != len(PARTS) or not all(share >= 0 for share in shares) or not math.isclose(sum(shares), 1.0):
        raise UsageError(f"shares {shares}: give one for each of {', '.join(PARTS)}, 0 or more, adding up to 1.")
    return shares


def _ends(shares: tuple[float, ...]) -> list[float]:
    """Return where each part but the last ends, as a share of the whole."""
    return [min(math.fsum(shares[: place + 1]), 1.0) for place in range(len(shares) - 1)]


def _check_timestamp(log: ir.Table, source: str, otherwise: str) -> None:
    if "timestamp" not in log.columns:
        remedy = f"name its column (--column timestamp=THEIRS), {otherwise}."
        message = f"a split by time needs timestamps, and this log has none; {remedy}"
        raise DataError(message, file=source, column="timestamp")


def _digest(impression: ir.Table, by: str | None, seed: int, engine: str) -> ir.StringValue:
    """Return the hexadecimal digest of each row's `impression_id`, `query` or `unit`."""
    name = by if by in ("query", "unit") else "impression_id"
    return digest(ibis.literal(f"{seed}:") + impression[name].cast("string"), engine)


def threshold(share: float) -> str:
    """Return the digest below which this share of all digests lies."""
    number = round(share * 16**_DIGITS)
    return f"{number:0{_DIGITS}x}" if number < 16**_DIGITS else "g"  # after every digest


def _part(value: ir.Value, ends: list[Any]) -> ir.IntegerValue:
    return ibis.cases(*((value < end, place) for place, end in enumerate(ends)), else_=len(ends))


def _moment(value: Any, timestamp: ir.Value) -> Any:
    """Return a boundary as a value of the log's kind of timestamp."""
    kind = timestamp.type()
    if not kind.is_timestamp():
        return math.ceil(value) if kind.is_integer() else float(value)
    try:
        number = isinstance(value, (int, float))
        moment = datetime.fromtimestamp(round(value), tz=UTC) if number else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise UsageError(f"boundary {value}: write a date or time such as 2024-01-25T12:00:00.") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment if kind.timezone else moment.astimezone(UTC).replace(tzinfo=None)
