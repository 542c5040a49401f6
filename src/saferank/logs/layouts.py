"""Layouts of a click log, told apart by their columns, each brought to one row per shown document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ibis
import ibis.expr.types as ir
from ibis.common.exceptions import IbisError

from saferank.engine.errors import DataError, UsageError
from saferank.logs.source import ADDED, FILE, ROW, LogSource, fetch, short_path

LONG = ("impression_id", "query_id", "document_id", "position", "click")
NESTED = ("query_id", "document_ids", "clicks")
IDS = ("impression_id", "query_id", "document_id")
EXTRAS = ("timestamp", "segment", "unit", "reward")
"""Columns that not every log has."""
OPTIONAL = {"long": ("timestamp",), "nested": ("impression_id", "positions", "timestamp")}


def is_nested(table: ir.Table, columns: Mapping[str, str]) -> bool:
    """Whether a table has lists of documents, or its columns were named so."""
    name = columns.get("document_ids", "document_ids")
    return name in table.columns or "document_ids" in columns


def long_log(
    source: LogSource, columns: Mapping[str, str], asked: Mapping[str, str]
) -> tuple[ir.Table, dict[str, str]]:
    """Bring a log with one row per shown document to our names; return it and the columns used."""
    table = source.tables["log"]
    used = pick(table, source.name, LONG, OPTIONAL["long"], columns)
    ids = [used[name] for name in IDS]
    log = table.select(
        impression_id=identifier(table, used["impression_id"], source.name),
        query_id=identifier(table, used["query_id"], source.name),
        document_id=identifier(table, used["document_id"], source.name),
        position=number(table, used["position"], source.name, ids),
        click=number(table, used["click"], source.name, ids),
        **extras(table, used, asked, source.name),
    )
    return log, used


def nested_log(
    source: LogSource, columns: Mapping[str, str], asked: Mapping[str, str]
) -> tuple[ir.Table, dict[str, str]]:
    """Bring a log with one row per impression, and lists in it, to one row per shown document.

    `clicks` are as many numbers as `document_ids`, or, as text, the ids of the clicked documents. Positions count
    from 1 unless `positions` gives them. Without an `impression_id`, each row is one, known by its place in the file.
    """
    table = source.tables["log"]
    used = pick(table, source.name, NESTED, OPTIONAL["nested"], columns)
    lists = [used[name] for name in ("document_ids", "clicks", "positions") if name in used]
    for name in lists:
        if not table[name].type().is_array():
            raise DataError(f"holds {table[name].type()}, but must hold a list.", file=source.name, column=name)
    if "impression_id" in used:
        impression = identifier(table, used["impression_id"], source.name)
    elif source.row_id is not None:
        impression = source.row_id
    else:
        raise missing(table, source.name, {"impression_id": "impression_id"})
    by_id = all(table[used[name]].type().value_type.is_string() for name in ("document_ids", "clicks"))
    rows = table.select(
        impression_id=impression,
        query_id=identifier(table, used["query_id"], source.name),
        documents=_list(table[used["document_ids"]]),
        clicks=_list(table[used["clicks"]]),
        **({"positions": _list(table[used["positions"]])} if "positions" in used else {}),
        **extras(table, used, asked, source.name),
    )
    return (_clicked_by_id(rows, source.name) if by_id else _clicked_by_flag(rows, source.name)), used


def _list(values: ir.ArrayValue) -> ir.ArrayValue:
    """Return lists, empty ones in place of null: beside a list of documents that is one of another length."""
    return ibis.coalesce(values, ibis.literal([], type=values.type()))


def _clicked_by_flag(rows: ir.Table, name: str) -> ir.Table:
    """One row per shown document; where the lists differ in length, the missing values are null."""
    parts = [rows.documents, rows.clicks, *([rows.positions] if "positions" in rows.columns else [])]
    zipped = rows.mutate(shown=parts[0].zip(*parts[1:])).unnest("shown", offset="place")
    return _shown(zipped, document="f1", click="f2", position="f3", name=name)


def _clicked_by_id(rows: ir.Table, name: str) -> ir.Table:
    """One row per shown document, and one without position for each click on what was not shown."""
    given = "positions" in rows.columns
    zipped = rows.mutate(shown=rows.documents.zip(rows.positions if given else rows.documents))
    zipped = zipped.unnest("shown", offset="place")
    clicked = ibis.coalesce(zipped.clicks.contains(zipped.shown["f1"]), False)
    shown = _shown(zipped.mutate(hit=clicked), document="f1", click=None, position="f2", name=name)
    hits = rows.mutate(document_id=rows.clicks).unnest("document_id")
    strangers = hits.filter(~ibis.coalesce(hits.documents.contains(hits.document_id), False))
    others = strangers.select(
        impression_id=strangers.impression_id,
        query_id=strangers.query_id,
        document_id=strangers.document_id,
        position=ibis.null(shown.position.type()),
        click=ibis.literal(1).cast(shown.click.type()),
        **{column: strangers[column] for column in shown.columns[5:]},
    )
    return shown.union(others)


def _shown(zipped: ir.Table, *, document: str, click: str | None, position: str, name: str) -> ir.Table:
    given = "positions" in zipped.columns
    flat = zipped.mutate(
        document_id=zipped.shown[document],
        click=zipped.shown[click] if click else zipped.hit,
        position=zipped.shown[position] if given else zipped.place + 1,
    )
    return flat.select(
        impression_id=flat.impression_id,
        query_id=flat.query_id,
        document_id=identifier(flat, "document_id", name),
        position=number(flat, "position", name, IDS),
        click=number(flat, "click", name, IDS),
        **{column: flat[column] for column in EXTRAS if column in flat.columns},
    )


# What every layout needs.


def pick(
    table: ir.Table, source: str, required: tuple[str, ...], optional: tuple[str, ...], columns: Mapping[str, str]
) -> dict[str, str]:
    """Return our name -> theirs for the columns that are there; raise for those that are missing."""
    unknown = set(columns) - {*required, *optional}
    if unknown:
        raise UsageError(
            f"this layout has no column '{sorted(unknown)[0]}'; it has {', '.join((*required, *optional))}."
        )
    wanted = {name: columns.get(name, name) for name in (*required, *optional)}
    used = {name: theirs for name, theirs in wanted.items() if theirs in table.columns}
    absent = {name: wanted[name] for name in wanted if name not in used and (name in required or name in columns)}
    if absent:
        raise missing(table, source, absent)
    return used


def missing(table: ir.Table, source: str, absent: Mapping[str, str]) -> DataError:
    """Return the error for columns that are not there: our name -> theirs."""
    options = " ".join(f"--column {name}=THEIRS" for name in absent)
    if len(absent) == 1:
        (theirs,) = absent.values()
        message = f"there is no such column; there are {_names(table)}. If one of them holds it, say so: {options}."
        return DataError(message, file=source, column=theirs)
    listed = ", ".join(f"'{theirs}'" for theirs in absent.values())
    return DataError(
        f"there are no columns {listed}; there are {_names(table)}. If some of them hold these, say so: {options}.",
        file=source,
    )


def _names(table: ir.Table) -> str:
    return ", ".join(name for name in table.columns if name not in ADDED)


def identifier(table: ir.Table, name: str, source: str) -> ir.Value:
    """Return a column of ids: text, or whole numbers as they are, which are quicker to group by."""
    kind = table[name].type()
    if kind.is_string() or kind.is_integer():
        return table[name]
    if kind.is_floating() or kind.is_decimal() or kind.is_nested():
        raise DataError(f"holds {kind}, but an id is a text or a whole number; convert it.", file=source, column=name)
    return table[name].cast("string")


def number(table: ir.Table, name: str, source: str, ids: Sequence[str]) -> ir.Value:
    """Return a column of numbers, or of true and false as 1 and 0; `ids` are the columns that tell a row."""
    kind = table[name].type()
    if kind.is_boolean():
        return table[name].cast("int8")
    if kind.is_string():
        _refuse_text(table, name, source, ids)
    if not kind.is_numeric():
        raise DataError(f"holds {kind}, but must hold numbers; convert it.", file=source, column=name)
    return table[name]


def _refuse_text(table: ir.Table, name: str, source: str, ids: Sequence[str]) -> None:
    """Raise for the first text that is no number, if any; tell its row, or its ids where rows have no number."""
    bad = table.filter(table[name].notnull() & table[name].try_cast("float64").isnull())
    place = [column for column in (FILE, ROW) if column in table.columns] or [*ids]
    try:
        found = fetch(bad.order_by(place).limit(1).select(*dict.fromkeys((*place, name)))).to_pylist()
    except IbisError:  # an engine that cannot try
        return
    for row in found:
        where = "" if ROW in row else " for " + ", ".join(f"{column} {row[column]}" for column in ids)
        raise DataError(
            f"got '{row[name]}'{where}, but must hold numbers; correct it, or convert the column.",
            file=short_path(row[FILE]) if FILE in row else source,
            row=row.get(ROW),
            column=name,
        )


def extras(table: ir.Table, used: Mapping[str, str], asked: Mapping[str, str], source: str) -> dict[str, ir.Value]:
    """Return the columns that a log may have or not: its timestamp, and those of `EXTRAS` that were asked for."""
    chosen: dict[str, ir.Value] = {}
    if "timestamp" in used:
        chosen["timestamp"] = moment(table, used["timestamp"], source)
    for name, theirs in asked.items():
        if theirs not in table.columns:
            raise DataError(f"there is no such column; there are {_names(table)}.", file=source, column=theirs)
        if name == "reward":
            ids = [used[ours] for ours in IDS if ours in used]
            chosen[name] = number(table, theirs, source, ids).cast("float64")
        else:
            chosen[name] = table[theirs].cast("string")
    return chosen


def moment(table: ir.Table, name: str, source: str) -> ir.Value:
    """Return a column of times: timestamps, dates, texts of such, or numbers in a unit of the log's own."""
    kind = table[name].type()
    if kind.is_date():
        return table[name].cast("timestamp")
    if kind.is_string():
        return table[name].try_cast("timestamp")
    if not (kind.is_timestamp() or kind.is_numeric()):
        raise DataError(f"holds {kind}, but must hold times or numbers; convert it.", file=source, column=name)
    return table[name]
