"""Logs in an existing engine: a table of PostgreSQL, Spark, BigQuery or Snowflake, given by its URL.

    postgres://user@host:5432/database/table, or .../database/schema/table
    spark://host:7077/table, or .../database/table; without a host, the master is that of Spark's own settings
    bigquery://project/dataset/table
    snowflake://user@account/database/schema/table

Parameters after `?` go to the engine: to libpq, or as settings of the Spark session. PostgreSQL's password is best left
to libpq, which takes it from `PGPASSWORD` or `~/.pgpass`; one in the URL is never shown or written anywhere.
"""

import weakref
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

import ibis
import ibis.expr.types as ir
from ibis.common.exceptions import TableNotFound

from saferank.engine.errors import DataError, UsageError
from saferank.files.table_url import without_secrets

CLIENTS = {
    "postgres": "saferank[postgres]",
    "postgresql": "saferank[postgres]",
    "spark": "saferank[spark]",
    "bigquery": "ibis-framework[bigquery]",
    "snowflake": "ibis-framework[snowflake]",
}
"""Scheme of a URL -> what to install for it."""
FORMS = "postgres://user@host/database/table, spark://host:7077/table, bigquery://project/dataset/table"
UBI = ("ubi_queries", "ubi_events")
LISTED = 20
"""Tables that a message names, at most."""


def open_tables(text: str) -> tuple[str, dict[str, ir.Table]]:
    """Return the name of a log in an engine, without secrets, and its table as `log`; or the two of UBI."""
    name = without_secrets(text)
    try:
        url = urlsplit(text)
        secret, _ = unquote(url.password or ""), url.port
    except ValueError as error:  # its message may hold a piece of the password
        message = "is not a URL; in a password, write / ? # @ as %2F %3F %23 %40, or set PGPASSWORD instead."
        raise UsageError(f"{name}: {message}") from error
    place, _, table = url.path.rpartition("/")
    spark = url.scheme == "spark"
    if not (place or spark):  # only a database
        place, table = url.path, ""
    database = {"database": unquote(place[1:])} if spark and place else {}
    try:
        connection = _spark(url) if spark else _connect(url._replace(path=place, fragment=""))
    except ImportError as error:
        needed = CLIENTS[url.scheme]
        raise UsageError(f"{name}: {url.scheme}:// needs `pip install '{needed}'` ({error}).") from error
    except Exception as error:  # of several classes, by engine
        reason = first_line(error)
        reason = reason.replace(secret, "***") if secret else reason
        remedy = "check the address, the user and the password, and that the engine is running"
        raise DataError(f"cannot be reached ({reason}); {remedy}.", file=name) from error
    try:
        if not table:
            return name, {one: connection.table(one, **database) for one in UBI}
        return name, {"log": connection.table(unquote(table), **database)}
    except TableNotFound as error:
        there = _tables(connection, database)
        what = f"there is no table '{unquote(table)}'" if table else "name a table after the database"
        raise DataError(f"{what}; there are {there}.", file=name) from error
    except Exception as error:  # no such database, or no right to look
        raise DataError(f"cannot be opened ({first_line(error)}); check the URL.", file=name) from error


def first_line(error: Exception) -> str:
    """Return the first line of an engine's error, without the query and the stack."""
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def _tables(connection: Any, database: dict[str, str]) -> str:
    try:
        there = connection.list_tables(**database)
    except Exception:  # no such database
        there = []
    more = [f"{len(there) - LISTED:,} more"] if len(there) > LISTED else []
    return ", ".join(there[:LISTED] + more) or "none that you may read"


def _connect(url: SplitResult) -> Any:
    connection = ibis.connect(urlunsplit(url))
    if connection.name == "postgres":
        weakref.finalize(connection, connection.con.close)
    return connection


def _spark(url: SplitResult) -> Any:
    """Return the session of this process, if there is one, or a new one."""
    from pyspark.sql import SparkSession

    settings = {"spark.ui.showConsoleProgress": "false", "spark.sql.execution.arrow.pyspark.enabled": "true"}
    settings |= dict(parse_qsl(url.query))
    if url.netloc:
        settings["spark.master"] = f"spark://{url.netloc}"
    return ibis.pyspark.connect(SparkSession.builder.config(map=settings).getOrCreate())
