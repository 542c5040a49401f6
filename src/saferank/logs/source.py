"""Where a click log lies: files, a table of a DuckDB file, of another engine or in memory, a session text."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from saferank.engine.errors import DataError, UsageError
from saferank.files.arrow_tables import Tabular, as_arrow, is_tabular, table_digest
from saferank.files.table_files import KINDS, file_kind, of_one_kind, table_files
from saferank.files.table_url import without_secrets
from saferank.logs.aggregated_log import is_aggregated
from saferank.logs.engines import CLIENTS, FORMS, UBI, first_line, open_tables
from saferank.logs.run_query import connect, fetch, quietly
from saferank.logs.session_log import is_session_log, read_session_log

ROW, FILE = ADDED = ("file_row_number", "filename")
"""Columns that DuckDB adds to Parquet files when asked: they identify a row, however often it is read."""
LARGEST_HASHED = 1 << 28
"""Files larger than this are identified by their size alone: hashing them would take longer than reading them."""


@dataclass(frozen=True, eq=False)
class LogSource:
    """A log where it lies: one table called `log`, or the two of UBI, `ubi_queries` and `ubi_events`."""

    name: str
    """For messages and manifests."""
    tables: dict[str, ir.Table]
    files: tuple[Path, ...] = ()
    row_id: ir.Value | None = None
    """What identifies a row of `log`, the same in every query, if the source has such a thing."""
    session: bool = False
    """Whether it was read from the text of a session log."""
    memory: dict[str, Any] | None = None
    """Name, size and SHA-256 of a table that is in memory."""

    def describe_files(self) -> list[dict[str, Any]]:
        """Return name, size and SHA-256 of each file, or of the table in memory; of a folder only the name."""
        described = [] if self.memory is None else [self.memory]
        for file in self.files:
            size, digest = file.stat().st_size if file.is_file() else None, None
            if size is not None and size <= LARGEST_HASHED:
                with file.open("rb") as opened:
                    digest = hashlib.file_digest(opened, "sha256").hexdigest()
            described.append({"name": file.name, "bytes": size, "sha256": digest})
        return described


@quietly()
def find_source(source: str | Path | ir.Table | Tabular) -> LogSource:
    """Open a path, a pattern such as `day-*.parquet`, a folder, `duckdb://file.db/table`, an Ibis table or a DataFrame.

    Ibis tables, and those that a URL names (see `engines`), stay in their engine. Other tables in memory are read by
    DuckDB as they are, without a copy.
    """
    if isinstance(source, ir.Table):
        return LogSource("an Ibis table", {"log": source})
    if is_tabular(source):
        return _in_memory(as_arrow(source, "the log"))
    text = str(source)
    if text.startswith("duckdb://"):
        return _database(text)
    if "://" in text:
        if text.partition("://")[0] in CLIENTS:
            return LogSource(*open_tables(text))
        places = f"a file, a folder, a pattern, duckdb://file.db/table, or the URL of a table, such as {FORMS}"
        raise UsageError(f"{without_secrets(text)}: give {places}.")
    if is_aggregated(text):
        raise UsageError(f"{text} is an aggregated log; give the log that it was made from.")
    connection = connect()
    if pair := _ubi_files(Path(text)):
        tables = {name: _read(connection, [file], text) for name, file in pair.items()}
        return LogSource(text, tables, (*pair.values(),))
    files = _files(text)
    if file_kind(files[0]) is None:
        table = connection.create_table("log", ibis.memtable(read_session_log(files)), temp=True)
        return LogSource(text, {"log": table}, (*files,), session=True)
    table = _read(connection, files, text)
    if not len(fetch(table.select(table.columns[0]).limit(1))):  # a CSV file without rows does not say what it holds
        raise DataError("has no rows; there is nothing to aggregate.", file=text)
    return LogSource(text, {"log": table}, (*files,), _row_id(table, files) if ROW in table.columns else None)


def _in_memory(rows: pa.Table) -> LogSource:
    """Return a log in memory, which its digest identifies.

    Its rows have no ids: whoever filters or sorts a table would change them, and with them the parts of impressions.
    """
    if not len(rows):
        raise DataError("has no rows; there is nothing to aggregate.", file="the log")
    digest = table_digest(rows) if rows.nbytes <= LARGEST_HASHED else None
    name = f"a table of {len(rows):,} rows"
    connection = connect()
    connection.con.register("log", rows.append_column(ROW, pa.array(np.arange(len(rows)))))
    described = {"name": name, "bytes": rows.nbytes, "sha256": digest}
    return LogSource(name, {"log": connection.table("log")}, memory=described)


def _row_id(table: ir.Table, files: list[Path]) -> ir.Value:
    """Return the number of each row in its file, after the file's name if there are several."""
    if len(files) == 1:
        return table[ROW]
    folder = os.path.commonpath([file.parent for file in files])  # the same wherever the folder is moved to
    begin = len(os.path.join(folder, "")) if folder else 0
    return table[FILE].cast("string").substr(begin) + ":" + table[ROW].cast("string")


