"""A log in PostgreSQL: a server of the tests' own counts it as DuckDB does, and errors name what is wrong."""

import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.files.table_url import without_secrets
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.run_query import fetch, run_once
from saferank.logs.source import find_source
from tests.cli.running import run_here
from tests.logs.engine_cases import (
    CASES,
    assert_same,
    assert_same_training_rows,
    hard_log,
    nested_rows,
    same_errors,
    with_bad_rows,
)
from tests.servers import PASSWORD, postgres_server

pytest.importorskip("psycopg", reason="pip install 'saferank[postgres]'")


engines = pytest.mark.engines
"""Not needed in every run: one case shows that the queries run, the others that they are right at every corner."""


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """The connection of a user who may do everything."""
    with postgres_server() as url:
        opened = ibis.connect(url)
        opened.url = url
        yield opened
        opened.con.close()


@pytest.fixture(scope="module")
def server(connection: Any) -> str:
    """The URL of a database with the tables `log`, `numbers`, `nested`, and `shop.clicks` in a schema of its own."""
    connection.create_database("shop")
    put(connection, "log", hard_log())
    put(connection, "numbers", hard_log(2, numbers=True, longest=12))
    put(connection, "nested", nested_rows(hard_log()))
    put(connection, "clicks", hard_log(), database="shop")
    for statement in (
        "create role reader login password 'other'",
        "grant select on log to reader",
        "revoke temporary on database postgres from public",
    ):
        connection.raw_sql(statement)
    return str(connection.url)


def put(connection: Any, name: str, table: pa.Table, **options: Any) -> None:
    """Copy a table to the server: quicker than the single inserts of Ibis."""
    made = connection.create_table(name, schema=ibis.memtable(table).schema(), **options)
    place = made.op().namespace.database
    where = f'"{place}"."{name}"' if place else f'"{name}"'
    with connection.con.cursor() as cursor, cursor.copy(f"copy {where} from stdin") as copy:
        for row in table.to_pylist():
            copy.write_row(row.values())


def as_reader(server: str) -> str:
    """The URL of a user who may read one table, and make none."""
    return f"postgres://reader:other@{server.rpartition('@')[2]}"


@pytest.mark.parametrize(
    "case", [case if case == "all columns" else pytest.param(case, marks=engines) for case in CASES]
)
def test_counts_are_those_of_duckdb(server: str, case: str) -> None:
    assert_same(load_log(hard_log(), **CASES[case]), load_log(f"{server}/log", **CASES[case]))


@engines
def test_ids_that_are_numbers_and_positions_below_the_cutoff(server: str) -> None:
    ours = load_log(hard_log(2, numbers=True, longest=12), rankings=True)
    assert_same(ours, load_log(f"{server}/numbers", rankings=True))
    assert ours.manifest["clicks_below_cutoff"] > 0


@engines
def test_lists(server: str) -> None:
    assert_same(load_log(nested_rows(hard_log()), rankings=True), load_log(f"{server}/nested", rankings=True))


@engines
def test_a_schema(server: str) -> None:
    url = server.replace("postgres://", "postgresql://")
    assert_same(load_log(hard_log()), load_log(f"{url}/shop/clicks"))


@engines
def test_an_ibis_table(server: str, connection: Any) -> None:
    assert server == connection.url
    assert_same(load_log(hard_log()), load_log(connection.table("log")))


@engines
@pytest.mark.parametrize("lists", [False, True])
def test_bad_rows(server: str, connection: Any, lists: bool) -> None:
    table, name = with_bad_rows(hard_log()), f"bad_{lists}".lower()
    if lists:
        rows = nested_rows(hard_log()).to_pylist()
        rows[3]["clicks"].append(1)
        rows[5]["clicks"], rows[7]["document_ids"], rows[8]["clicks"] = None, None, []
        table = pa.Table.from_pylist(rows)
    put(connection, name, table)
    ours, theirs = same_errors(table, f"{server}/{name}")
    counts = [[line for line in lines[1:] if not line.startswith("    ")] for lines in (ours, theirs)]
    assert counts[0] == counts[1]


