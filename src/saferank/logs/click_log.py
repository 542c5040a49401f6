"""A click log, whatever its source and layout: one Ibis table with one row per shown document."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ibis.expr.types as ir

from saferank.engine.errors import DataError, UsageError
from saferank.files.arrow_tables import Tabular
from saferank.logs.layouts import GROUPS, LONG, NESTED, is_nested, long_log, nested_log
from saferank.logs.rewards import check_reward
from saferank.logs.segments import check_segment
from saferank.logs.source import ADDED, LogSource, find_source
from saferank.logs.ubi import ubi_log

LAYOUTS = ("long", "nested", "ubi", "session")


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Rows that an engine still holds: nothing is read before it is aggregated.

    Columns: `impression_id`, `query_id`, `document_id` (text, or whole numbers if the log has such ids), `position`
    from 1, `click` (0 or 1), `timestamp` if the log has it, and `segment`, `unit` and `reward` if they were
    asked for. A row with a click and no position is a click on what was not shown.
    """

    table: ir.Table
    source: LogSource
    layout: str
    columns: dict[str, str]
    """Our name of each column -> the log's."""
    asked: dict[str, str]
    """The same of the columns that were asked for: `segment`, `unit` (a user or session), `reward` of a click."""
    reward_most: float | None = None
    """The most that a click can be worth."""
    groups: tuple[str, ...] = ()
    """Those of them that may tell groups of users apart, in the order of `GROUPS`."""
    other_columns: tuple[str, ...] = ()
    """Columns of the log that are not used."""


def open_log(
    source: str | Path | ir.Table | Tabular,
    *,
    columns: Mapping[str, str] | None = None,
    other_names: Mapping[str, str] | None = None,
    layout: str = "auto",
    segment: str | None = None,
    unit: str | None = None,
    reward: str | None = None,
    reward_most: float | None = None,
) -> ClickLog:
    """Open a log: Parquet or CSV files, a pattern, a folder, the URL of a table, or a table in memory.

    The URL is `duckdb://file.db/table`, `postgres://user@host/database/table` or another of `engines`. A table in
    memory is an Ibis table, which stays in its engine, a pandas or Polars DataFrame, or a pyarrow Table.

    `columns` maps our names to those of the log where they differ, as in `{"click": "clicked"}`; `other_names` does so
    where the log has the other name and not ours. `layout` is recognised by the columns unless given: `long`, `nested`,
    `ubi` or `session`; `ubi:purchase` takes another action than clicks.
    `segment`, `unit` and `reward` name further columns of the log; with a reward, `reward_most` is its largest value.
    """
    columns = dict(columns or {})
    name, _, action = layout.partition(":")
    if name not in ("auto", *LAYOUTS) or (action and name != "ubi"):
        raise UsageError(f"there is no layout '{layout}'; choose from auto, {', '.join(LAYOUTS)}.")
    found = find_source(source)
    is_ubi = "ubi_queries" in found.tables
    there = () if is_ubi else found.tables["log"].columns
    for ours, theirs in (other_names or {}).items():
        if ours not in columns and ours not in there and theirs in there:
            columns[ours] = theirs
    if name == "auto":
        nested = not is_ubi and is_nested(found.tables["log"], columns)
        name = "ubi" if is_ubi else "session" if found.session else "nested" if nested else "long"
    if is_ubi and name != "ubi":
        raise DataError(f"contains ubi_queries and ubi_events, so its layout is ubi, not {name}.", file=found.name)
    if name == "ubi" and not is_ubi:
        message = "the layout ubi has two tables: give a folder or a DuckDB file with ubi_queries and ubi_events."
        raise DataError(message, file=found.name)
    check_reward(reward, reward_most, name)
    named = {"segment": segment, "unit": unit, "reward": reward}
    asked = {ours: theirs for ours, theirs in named.items() if theirs is not None}
    groups = () if name in ("ubi", "session") else _groups(found.tables["log"], columns)
    if name == "ubi":
        table, used = ubi_log(found, columns, asked, action or None)
    else:
        read = nested_log if name == "nested" else long_log
        table, used = read(found, columns, asked | dict(zip(GROUPS, groups, strict=False)))
    check_segment(segment, used)
    unused = {*found.tables["ubi_queries" if is_ubi else "log"].columns} - {*used.values(), *asked.values(), *ADDED}
    return ClickLog(table, found, name, used, asked, reward_most, groups, tuple(sorted(unused)))


def _groups(log: ir.Table, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return columns of text, of true and false, or of numbers that no other use is known of; texts first.

    Numbers with fractions come last: pandas makes them of whole numbers if one is missing.
    """
    known = {*columns.values(), *LONG, *NESTED, "positions", "timestamp", *ADDED}
    kinds = {name: log[name].type() for name in log.columns if name not in known}
    texts = [name for name, kind in kinds.items() if kind.is_string() or kind.is_boolean()]
    whole = [name for name, kind in kinds.items() if kind.is_integer()]
    others = [name for name, kind in kinds.items() if kind.is_floating() or kind.is_decimal()]
    return (*texts, *whole, *others)
