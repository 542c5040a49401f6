"""Periods: against the calendar of Python, in the engine and in the manifest."""

from datetime import UTC, datetime, timedelta
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

from saferank.logs.periods import Periods, moment_text, periods_of
from saferank.logs.run_query import connect, fetch, quietly

BEGIN = datetime(2024, 2, 27, 22, 30, 0, 700_000, UTC)


def numbers(periods: Periods, times: pa.Array) -> list[int]:
    with quietly():
        table = connect().create_table("log", ibis.memtable(pa.table({"t": times})), temp=True)
    found = fetch(table.select(t=table["t"], period=periods.number(table["t"])).order_by("t"))
    return list(found["period"].to_pylist())


def as_kind(moments: list[datetime], kind: pa.DataType) -> tuple[pa.Array, Any, Any]:
    """The moments as a column of a log, and the first and last of them as a query would return these."""
    if pa.types.is_timestamp(kind):
        column = pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", kind.tz))
    else:
        unit = 1 if kind == pa.float64() else 1_000
        column = pa.array([moment.timestamp() * unit for moment in moments], pa.float64()).cast(kind, safe=False)
    return column, column[0].as_py(), column[-1].as_py()


@pytest.mark.parametrize(
    ("kind", "hours", "words"),
    [
        (pa.timestamp("us", "UTC"), 24 * 40, "%Y-%m-%d"),
        (pa.timestamp("us"), 24 * 2 + 1, "%Y-%m-%d"),
        (pa.int64(), 20, "%Y-%m-%d %H"),
        (pa.float64(), 24 * 40, "%Y-%m-%d"),
        (pa.timestamp("us"), 1.6, "%Y-%m-%d %H"),
    ],
)
def test_days_and_hours_are_those_of_the_calendar(kind: pa.DataType, hours: float, words: str) -> None:
    """Fractions of a second and leap days included. Numbers are milliseconds, or seconds if they have decimals."""
    rng = np.random.default_rng(0)
    moments = sorted(BEGIN + timedelta(hours=float(share) * hours) for share in (0, *rng.random(200), 1))
    column, first, last = as_kind(moments, kind)
    periods = periods_of(first, last)
    found = numbers(periods, column)
    begins: dict[str, int] = {}
    step = timedelta(days=1) if words == "%Y-%m-%d" else timedelta(hours=1)
    for place in range(periods.count):
        begins[(BEGIN + place * step).strftime(words)] = place
    assert found == [begins[moment.strftime(words)] for moment in moments]
    assert found[-1] == periods.count - 1
    described = periods.describe()
    assert len(described) == periods.count
    for moment, place in zip(column.to_pylist(), found, strict=True):
        text = moment.isoformat() if isinstance(moment, datetime) else moment
        assert described[place][0] <= text
        assert text < described[place + 1][0] if place + 1 < periods.count else text <= described[place][1]


@pytest.mark.parametrize("seconds", [0, 60, 4_000])
def test_a_short_log_is_one_period(seconds: int) -> None:
    periods = periods_of(BEGIN, BEGIN + timedelta(seconds=seconds))
    assert periods.count == 1
    assert periods.describe() == [[BEGIN.isoformat(), (BEGIN + timedelta(seconds=seconds)).isoformat()]]


@pytest.mark.parametrize(("days", "each"), [(400, 1), (401, 2), (801, 3), (20_000, 50)])
def test_many_days_are_taken_together(days: int, each: int) -> None:
    times = np.arange(days) * 86_400 + 5
    periods = periods_of(int(times[0]), int(times[-1]))
    assert numbers(periods, pa.array(times)) == (np.arange(days) // each).tolist()
    assert periods.count == -(-days // each) <= 400
    assert periods.describe()[1][0] == each * 86_400


@pytest.mark.parametrize("per_second", [1, 10**3, 10**6, 10**9])
def test_units_of_numbers(per_second: int) -> None:
    times = np.array([1_709_000_000, 1_709_100_000, 1_709_200_000]) * per_second
    periods = periods_of(int(times[0]), int(times[-1]))
    assert numbers(periods, pa.array(times)) == [0, 1, 2]  # 27 to 29 February 2024
    assert periods.describe()[1] == [1_709_078_400 * per_second, 1_709_164_800 * per_second - 1]


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (pa.array([0, 3_599, 3_600, 86_399, 86_400, 90_000, 400_000], pa.timestamp("s")), BEGIN),
        (pa.array([0, 3_599, 3_600, 86_399, 86_400, 90_000, 400_000], pa.timestamp("s", "Asia/Tokyo")), BEGIN),
        (pa.array(np.array([0, 3_599, 3_600, 86_399, 86_400, 90_000, 400_000]) * 1_000 + 1_704_067_200_000), 0),
    ],
)
def test_hours_of_the_day_are_those_of_utc(values: pa.Array, first: object) -> None:
    whole = values.cast(pa.int64()).to_pylist()
    periods = periods_of(whole[0], whole[-1]) if first == 0 else periods_of(BEGIN, BEGIN + timedelta(days=5))
    with quietly():
        table = connect().create_table("log", ibis.memtable(pa.table({"at": values})), temp=True)
    found = fetch(table.select(table["at"], hour=periods.hour(table["at"])).order_by("at"))["hour"].to_pylist()
    assert found == [0, 0, 1, 23, 0, 1, 15]


def test_no_moment_is_of_the_first_period() -> None:
    assert numbers(periods_of(0, 10**6), pa.array([None, 10**6], pa.int64())) == [11, 0]  # nulls come last
    assert periods_of(0.0, float("nan")).count == 1


def test_numbers_that_are_times_are_shown_as_such() -> None:
    for moment in (1_760_313_770, "1760313770", 1_760_313_770_000, "2025-10-13T00:02:50"):
        assert moment_text(moment) == "2025-10-13T00:02:50"
    for other in (7, 20_251_013, float("nan"), "day 3"):
        assert moment_text(other) == str(other)
