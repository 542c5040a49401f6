"""Parts of a log: against hashlib, and by time."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.logs.run_query import connect, fetch, quietly
from saferank.logs.split import HashSplit, Split, TimeSplit
from saferank.logs.split_options import parse_split, split_of


def table(**columns: Any) -> Any:
    with quietly():
        return connect().create_table("log", ibis.memtable(pa.table(columns)), temp=True)


def parts(split: Split, log: Any) -> dict[Any, int]:
    first = {"first": log["timestamp"].min()} if isinstance(split, TimeSplit) else {}
    impressions = log.group_by("impression_id").aggregate(**first, rows=log.count()).order_by("impression_id")
    rows = fetch(impressions.select("impression_id", part=split.fitted(log, "log").part(impressions))).to_pylist()
    return {row["impression_id"]: row["part"] for row in rows}


@pytest.mark.parametrize(("seed", "ids"), [(0, np.arange(4_000)), (7, np.arange(4_000).astype(str))])
def test_hash_is_that_of_hashlib(seed: int, ids: Any) -> None:
    found = parts(HashSplit((0.5, 0.3, 0.2), seed), table(impression_id=ids))
    for name, part in found.items():
        share = int(hashlib.md5(f"{seed}:{name}".encode()).hexdigest()[:13], 16) / 16**13
        assert part == (share >= 0.5) + (share >= 0.8)
    counts = np.bincount(list(found.values()), minlength=3) / 4_000
    np.testing.assert_allclose(counts, (0.5, 0.3, 0.2), atol=5 * np.sqrt(0.25 / 4_000))


@pytest.mark.parametrize("shares", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
def test_all_in_one_part(shares: tuple[float, ...]) -> None:
    assert set(parts(HashSplit(shares), table(impression_id=np.arange(500))).values()) == {shares.index(1.0)}


def test_time_of_an_impression_is_its_earliest() -> None:
    log = table(
        impression_id=["a", "a", "b", "b", "c"],
        timestamp=pa.array([5, 100, 60, 50, 200], pa.timestamp("s", "UTC")),
    )
    moments = datetime.fromtimestamp(50, UTC), datetime.fromtimestamp(51, UTC)
    assert parts(TimeSplit(boundaries=moments), log) == {"a": 0, "b": 1, "c": 2}
    assert parts(TimeSplit(boundaries=("1970-01-01T00:00:10", "1970-01-02")), log) == {"a": 0, "b": 1, "c": 1}


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("s", "UTC")])
def test_boundaries_of_other_time_zones_are_moments(kind: pa.DataType) -> None:
    """10 and 100 seconds after the epoch, as clocks two hours ahead and five behind show them."""
    log = table(impression_id=["a", "b", "c"], timestamp=pa.array([5, 50, 200], kind))
    moments = "1970-01-01T02:00:10+02:00", "1969-12-31T19:01:40-05:00"
    assert parts(TimeSplit(boundaries=moments), log) == {"a": 0, "b": 1, "c": 2}


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.int64()])
def test_time_quantiles(kind: pa.DataType) -> None:
    times = pa.array(np.arange(1_000) * 60_000).cast(kind)
    split = TimeSplit((0.6, 0.3, 0.1)).fitted(table(impression_id=np.arange(1_000), timestamp=times), "log")
    found = parts(split, table(impression_id=np.arange(1_000), timestamp=times))
    assert list(found.values()) == sorted(found.values())
    np.testing.assert_allclose(np.bincount(list(found.values())), (600, 300, 100), atol=20)
    described = split.describe()
    assert described["by"] == "time"
    assert described["shares"] == [0.6, 0.3, 0.1]
    again = TimeSplit((0.6, 0.3, 0.1), tuple(described["boundaries"]))
    assert parts(again, table(impression_id=np.arange(1_000), timestamp=times)) == found


@pytest.mark.parametrize("text", ["60/20/20", "0.6/0.2/0.2"])
def test_shares_as_text(text: str) -> None:
    assert parse_split(text, seed=3).describe() == {"by": "hash", "seed": 3, "shares": [0.6, 0.2, 0.2]}
    assert parse_split(text, by="time") == TimeSplit((0.6, 0.2, 0.2))


@pytest.mark.parametrize("by", ["hash", "query", "unit", "time"])
def test_a_manifest_describes_the_split(by: str) -> None:
    split = parse_split("50/30/20", by=by, seed=4)
    described = (TimeSplit(split.shares, (1, 2)) if by == "time" else split).describe()
    assert described["by"] == by
    assert split_of(described).describe() == described


def test_what_is_hashed_depends_on_the_units_of_the_log() -> None:
    """But a split that a manifest describes is the same with units: else what was learned from would certify."""
    log = table(impression_id=["a"])
    users = log.mutate(unit=log["impression_id"])
    assert HashSplit().fitted(log, "log").by == "impression"
    assert HashSplit().fitted(users, "log").by == "unit"
    assert HashSplit(by="query").fitted(users, "log").by == "query"
    assert split_of(HashSplit().fitted(log, "log").describe()).fitted(users, "log").by == "impression"  # type: ignore[union-attr]
    with pytest.raises(UsageError):
        HashSplit(by="unit").fitted(log, "log")


@pytest.mark.parametrize("text", ["60/40", "60/20/30", "a/b/c", "", "0/0/0", "120/-10/-10"])
def test_wrong_shares(text: str) -> None:
    with pytest.raises(UsageError, match=f"split {text}:"):
        parse_split(text)


def test_wrong_calls() -> None:
    log = table(impression_id=["a"], timestamp=pa.array([5], pa.timestamp("s")))
    wrong: list[Callable[[], object]] = [
        lambda: parse_split("60/20/20", by="luck"),
        lambda: HashSplit((0.5, 0.5)),
        lambda: HashSplit(by="document"),
        lambda: TimeSplit(boundaries=(1,)),
        lambda: TimeSplit(boundaries=("soon", "later")).fitted(log, "log"),
        lambda: TimeSplit(boundaries=("2024-01-02", "2024-01-01")).fitted(log, "log"),
    ]
    for call in wrong:
        with pytest.raises(UsageError):
            call()
    with pytest.raises(DataError):
        TimeSplit().fitted(log.drop("timestamp"), "log")
    with pytest.raises(DataError):
        split_of({"by": "hash", "shares": [0.6, 0.2, 0.2]})
