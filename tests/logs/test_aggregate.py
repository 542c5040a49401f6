"""The group-by: against a loop over the rows, and as SQL of other engines."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError
from saferank.logs.aggregate import aggregate
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.log_queries import interactions_of
from saferank.logs.run_query import fetch, quietly, run_once
from saferank.logs.split import HashSplit, Split, TimeSplit
from tests.logs.engine_cases import hard_log


def random_log(seed: int, *, whole_numbers: bool = False, longest: int = 8) -> list[dict[str, Any]]:
    """A log of four days and some hours that is hard to sort, with times in seconds; every seventh is of nobody."""
    rows = hard_log(seed, numbers=whole_numbers, longest=longest).to_pylist()
    return [row | {"timestamp": row.pop("second")} for row in rows]


def by_hand(
    rows: list[dict[str, Any]], part_of: dict[Any, str], cutoff: int, segment: bool = False, more: bool = False
) -> dict[str, Counter[Any]]:
    """Counts per key of each table; `more`: with units and rewards."""
    impressions: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
    first: defaultdict[Any, int] = defaultdict(lambda: 10**9)
    for row in sorted(rows, key=lambda row: row["position"]):
        first[row["impression_id"]] = min(first[row["impression_id"]], row["timestamp"])
        if row["position"] <= cutoff:
            impressions[row["impression_id"]].append(row)
    counts: dict[str, Counter[Any]] = {
        "shown": Counter(),
        "clicked": Counter(),
        "patterns": Counter(),
        "rankings": Counter(),
    }
    for impression, shown in impressions.items():
        part, query = part_of[impression], str(shown[0]["query_id"])
        period = first[impression] // 86_400
        clicks = sorted((str(row["document_id"]), row["price"]) for row in shown if row["click"])
        clicked = tuple(document for document, _ in clicks)
        for row in shown:
            key = part, period, query, str(row["document_id"]), row["position"]
            counts["shown"][key] += 1
            counts["clicked"][key] += row["click"]
        kind = shown[0]["device"] if segment else None
        unit = (shown[0]["user"] or f"impression:{impression}") if more else None
        rewards = tuple(price for _, price in clicks) if more else None
        counts["patterns"][part, period, kind, unit, query, clicked, rewards] += 1
        at = {row["position"]: str(row["document_id"]) for row in shown}
        counts["rankings"][part, query, tuple(at.get(rank + 1) for rank in range(max(at))), clicked] += 1
    return counts


def parts_by_hand(rows: list[dict[str, Any]], log: AggregatedLog) -> dict[Any, str]:
    """Return the part of each impression: by the boundaries of time in the manifest."""
    low, high = log.manifest["split"]["boundaries"]
    first = {row["impression_id"]: 10**9 for row in rows}
    for row in rows:
        first[row["impression_id"]] = min(first[row["impression_id"]], row["timestamp"])
    return {impression: PARTS[(time >= low) + (time >= high)] for impression, time in first.items()}


def flat(table: pa.Table, *values: str) -> dict[Any, Any]:
    """Key columns -> the value columns, with lists as tuples; no key comes twice."""
    found = {}
    for row in table.to_pylist():
        key = tuple(
            tuple(value) if isinstance(value, list) else value for name, value in row.items() if name not in values
        )
        assert key not in found
        found[key] = tuple(row[name] for name in values)
    return found


@pytest.mark.parametrize(
    ("whole_numbers", "cutoff", "segment"), [(False, None, None), (True, 3, "device"), (False, 3, None)]
)
def test_counts_are_those_of_a_loop(
    tmp_path: Path, whole_numbers: bool, cutoff: int | None, segment: str | None
) -> None:
    rows = random_log(0, whole_numbers=whole_numbers)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", cutoff=cutoff, segment=segment, split=TimeSplit(), rankings=True)
    truth = by_hand(rows, parts_by_hand(rows, log), cutoff or 8, segment is not None)
    assert log.cutoff == (cutoff or 8)
    assert flat(log.shown_counts, "shown", "clicked") == {
        key: (count, truth["clicked"][key]) for key, count in truth["shown"].items()
    }
    assert flat(log.patterns, "interactions") == {key: (count,) for key, count in truth["patterns"].items()}
    assert log.rankings is not None
    assert flat(log.rankings, "interactions") == {key: (count,) for key, count in truth["rankings"].items()}
    below = sum(row["position"] > (cutoff or 8) for row in rows)
    clicks = sum(row["position"] > 3 and row["click"] > 0 for row in rows)
    note = f"{below} of {len(rows):,} rows, with {clicks} clicks, are below rank 3 and were left out."
    assert log.manifest["notes"] == ([note] if below else [])
    assert log.manifest["periods"][0] == [min(r["timestamp"] for r in rows), 86_399]
    assert [first for first, _ in log.manifest["periods"][1:]] == [86_400, 172_800, 259_200, 345_600]
    assert log.manifest["period"] == [str(min(r["timestamp"] for r in rows)), str(max(r["timestamp"] for r in rows))]


@pytest.mark.parametrize(("whole_numbers", "cutoff"), [(False, None), (True, 3)])
def test_units_and_rewards_are_those_of_a_loop(tmp_path: Path, whole_numbers: bool, cutoff: int | None) -> None:
    rows = random_log(6, whole_numbers=whole_numbers)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    more: dict[str, Any] = {"unit": "user", "reward": "price", "reward_most": 2}
    log = load_log(tmp_path / "log.parquet", cutoff=cutoff, split=TimeSplit(), **more)
    truth = by_hand(rows, parts_by_hand(rows, log), cutoff or 8, more=True)
    in_order = sorted(truth["patterns"], key=lambda key: (PARTS.index(key[0]), key[1], key[3]))
    number = {unit: str(place) for place, unit in enumerate(dict.fromkeys(key[3] for key in in_order))}
    expected = {(*key[:3], number[key[3]], *key[4:]): (count,) for key, count in truth["patterns"].items()}
    assert flat(log.patterns, "interactions") == expected
    assert log.manifest["unit"] == "user"
    assert log.manifest["reward"] == {"column": "price", "most": 2}
    alone = {row["impression_id"] for row in rows if row["user"] is None}
    assert log.manifest["notes"][-1] == f"{len(alone)} impressions had no user; each counts as a unit of its own."


def test_content_is_the_same_in_any_order_and_format_and_for_no_other_rows(tmp_path: Path) -> None:
    rows = random_log(2)
    options: dict[str, Any] = {"unit": "user", "reward": "price", "reward_most": 2.0}

    def content(rows: list[dict[str, Any]], **more: Any) -> str:
        return str(load_log(pa.Table.from_pylist(rows), **options, **more).manifest["content"])

    pa.csv.write_csv(pa.Table.from_pylist(rows[::-1]), tmp_path / "again.csv")
    same = content(rows)
    assert content(rows[::-1], segment="device") == same
    assert load_log(tmp_path / "again.csv", **options).manifest["content"] == same
    number = {one: place for place, one in enumerate(dict.fromkeys(row["impression_id"] for row in rows))}
    as_numbers = [row | {"impression_id": number[row["impression_id"]]} for row in rows]
    assert content(as_numbers) == content([row | {"impression_id": str(row["impression_id"])} for row in as_numbers])
    place = next(place for place, row in enumerate(rows) if row["click"] and row["user"])
    impression = rows[place]["impression_id"]
    swapped = [row | ({"user": "another"} if row["impression_id"] == impression else {}) for row in rows]
    for other in ({"price": 0.123}, {"click": 0, "price": None}, {"document_id": "another"}, {"device": "another"}):
        assert content([*rows[:place], rows[place] | other, *rows[place + 1 :]]) != same, other
    assert content([row | {"timestamp": row["timestamp"] // 86_400 * 86_400} for row in rows]) != same
    assert content(swapped, split=HashSplit(by="query")) != content(rows, split=HashSplit(by="query"))


def test_a_folder_of_statistics_has_no_id_of_a_user(tmp_path: Path) -> None:
    """Nor that of an impression, which is the unit where no user is known."""
    rows = [row | {"user": row["user"] and f"mail+{row['user']}@example.org"} for row in random_log(6)]
    rows = [row | {"impression_id": f"visit-{row['impression_id']}"} for row in rows]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", unit="user", rankings=True)
    log.write(tmp_path / "stats")
    assert log.patterns["unit"].null_count == 0
    users = {row["user"] or row["impression_id"] for row in rows}
    assert len(users) == len(set(log.patterns["unit"].to_pylist())) > 20
    files = sorted(file.name for file in (tmp_path / "stats").iterdir())
    assert files == [
        *("impressions.parquet", "manifest.json", "patterns.parquet", "rankings.parquet", "sample.parquet")
    ]
    for name in files:
        file = tmp_path / "stats" / name
        text = file.read_text() if file.suffix == ".json" else json.dumps(pq.read_table(file).to_pydict())
        assert "example.org" not in text
        assert "visit-" not in text


@pytest.mark.parametrize(("split", "by"), [(HashSplit(seed=2), "unit"), (HashSplit(by="query"), "query")])
def test_a_unit_or_query_belongs_to_one_part(tmp_path: Path, split: Split | None, by: str) -> None:
    rows = [row | {"query_id": f"q{row['impression_id'] % 50}"} for row in random_log(7, whole_numbers=True)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", split=split, unit="user")
    assert log.manifest["split"]["by"] == by
    parts = defaultdict(set)
    for row in log.patterns.to_pylist():
        parts[row["unit" if by == "unit" else "query_id"]].add(row["part"])
    assert {len(found) for found in parts.values()} == {1}
    assert set().union(*parts.values()) == set(PARTS)


def test_rows_of_the_sample_are_those_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 impressions of 300, wherever their rows stand; impressions are told by what they show."""
    monkeypatch.setattr("saferank.logs.log_queries.SAMPLED", 100)
    monkeypatch.setattr("saferank.logs.aggregate._without_names", lambda _: {})  # to recognise the units
    rows = random_log(8)
    for name, order in (("log", 1), ("turned", -1)):
        pq.write_table(pa.Table.from_pylist(rows[::order]), tmp_path / f"{name}.parquet")
    log = load_log(tmp_path / "log.parquet", cutoff=5, unit="user")
    assert log.sample is not None
    assert log.sample == load_log(tmp_path / "turned.parquet", cutoff=5, unit="user").sample

    def told(row: dict[str, Any], unit: str) -> Any:
        return row["query_id"], row["document_id"], row["position"], row["click"], unit

    impressions, sampled = defaultdict(list), defaultdict(list)
    for row in rows:
        if row["position"] <= 5:
            unit = row["user"] or f"impression:{row['impression_id']}"
            impressions[row["impression_id"]].append((*told(row, unit), row["timestamp"] // 86_400))
    for row in log.sample.to_pylist():
        sampled[row["impression"]].append((*told(row, row["unit"]), row["period"]))
    assert sorted(sampled) == list(range(100))
    everything = Counter(tuple(sorted(shown)) for shown in impressions.values())
    assert not Counter(tuple(sorted(shown)) for shown in sampled.values()) - everything
    part_of = {row["unit"]: row["part"] for row in log.patterns.to_pylist()}
    assert all(part_of[row["unit"]] == row["part"] for row in log.sample.to_pylist())


def test_a_small_log_is_its_own_sample(tmp_path: Path) -> None:
    rows = random_log(9)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    sample = load_log(tmp_path / "log.parquet").sample
    assert sample is not None
    assert len(sample) == len(rows)
    assert len(set(sample["impression"].to_pylist())) == 300
    assert set(sample["unit"].to_pylist()) == {None}


def test_impressions_without_a_time_are_of_the_first_period(tmp_path: Path) -> None:
    log = random_log(10, whole_numbers=True)
    rows = [row | ({"timestamp": None} if row["impression_id"] == 299 else {}) for row in log]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    counted = load_log(tmp_path / "log.parquet")
    undated = sum(row["timestamp"] is None for row in rows)
    assert f"{undated} of {len(rows):,} rows had no timestamp" in counted.manifest["notes"][0]
    counts = counted.patterns.group_by("period").aggregate([("interactions", "sum")]).to_pylist()
    found = {row["period"]: row["interactions_sum"] for row in counts}
    assert found == {0: 72 + 1, 1: 72, 2: 72, 3: 72, 4: 11}


def test_the_sample_has_the_hour_of_the_day_of_a_log_of_days(tmp_path: Path) -> None:
    rows = random_log(10)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet")
    assert log.sample is not None
    first = {row["impression_id"]: row["timestamp"] for row in sorted(rows, key=lambda row: -row["timestamp"])}
    hours = [first[row["impression_id"]] // 3_600 % 24 for row in rows]
    assert len(set(hours)) > 10
    assert Counter(log.sample["hour"].to_pylist()) == Counter(hours)
    log.write(tmp_path / "stats")
    file = tmp_path / "stats" / "sample.parquet"
    pq.write_table(pq.read_table(file).drop_columns("hour"), file)  # as an older version wrote it
    older = load_log(tmp_path / "stats").sample
    assert older is not None
    assert older.schema == log.sample.schema
    assert older["hour"].null_count == len(older)


def test_without_timestamps_there_is_one_period(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(random_log(11)).drop_columns("timestamp"), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet")
    assert log.manifest["periods"] == log.periods == []
    for table in (log.shown_counts, log.patterns, log.sample):
        assert table is not None
        assert set(table["period"].to_pylist()) == {0}


def test_parts_agree_between_the_tables(tmp_path: Path) -> None:
    """By hash: what was clicked in a part is the same in the counts of documents and of sets."""
    pq.write_table(pa.Table.from_pylist(random_log(1)), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", split=HashSplit(seed=5))
    clicks: Counter[Any] = Counter()
    for row in log.patterns.to_pylist():
        for document in row["clicked"]:
            clicks[row["part"], row["query_id"], document] += row["interactions"]
    counted: Counter[Any] = Counter()
    for row in log.shown_counts.to_pylist():
        counted[row["part"], row["query_id"], row["document_id"]] += row["clicked"]
    assert clicks == +counted
    assert all(part["interactions"] for part in log.manifest["parts"].values())


def test_long_lists_stop_at_ten(tmp_path: Path) -> None:
    """Positions beyond what bits of a number can hold are checked as well, but not counted."""
    rows = random_log(2, longest=12)
    rows += [
        {**rows[0], "impression_id": "far", "position": position, "document_id": f"x{position}"} for position in (1, 99)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet")
    assert log.cutoff == 10
    assert max(log.shown_counts["position"].to_pylist()) == 10
    assert sum(row["position"] > 10 for row in rows) == int(log.manifest["notes"][0].split()[0])


def test_the_first_interaction_below_the_cutoff_is_none(tmp_path: Path) -> None:
    rows = [{"impression_id": name, "query_id": "q", "document_id": "d", "position": rank, "click": 1}
            for name, rank in (("a", 1), ("b", 4))]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", cutoff=3, rankings=True)
    assert sum(log.patterns["interactions"].to_pylist()) == 1
    assert log.rankings is not None
    assert sum(log.rankings["interactions"].to_pylist()) == 1


@pytest.mark.parametrize(("engine", "last"), [("duckdb", 9), ("", 20), ("duckdb", 21), ("", 80)])
def test_bad_impressions_are_found(tmp_path: Path, engine: str, last: int) -> None:
    """Two queries, two documents at a position, a document twice: whatever the way of checking, and few others."""
    rows = random_log(3)
    twice = {row["impression_id"]: row for row in rows if row["impression_id"] in ("i7", "i8", "i9")}
    rows += [{**row, "position": last} for row in twice.values()]
    row = {"impression_id": "i", "query_id": "q", "document_id": "d", "position": last, "click": 0, "timestamp": 0}
    rows += [row, {**row, "document_id": "other", "query_id": "other", "position": 1}]
    rows += [{**row, "impression_id": "j"}, {**row, "impression_id": "j", "document_id": "other"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    found = interactions_of(open_log(tmp_path / "log.parquet").table, HashSplit(), 10, last=last, engine=engine)
    bad, suspects = (set(fetch(found.filter(found[kind]))["impression_id"].to_pylist()) for kind in ("bad", "suspect"))
    assert bad == {"i", "j"}
    assert set(twice) <= suspects
    assert len(suspects) < 20


def test_suspects_that_show_no_document_twice_are_counted_like_others(tmp_path: Path) -> None:
    """With twenty different documents nearly one in eleven has two slots alike; no bad rows are looked for."""
    shown = [{"impression_id": place // 20, "query_id": "q", "document_id": f"d{place}", "position": place % 20 + 1,
              "click": 0} for place in range(10_000)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(shown), tmp_path / "log.parquet")
    log = open_log(tmp_path / "log.parquet")
    found = interactions_of(log.table, HashSplit(), 10, last=20, engine="duckdb")
    suspects = fetch(found.filter(found["suspect"]))
    assert abs(len(suspects) - 500 * 190 / 2**11) < 5 * np.sqrt(500 * 190 / 2**11)
    said: list[str] = []
    assert sum(aggregate(log, progress=said.append).patterns["interactions"].to_pylist()) == 500
    assert "Looking for bad rows" not in said


@pytest.mark.parametrize("bad", [False, True])
def test_nothing_stays_in_the_callers_database(bad: bool) -> None:
    connection = ibis.duckdb.connect()
    rows = random_log(5)
    rows += [{**rows[0], "position": 9}] * bad  # a document twice
    with quietly():
        log = connection.create_table("log", ibis.memtable(pa.Table.from_pylist(rows)))
    if bad:
        with pytest.raises(DataError):
            load_log(log)
    else:
        assert load_log(log).manifest["rows"] == len(rows)
    assert [name for (name,) in connection.con.execute("SHOW TABLES").fetchall() if "memtable" not in name] == ["log"]


def test_progress_is_told(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(random_log(4)), tmp_path / "log.parquet")
    said: list[str] = []
    aggregate(open_log(tmp_path / "log.parquet"), progress=said.append)
    assert said == [
        "Looking at the rows",
        "Looking at every impression",
        "Counting sets of clicks",
        "Counting what was shown and clicked",
        "Drawing a sample of impressions",
    ]


def test_a_query_runs_once_where_an_engine_keeps_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a read-only copy of a database, for one, it runs anew."""
    connection = ibis.duckdb.connect()
    with quietly():
        table = connection.create_table("log", ibis.memtable(pa.table({"x": [1, 2]})))
    query = table.filter(table["x"] > 1)
    with run_once(query) as found:
        assert not found.equals(query)
        assert fetch(found)["x"].to_pylist() == [2]
    monkeypatch.setattr(type(connection), "name", "postgres")
    monkeypatch.setattr(type(connection), "create_table", lambda *_, **__: 1 / 0)
    with run_once(query) as found:
        assert found is query