@engines
def test_opensearch_ubi(server: str, connection: Any) -> None:
    connection.create_database("ubi")
    searches = [{"query_id": f"s{place}", "user_query": "tv", "query_response_hit_ids": ["a", "b"]} for place in (1, 2)]
    events = [{"query_id": "s1", "action_name": "click", "object_id": "b"}]
    put(connection, "ubi_queries", pa.Table.from_pylist(searches), database="ubi")
    put(connection, "ubi_events", pa.Table.from_pylist(events), database="ubi")
    shown = fetch(open_log(f"{server}/ubi/").table).to_pylist()
    assert {tuple(row.values()) for row in shown} == {
        ("s1", "tv", "a", 1, 0), ("s1", "tv", "b", 2, 1), ("s2", "tv", "a", 1, 0), ("s2", "tv", "b", 2, 0)
    }  # fmt: skip


def test_what_is_read_several_times_is_a_temporary_table(server: str) -> None:
    table = find_source(f"{server}/log").tables["log"]
    connection = table.get_backend()

    def temporary() -> int:
        return int(connection.raw_sql("select count(*) from pg_class where relpersistence = 't'").fetchone()[0])

    with run_once(table.filter(table["click"] > 0)) as kept:
        assert temporary() > 0
        assert len(fetch(kept)) == sum(row["click"] > 0 for row in hard_log().to_pylist())
    assert temporary() == 0


@engines
def test_who_may_make_no_table_can_count(server: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        theirs = load_log(f"{as_reader(server)}/log")
    assert_same(load_log(hard_log()), theirs)
    assert "temporary" in caplog.text


@engines
def test_training_rows(server: str, tmp_path: Path) -> None:
    assert_same_training_rows(hard_log(), f"{server}/log", tmp_path)


@pytest.mark.parametrize("given", ["{url}/none", "{url}", "{url}/shop/none", "{url}/none/log", "{reader}/numbers"])
def test_no_such_table(server: str, given: str) -> None:
    url = given.format(url=server, reader=as_reader(server))
    with pytest.raises(DataError) as caught:
        load_log(url)
    assert caught.value.file in (without_secrets(url), "numbers")
    assert ("log" in str(caught.value)) == ("shop" not in given)


@pytest.mark.parametrize("change", [("team:", "team:wrong"), ("/postgres$", "/none"), (r":\d+/", ":1/")])
def test_no_connection(server: str, change: tuple[str, str]) -> None:
    url = f"{re.sub(*change, server)}/log"
    with pytest.raises(DataError) as caught:
        load_log(url)
    assert caught.value.file == without_secrets(url)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    "url", ["postgres://team:a/b@host/db/log", "postgres://team:pw#1@host/db/log", "postgres://team:pw@host:x/db/log"]
)
def test_no_url(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_log(url)
    assert caught.value.exit_code == 2
    assert not any(secret in str(caught.value) for secret in ("a/b", "pw"))


@pytest.mark.parametrize(
    ("url", "module", "needed"),
    [
        ("postgres://host/db/log", "psycopg", "saferank[postgres]"),
        ("spark://host:7077/log", "pyspark.sql", "saferank[spark]"),
        ("bigquery://project/dataset/log", "google.cloud", "ibis-framework[bigquery]"),
        ("snowflake://user@account/db/schema/log", "snowflake.connector", "ibis-framework[snowflake]"),
    ],
)
def test_a_client_that_is_not_installed(url: str, module: str, needed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [name for name in sys.modules if name.startswith("ibis.backends.postgres")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.delattr(ibis, "postgres", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError) as caught:
        load_log(url)
    assert needed in str(caught.value)


def test_the_password_stays_secret(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the screen, in every file and in every error, encoded or not; as text it needs no place in the URL at all."""
    monkeypatch.chdir(tmp_path)
    encoded = server.partition("team:")[2].partition("@")[0]
    said = ""
    for words in (
        ["-v", "aggregate", f"{server}/log?application_name={encoded}", "--out", "counts"],
        ["split", f"{server}/log", "--out", "train.parquet"],
        ["aggregate", f"{server}/none", "--out", "none"],
        ["aggregate", f"{server}none/log", "--out", "none"],
    ):
        said += "".join(map(str, run_here(words, monkeypatch, capsys)))
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.name for file in files} >= {"manifest.json", "train.parquet"}
    for secret in (PASSWORD, encoded):
        assert secret not in said
        assert not any(secret.encode() in file.read_bytes() for file in files)
    assert json.loads((tmp_path / "counts/manifest.json").read_text())["source"] == without_secrets(f"{server}/log")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert find_source(f"{without_secrets(server)}/log").name == without_secrets(f"{server}/log")
