"""The queries as SQL of engines that are not here: translated back to DuckDB's, they count the same."""

import re
from typing import Any

import duckdb
import ibis
import ibis.expr.types as ir
import pytest
import sqlglot

from saferank.logs import log_queries
from saferank.logs.periods import periods_of
from saferank.logs.split import HashSplit, Split, TimeSplit
from tests.logs.engine_cases import hard_log

OURS = {"second": "timestamp", "device": "segment", "user": "unit", "price": "reward"}
FUNCTIONS = (
    "farm_fingerprint(text) as (hash(text) >> 1)::bigint",
    "ieee_divide(one, other) as one / other",
    "lpad(text, length, letter) as system.main.lpad(text, length::int, letter)",
)
"""Of those engines, which DuckDB lacks; which hash it is does not matter."""


def queries(log: ir.Table, engine: str, split: Split, last: int) -> dict[str, ir.Table]:
    """All that `aggregate` asks of an engine, each query as one expression."""
    found = log_queries.interactions_of(log, split, 6, last=last, engine=engine, periods=periods_of(0, 10**6))
    return {
        "checks": found.select("impression_id", "bad"),
        "patterns": log_queries.pattern_counts(found),
        "shown": log_queries.shown_counts(log, found, 6),
        "sample": log_queries.sampled_rows(log, found, 6, impressions=10**6, engine=engine),
        "rankings": log_queries.ranking_counts(log, found, 6),
    }


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    """The rows in some order, with an empty list for null: DuckDB collects nothing to null, Snowflake to a list."""
    return sorted(str([[] if value is None else value for value in row]) for row in rows)


@pytest.mark.parametrize("engine", ["bigquery", "snowflake"])
@pytest.mark.parametrize(
    ("split", "last"),
    [
        (HashSplit(by="unit"), 100),
        pytest.param(HashSplit(), 8, marks=pytest.mark.engines),
        pytest.param(TimeSplit(boundaries=(10**5, 2 * 10**5)), 20, marks=pytest.mark.engines),
    ],
)
def test_what_is_compiled_counts_the_same(engine: str, split: Split, last: int) -> None:
    table = hard_log().drop_columns("timestamp")
    table = table.rename_columns([OURS.get(name, name) for name in table.column_names])
    log = ibis.table(ibis.memtable(table).schema(), name="log")
    connection = duckdb.connect()
    connection.register("rows", table)
    connection.execute("create table log as select * from rows")
    for function in FUNCTIONS:
        connection.execute(f"create macro {function}")
    here, there = (queries(log, name, split, last) for name in ("duckdb", engine))
    for name, query in there.items():
        sql = ibis.to_sql(query, dialect=engine)
        assert {read.name for read in sqlglot.parse_one(sql, read=engine).find_all(sqlglot.exp.Table)} == {"log"}
        again = sqlglot.transpile(sql, read=engine, write="duckdb")[0]
        ours = connection.execute(ibis.to_sql(here[name], dialect="duckdb")).fetchall()
        assert ours
        assert plain(connection.execute(again).fetchall()) == plain(ours), name


@pytest.mark.parametrize("last", [5, 20])
def test_spark_has_room_for_the_bits_of_a_hash(last: int) -> None:
    """Its hash has 32 bits, too few for the slots of an impression."""
    kinds = dict.fromkeys(("impression_id", "query_id", "document_id"), "string")
    log = ibis.table({**kinds, "position": "int32", "click": "int8"}, name="log")
    found = log_queries.interactions_of(log, HashSplit(), 10, last=last, engine="pyspark")
    assert "| CAST(2048 AS BIGINT)" in ibis.to_sql(found, dialect="pyspark")


def test_digests_of_bigquery_are_bytes() -> None:
    log = ibis.table({"impression_id": "string", "query_id": "string"}, name="log")
    compiled = ibis.to_sql(log_queries.part_of_impressions(log, HashSplit(), "bigquery"), dialect="bigquery")
    assert re.search(r"to_hex\(\s*md5\(", compiled, re.IGNORECASE)