def _database(text: str) -> LogSource:
    path, table = text.removeprefix("duckdb://"), ""
    if not Path(path).is_file():
        path, _, table = path.rpartition("/")
    if not Path(path).is_file():
        raise DataError("there is no such database; write duckdb://file.db/table.", file=text)
    try:
        connection = connect(path, read_only=True)
    except Exception as error:  # of several classes, by version
        raise DataError(f"is not a DuckDB database ({first_line(error)}).", file=path) from error
    there = sorted(name for (name,) in connection.con.execute("SHOW TABLES").fetchall())
    if table:
        if table not in there:
            raise DataError(f"there is no table '{table}'; there are {', '.join(there) or 'none'}.", file=path)
        log = connection.table(table)
        return LogSource(text, {"log": log}, (Path(path),), log.rowid() if _has_row_ids(log) else None)
    if {*UBI} <= {*there}:
        return LogSource(text, {name: connection.table(name) for name in UBI}, (Path(path),))
    raise DataError(f"name a table, as in {text}/TABLE; there are {', '.join(there) or 'none'}.", file=text)


def _has_row_ids(table: ir.Table) -> bool:
    """Whether it is a table, and not a view."""
    try:
        fetch(table.select(row=table.rowid()).limit(1))
    except Exception:
        return False
    return True


def _ubi_files(folder: Path) -> dict[str, Path]:
    """Return the two files (or folders of Parquet files) of a UBI log, if the folder holds them."""
    found = {}
    for name in UBI:
        there = [path for path in sorted(folder.glob(f"{name}*")) if path.is_dir() or file_kind(path) is not None]
        if not there:
            return {}
        if len(there) > 1:
            raise DataError(f"contains {there[0].name} and {there[1].name}; keep only one of them.", file=folder)
        found[name] = there[0]
    return found


def _files(text: str) -> list[Path]:
    """Return the files of a log, all of one kind."""
    files = table_files(text, tuple(suffix for suffixes in KINDS.values() for suffix in suffixes))
    files = of_one_kind(files, text)
    if file_kind(files[0]) is None and not is_session_log(files[0]):
        known = ", ".join(suffixes[0] for suffixes in KINDS.values())
        raise DataError(
            f"is not a session log, and its name does not end in one of {known}; rename it if it is such a file.",
            file=files[0],
        )
    return files


def _read(connection: Any, files: list[Path], name: str) -> ir.Table:
    files = table_files(files[0], (".parquet",)) if files[0].is_dir() else files
    kind, several = file_kind(files[0]), len(files) > 1
    options = {"file_row_number": True, "filename": several} if kind == "parquet" else {}
    try:
        return getattr(connection, f"read_{kind}")([str(file) for file in files], union_by_name=several, **options)
    except Exception as error:  # of several classes, by version
        for file in files if kind == "parquet" else ():
            try:
                pq.read_schema(file)
            except (pa.ArrowInvalid, OSError) as broken:
                message = (
                    "is not a Parquet file, or is truncated; write it again, or rename it if it is another format."
                )
                raise DataError(message, file=file) from broken
        reason = first_line(error)
        for file in files:
            reason = reason.replace(os.path.abspath(file), str(file))
        raise DataError(f"cannot be read ({reason}); correct it, or write it again.", file=name) from error
