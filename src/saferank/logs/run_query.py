"""Queries of a log, run by its engine, and what is kept of them for others."""

import logging
import os
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot

from saferank.engine.errors import DataError
from saferank.logs.engines import first_line

LOGGER = logging.getLogger(__name__)
SETTINGS: dict[str, Any] = {"memory_limit": "2500MB", "preserve_insertion_order": False}
"""Of DuckDB. What does not fit into its memory goes to disk."""


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings about deprecated calls that Ibis and DuckDB make of each other."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


def fetch(expression: ir.Table) -> pa.Table:
    """Run a query and return its result."""
    try:
        with quietly():
            return expression.to_pyarrow()
    except Exception as error:
        if (told := _csv_error(error)) is not None:
            raise told from error
        if (engine := expression.get_backend().name) == "duckdb":
            raise
        read = ", ".join(sorted({table.name for table in expression.op().find(ops.DatabaseTable)}))
        message = f"{engine} refused a query ({first_line(error)}); correct that, or export the log to Parquet."
        raise DataError(message, file=read) from error


@quietly()
def fetch_sorted(expression: ir.Table, keys: Sequence[str]) -> pa.Table:
    """Run a query and return its result, its rows sorted by those of the keys that it has, texts by their bytes.

    Other engines than DuckDB may sort texts by the rules of a language, so their rows and lists are sorted here.
    `rewards` stay beside their documents in `clicked`.
    """
    keys = [key for key in keys if key in expression.columns]
    if expression.get_backend().name == "duckdb":
        return fetch(expression.order_by(*keys))
    here = connect()
    here.con.register("found", fetch(expression))
    found = here.table("found")
    lists = [name for name, kind in found.schema().items() if kind.is_array() and name != "rewards"]
    if "rewards" in found.columns:
        pairs = found["clicked"].zip(found["rewards"]).sort()
        found = found.mutate(rewards=ibis.ifelse(found["rewards"].isnull(), None, pairs.map(lambda pair: pair["f2"])))
    return fetch(found.mutate(**{name: found[name].sort() for name in lists}).order_by(*keys))


def fetch_row(expression: ir.Table) -> dict[str, Any]:
    """Run a query whose result is one row, and return it."""
    row: dict[str, Any] = fetch(expression).to_pylist()[0]
    return row


@contextmanager
def run_once(expression: ir.Table) -> Iterator[ir.Table]:
    """Let an engine run a query once for several others to read: as a temporary table, or in Spark's cache.

    Where that is not allowed, on a read-only copy of PostgreSQL for one, the query runs again for each of them.
    """
    connection, name = expression.get_backend(), ibis.util.gen_name("saferank")
    spark = connection.name == "pyspark"  # has no temporary tables
    try:
        with quietly():
            kept = expression.cache() if spark else connection.create_table(name, expression, temp=True)
    except Exception as error:
        if connection.name == "duckdb":
            raise
        LOGGER.info("%s keeps no temporary table: %s", connection.name, first_line(error))
        yield expression
        return
    try:
        yield kept
    finally:
        with suppress(Exception):  # of a lost connection: what is temporary went with it
            kept.release() if spark else connection.raw_sql(_drop(name, connection.dialect))


def _drop(name: str, dialect: Any) -> str:
    """Return the statement that drops a table; Ibis and SQLGlot do not agree on how to build it."""
    statement = sqlglot.parse_one("DROP TABLE IF EXISTS kept")
    for table in statement.find_all(sqlglot.exp.Table):
        table.set("this", sqlglot.to_identifier(name, quoted=True))
    return str(statement.sql(dialect))


def _csv_error(error: Exception) -> DataError | None:
    """Return the error for a line of a CSV file that is unlike the first ones, which set the types."""
    found = re.search(r"CSV Error on Line: (\d+)\nOriginal Line: .*\n(.*)", str(error))
    file = re.search(r"^ *file = (.*)$", str(error), re.MULTILINE)
    if found is None or file is None:
        return None
    place: dict[str, Any] = {"file": short_path(file[1]), "line": int(found[1])}
    text = re.match(r"Error when converting column \"(.*)\"\. Could not convert string \"(.*)\" to '(.*)'", found[2])
    if text is None:
        return DataError(f"{found[2].strip()}; correct the line, or leave it out.", **place)
    if text[3].startswith(("TIMESTAMP", "DATE")):  # the type that we ask for, whatever the first lines hold
        remedy = "write times like 2025-10-20 00:25, or as seconds since 1970"
        return DataError(f"got '{text[2]}', which cannot be read as a date; {remedy}.", **place, column=text[1])
    message = f"got '{text[2]}', but the first lines contain {text[3]}; correct it, or convert the log to Parquet."
    return DataError(message, **place, column=text[1])


def short_path(path: str) -> str:
    """Return a path that an engine made absolute as it is called from here."""
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def connect(database: str = ":memory:", **settings: Any) -> Any:
    """Open DuckDB with a limit on its memory, and a folder of its own for what does not fit."""
    folder = tempfile.mkdtemp(prefix="saferank-")
    try:
        connection = ibis.duckdb.connect(database, temp_directory=folder, **SETTINGS, **settings)
        weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    except BaseException:  # not a database, or Ctrl-C meanwhile
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return connection
