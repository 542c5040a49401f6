"""OpenSearch UBI: searches with their hits, and events on them, as JSON lines, as Parquet and in a database."""

import json
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.run_query import fetch
from tests.logs.written_layouts import EVENTS, QUERIES, event, write_ubi

SHOWN = {
    ("s1", "tv", "a", 1, 0),
    ("s1", "tv", "b", 2, 1),
    ("s1", "tv", "c", 3, 0),
    ("s2", "tv", "b", 1, 0),
    ("s2", "tv", "a", 2, 1),
}


def rows(log: ibis.Table) -> set[tuple[Any, ...]]:
    table = fetch(log.select("impression_id", "query_id", "document_id", "position", "click"))
    found = [tuple(row.values()) for row in table.to_pylist()]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize("kind", ["ndjson", "parquet"])
def test_hits_and_clicks(tmp_path: Path, kind: str) -> None:
    log = open_log(write_ubi(tmp_path / "ubi", kind=kind))
    assert log.layout == "ubi"
    assert rows(log.table) == SHOWN
    counted = load_log(tmp_path / "ubi")
    assert sum(part["clicks"] for part in counted.manifest["parts"].values()) == 2
    assert counted.manifest["period"] == ["2025-01-01T10:00:00", "2025-01-02T10:00:00"]


def test_in_a_database_and_with_flat_columns(tmp_path: Path) -> None:
    flat = [
        {"query_id": row["query_id"], "action_name": row["action_name"]}
        | {"sku": row["event_attributes"]["object"]["object_id"]}
        for row in EVENTS[:3]
    ]
    with duckdb.connect(str(tmp_path / "log.db")) as connection:
        connection.register("queries", pa.Table.from_pylist(QUERIES)).execute(
            "create table ubi_queries as from queries"
        )
        connection.register("events", pa.Table.from_pylist(flat)).execute("create table ubi_events as from events")
    log = open_log(f"duckdb://{tmp_path / 'log.db'}", columns={"object_id": "sku"})
    assert rows(log.table) == {(*row[:4], 0) if row[0] == "s2" else row for row in SHOWN}


def test_another_action_and_a_field_of_a_structure(tmp_path: Path) -> None:
    folder = write_ubi(tmp_path / "ubi", [event("s1", "purchase", "c"), event("s1", "click", "a")])
    log = open_log(folder, layout="ubi:purchase", columns={"object_id": "event_attributes.object.object_id"})
    assert {row for row in rows(log.table) if row[4]} == {("s1", "tv", "c", 3, 1)}


def test_clicks_on_what_was_not_shown(tmp_path: Path) -> None:
    folder = write_ubi(tmp_path / "ubi", [*EVENTS, event("s1", "click", "z"), event("s9", "click", "a")])
    assert rows(open_log(folder).table) == {*SHOWN, ("s1", "tv", "z", None, 1), ("s9", None, "a", None, 1)}
    assert load_log(folder, on_bad_rows="drop").manifest["bad_rows"] == {"click on what was not shown": 2}


def test_units_are_columns_of_the_searches(tmp_path: Path) -> None:
    folder = write_ubi(tmp_path / "log", [*EVENTS, event("s1", "click", "z")])
    searches = [row | {"client_id": client} for row, client in zip(QUERIES, ("c1", None, "c2"), strict=True)]
    (folder / "ubi_queries.ndjson").write_text("".join(json.dumps(row) + "\n" for row in searches))
    log = load_log(folder, unit="client_id", on_bad_rows="drop")
    assert sorted(log.patterns["unit"].to_pylist()) == ["0", "1"]
    assert log.manifest["notes"] == ["1 impression had no client_id; it counts as a unit of its own."]


def test_no_click_at_all_is_a_wrong_name(tmp_path: Path) -> None:
    folder = write_ubi(tmp_path / "ubi", [event("s1", "view", "a"), event("s1", "purchase", "a")])
    with pytest.raises(DataError, match="the actions are purchase, view") as error:
        open_log(folder)
    assert (error.value.file, error.value.column) == (f"{folder}, ubi_events", "action_name")


def test_missing_columns(tmp_path: Path) -> None:
    folder = write_ubi(tmp_path / "ubi")
    (folder / "ubi_events.ndjson").write_text('{"query_id": "s1", "action_name": "click", "sku": "a"}\n')
    for columns, table, column in (
        ({}, "ubi_events", "event_attributes.object.object_id"),
        ({"user_query": "search"}, "ubi_queries", "search"),
    ):
        with pytest.raises(DataError) as error:
            open_log(folder, columns=columns)
        assert (error.value.file, error.value.column) == (f"{folder}, {table}", column)


def test_a_layout_that_does_not_fit(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(QUERIES), tmp_path / "one.parquet")
    for source, layout in ((write_ubi(tmp_path / "ubi"), "long"), (tmp_path / "one.parquet", "ubi")):
        with pytest.raises(DataError, match="ubi_queries and ubi_events"):
            open_log(source, layout=layout)
