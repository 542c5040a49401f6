"""The group-by: against a loop over the rows, and as SQL of other engines."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.data.aggregate import aggregate
from saferank.data.aggregated_log import PARTS, AggregatedLog
from saferank.data.click_log import open_log
from saferank.data.group_by import impression_counts, interactions_of, pattern_counts, ranking_counts
from saferank.data.load_log import load_log
from saferank.data.log_source import fetch, quietly, run_once
from saferank.data.split import HashSplit, Split, TimeSplit
from saferank.errors import DataError


def random_log(seed: int, *, whole_numbers: bool = False, longest: int = 8) -> list[dict[str, Any]]:
    """Impressions of 1 to `longest` documents, some with gaps in their positions, in random order of rows."""
    rng = np.random.default_rng(seed)
    rows = []
    for impression in range(300):
        query = int(rng.integers(5))
        shown = rng.permutation(12)[: rng.integers(1, longest + 1)]
        positions = np.sort(rng.permutation(longest)[: len(shown)]) + 1
        for document, position in zip(shown.tolist(), positions.tolist(), strict=True):
            rows.append(
                {
                    "impression_id": impression if whole_numbers else f"i{impression}",
                    "query_id": query if whole_numbers else f"q{query}",
                    "document_id": document if whole_numbers else f"d{document}",
                    "position": position,
                    "click": int(rng.random() < 0.3),
                    "timestamp": impression * 10 + position,
                    "device": "phone" if impression % 3 else "desk",
                }
            )
    return [rows[place] for place in rng.permutation(len(rows))]


def by_hand(rows: list[dict[str, Any]], part_of: dict[Any, str], cutoff: int, segment: bool) -> dict[str, Counter[Any]]:
    impressions = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["position"]):
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
        clicked = tuple(sorted(str(row["document_id"]) for row in shown if row["click"]))
        for row in shown:
            key = part, query, str(row["document_id"]), row["position"]
            counts["shown"][key] += 1
            counts["clicked"][key] += row["click"]
        counts["patterns"][part, shown[0]["device"] if segment else None, query, clicked] += 1
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


@pytest.mark.parametrize("whole_numbers", [False, True])
@pytest.mark.parametrize("cutoff", [None, 3])
@pytest.mark.parametrize("segment", [None, "device"])
def test_counts_are_those_of_a_loop(
    tmp_path: Path, whole_numbers: bool, cutoff: int | None, segment: str | None
) -> None:
    rows = random_log(0, whole_numbers=whole_numbers)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", cutoff=cutoff, segment=segment, split=TimeSplit(), rankings=True)
    truth = by_hand(rows, parts_by_hand(rows, log), cutoff or 8, segment is not None)
    assert log.cutoff == (cutoff or 8)
    assert flat(log.impressions, "shown", "clicked") == {
        key: (count, truth["clicked"][key]) for key, count in truth["shown"].items()
    }
    assert flat(log.patterns, "interactions") == {key: (count,) for key, count in truth["patterns"].items()}
    assert log.rankings is not None
    assert flat(log.rankings, "interactions") == {key: (count,) for key, count in truth["rankings"].items()}
    below = sum(row["position"] > (cutoff or 8) for row in rows)
    note = f"{below} of {len(rows):,} rows stood below rank 3 and were left out."
    assert log.manifest["notes"] == ([note] if below else [])
    assert log.manifest["period"] == [str(min(r["timestamp"] for r in rows)), str(max(r["timestamp"] for r in rows))]


def test_parts_agree_between_the_tables(tmp_path: Path) -> None:
    """By hash: what was clicked in a part is the same in the counts of documents and of sets."""
    pq.write_table(pa.Table.from_pylist(random_log(1)), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", split=HashSplit(seed=5))
    clicks: Counter[Any] = Counter()
    for row in log.patterns.to_pylist():
        for document in row["clicked"]:
            clicks[row["part"], row["query_id"], document] += row["interactions"]
    counted: Counter[Any] = Counter()
    for row in log.impressions.to_pylist():
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
    assert max(log.impressions["position"].to_pylist()) == 10
    assert sum(row["position"] > 10 for row in rows) == int(log.manifest["notes"][0].split()[0])


def test_the_first_interaction_below_the_cutoff_is_none(tmp_path: Path) -> None:
    rows = [{"impression_id": name, "query_id": "q", "document_id": "d", "position": rank, "click": 1}
            for name, rank in (("a", 1), ("b", 4))]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    log = load_log(tmp_path / "log.parquet", cutoff=3, rankings=True)
    assert sum(log.patterns["interactions"].to_pylist()) == 1
    assert log.rankings is not None
    assert sum(log.rankings["interactions"].to_pylist()) == 1


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "pyspark"])
@pytest.mark.parametrize("split", [HashSplit(), TimeSplit(boundaries=(10, 20))])
@pytest.mark.parametrize("last", [5, 20, 100])
def test_other_engines_can_run_it(engine: str, split: Split, last: int) -> None:
    kinds = dict.fromkeys(("impression_id", "query_id", "document_id", "segment"), "string")
    table = ibis.table({**kinds, "position": "int32", "click": "int8", "timestamp": "int64"}, name="log")
    interactions = interactions_of(table, split, 10, last=last, engine=engine)
    for query in (
        pattern_counts(interactions),
        impression_counts(table, interactions, 10),
        ranking_counts(table, interactions, 10),
    ):
        assert "GROUP BY" in ibis.to_sql(query, dialect=engine)
    if engine == "pyspark" and last <= 20:  # its hash has 32 bits, too few for the slots of an impression
        assert "| CAST(2048 AS BIGINT)" in ibis.to_sql(interactions, dialect=engine)


@pytest.mark.parametrize("engine", ["duckdb", ""])
@pytest.mark.parametrize("last", [9, 20, 21, 80])
def test_no_repeated_document_goes_unsuspected(tmp_path: Path, engine: str, last: int) -> None:
    """Whatever the way of checking; and few others are suspects."""
    rows = random_log(3)
    again = {row["impression_id"]: row for row in rows if row["impression_id"] in ("i7", "i8", "i9")}
    rows += [{**row, "position": last} for row in again.values()]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    table = open_log(tmp_path / "log.parquet").table
    found = interactions_of(table, HashSplit(), 10, last=last, engine=engine)
    suspects = set(fetch(found.filter(found["suspect"]))["impression_id"].to_pylist())
    assert set(again) <= suspects
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


@pytest.mark.parametrize("engine", ["duckdb", ""])
@pytest.mark.parametrize("last", [9, 20, 21, 80])
@pytest.mark.parametrize("change", [{"query_id": "other", "position": 1}, {}], ids=["two queries", "position twice"])
def test_bad_impressions_are_found(tmp_path: Path, engine: str, last: int, change: dict[str, Any]) -> None:
    """Two queries in an impression, or two documents at a position, and no other, whatever the way of checking."""
    row = {"impression_id": "i", "query_id": "q", "document_id": "d", "position": last, "click": 0, "timestamp": 0}
    wrong = {**row, "document_id": "other", **change}
    pq.write_table(pa.Table.from_pylist([*random_log(3), row, wrong]), tmp_path / "log.parquet")
    table = open_log(tmp_path / "log.parquet").table
    found = interactions_of(table, HashSplit(), 10, last=last, engine=engine)
    assert fetch(found.filter(found["bad"]))["impression_id"].to_pylist() == ["i"]


@pytest.mark.parametrize("bad", [False, True])
def test_nothing_stays_in_the_callers_database(bad: bool) -> None:
    connection = ibis.duckdb.connect()
    rows = random_log(5)
    rows += [{**rows[0], "position": 9}] * bad  # a document twice
    with quietly():
        log = connection.create_table("log", ibis.memtable(pa.Table.from_pylist(rows)))
    if bad:
        with pytest.raises(DataError, match="with a document that their impression shows twice"):
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
    ]


def test_only_duckdb_keeps_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other engines run the query anew: not all of them have temporary tables."""
    connection = ibis.duckdb.connect()
    with quietly():
        table = connection.create_table("log", ibis.memtable(pa.table({"x": [1, 2]})))
    query = table.filter(table["x"] > 1)
    with run_once(query) as found:
        assert not found.equals(query)
        assert fetch(found)["x"].to_pylist() == [2]
    monkeypatch.setattr(type(connection), "name", "postgres")
    with run_once(query) as found:
        assert found is query
