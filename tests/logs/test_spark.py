"""A log in Spark: two workers, each a process, count it as DuckDB does, wherever the rows of an impression lie."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

from saferank.engine.errors import DataError
from saferank.logs.load_log import load_log
from saferank.logs.run_query import fetch, run_once
from saferank.logs.source import find_source
from tests.logs.engine_cases import (
    CASES,
    assert_same,
    assert_same_training_rows,
    hard_log,
    nested_rows,
    same_errors,
    with_bad_rows,
)
from tests.servers import spark_cluster

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]  # warnings are of PySpark and pandas


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A session with the tables `log`, `numbers` and `nested`, and `shop.clicks` in a database of its own."""
    with spark_cluster() as opened:
        opened.sql("create database shop")
        put(opened, "log", hard_log())
        put(opened, "shop.clicks", hard_log())
        put(opened, "numbers", hard_log(2, numbers=True, longest=12))
        put(opened, "nested", nested_rows(hard_log()))
        yield opened


def log_here(**options: Any) -> pa.Table:
    """The log for DuckDB; to Ibis, timestamps of Spark have no time zone."""
    table = hard_log(**options)
    place = table.column_names.index("timestamp")
    return table.set_column(place, "timestamp", table["timestamp"].cast(pa.timestamp("us")))


def put(session: Any, name: str, table: pa.Table) -> None:
    session.createDataFrame(table).repartition(7).write.saveAsTable(name)


def test_rows_of_an_impression_lie_in_several_partitions(session: Any) -> None:
    rows = session.sql("select impression_id, input_file_name() file from log").toPandas()
    assert rows.groupby("impression_id")["file"].nunique().max() > 2
    assert session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 3  # with the driver


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("session")
def test_counts_are_those_of_duckdb(case: str) -> None:
    assert_same(load_log(log_here(), **CASES[case]), load_log("spark:///log", **CASES[case]))


@pytest.mark.usefixtures("session")
def test_ids_that_are_numbers_in_a_database_of_their_own() -> None:
    ours = load_log(log_here(seed=2, numbers=True, longest=12), rankings=True)
    assert_same(ours, load_log("spark:///default/numbers", rankings=True))
    assert find_source("spark:///shop/clicks").name == "spark:///shop/clicks"


@pytest.mark.usefixtures("session")
def test_lists() -> None:
    assert_same(load_log(nested_rows(hard_log())), load_log("spark:///nested"))


def test_an_ibis_table(session: Any) -> None:
    assert_same(load_log(log_here()), load_log(ibis.pyspark.connect(session).table("log")))


def test_bad_rows(session: Any) -> None:
    table = with_bad_rows(log_here())
    put(session, "bad", table)
    ours, theirs = same_errors(table, "spark:///bad")
    assert ours == theirs


def test_what_is_read_several_times_is_kept(session: Any) -> None:
    table = find_source("spark:///log").tables["log"]
    with run_once(table.filter(table["click"] > 0)) as kept:
        assert len(fetch(kept)) == sum(row["click"] > 0 for row in hard_log().to_pylist())
        assert session.sparkContext._jsc.getPersistentRDDs().size() == 1
    assert session.sparkContext._jsc.getPersistentRDDs().size() == 0


@pytest.mark.usefixtures("session")
def test_training_rows(tmp_path: Path) -> None:
    assert_same_training_rows(log_here(), "spark:///log", tmp_path)


@pytest.mark.parametrize("url", ["spark:///none", "spark:///none/log", "spark:///shop/none"])
@pytest.mark.usefixtures("session")
def test_no_such_table(url: str) -> None:
    with pytest.raises(DataError) as caught:
        load_log(url)
    assert caught.value.file == url
    assert caught.value.exit_code == 1
    assert ("clicks" in str(caught.value)) == ("shop" in url)
