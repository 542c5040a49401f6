"""Layouts of a click log, told apart by their columns, each brought to one row a shown document."""

from __future__ import annotations

from collections.abc import Mapping

import ibis
import ibis.expr.types as ir

from saferank.data.log_source import ADDED, LogSource
from saferank.errors import DataError, UsageError

LONG = ("impression_id", "query_id", "document_id", "position", "click")
NESTED = ("query_id", "document_ids", "clicks")
OPTIONAL = {"long": ("timestamp",), "nested": ("impression_id", "positions", "timestamp")}


def is_nested(table: ir.Table, columns: Mapping[str, str]) -> bool:
    """Whether a table has lists of documents, or its columns were named so."""
    name = columns.get("document_ids", "document_ids")
    return name in table.columns or "document_ids" in columns


def long_log(source: LogSource, columns: Mapping[str, str], segment: str | None) -> tuple[ir.Table, dict[str, str]]:
    """Bring a log with one row a shown document to our names; return it and the columns used."""
    table = source.tables["log"]
    used = pick(table, source.name, LONG, OPTIONAL["long"], columns)
    log = table.select(
        impression_id=identifier(table, used["impression_id"], source.name),
        query_id=identifier(table, used["query_id"], source.name),
        document_id=identifier(table, used["document_id"], source.name),
        position=number(table, used["position"], source.name),
        click=number(table, used["click"], source.name),
        **extras(table, used, segment, source.name),
    )
    return log, used


def nested_log(source: LogSource, columns: Mapping[str, str], segment: str | None) -> tuple[ir.Table, dict[str, str]]:
    """Bring a log with one row an impression, and lists in it, to one row a shown document.

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
        raise missing(table, source.name, "impression_id", "impression_id")
    by_id = all(table[used[name]].type().value_type.is_string() for name in ("document_ids", "clicks"))
    rows = table.select(
        impression_id=impression,
        query_id=identifier(table, used["query_id"], source.name),
        documents=_list(table[used["document_ids"]]),
        clicks=_list(table[used["clicks"]]),
        **({"positions": _list(table[used["positions"]])} if "positions" in used else {}),
        **extras(table, used, segment, source.name),
    )
    return (_clicked_by_id(rows, source.name) if by_id else _clicked_by_flag(rows, source.name)), used


def _list(values: ir.ArrayValue) -> ir.ArrayValue:
    """Return lists, empty ones in place of null: beside a list of documents that is one of another length."""
    return ibis.coalesce(values, ibis.literal([], type=values.type()))


def _clicked_by_flag(rows: ir.Table, name: str) -> ir.Table:
    """One row a shown document; where the lists differ in length, the missing values are null."""
    parts = [rows.documents, rows.clicks, *([rows.positions] if "positions" in rows.columns else [])]
    zipped = rows.mutate(shown=parts[0].zip(*parts[1:])).unnest("shown", offset="place")
    return _shown(zipped, document="f1", click="f2", position="f3", name=name)


def _clicked_by_id(rows: ir.Table, name: str) -> ir.Table:
    """One row a shown document, and one without position for each click on what was not shown."""
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
        position=number(flat, "position", name),
        click=number(flat, "click", name),
        **{column: flat[column] for column in ("timestamp", "segment") if column in flat.columns},
    )


# What every layout needs.


def pick(
    table: ir.Table, source: str, required: tuple[str, ...], optional: tuple[str, ...], columns: Mapping[str, str]
) -> dict[str, str]:
    """Return our name -> theirs for the columns that are there; raise for one that is missing."""
    unknown = set(columns) - {*required, *optional}
    if unknown:
        raise UsageError(
            f"this layout has no column '{sorted(unknown)[0]}'; it has {', '.join((*required, *optional))}."
        )
    used = {}
    for name in (*required, *optional):
        theirs = columns.get(name, name)
        if theirs in table.columns:
            used[name] = theirs
        elif name in required or name in columns:
            raise missing(table, source, name, theirs)
    return used


def missing(table: ir.Table, source: str, name: str, theirs: str) -> DataError:
    """Return the error for a column that is not there."""
    return DataError(
        f"there is no such column; there are {_names(table)}. If one of them holds it, say so: --column {name}=THEIRS.",
        file=source,
        column=theirs,
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


def number(table: ir.Table, name: str, source: str) -> ir.Value:
    """Return a column of numbers, or of true and false as 1 and 0."""
    kind = table[name].type()
    if kind.is_boolean():
        return table[name].cast("int8")
    if not kind.is_numeric():
        raise DataError(f"holds {kind}, but must hold numbers; convert it.", file=source, column=name)
    return table[name]


def extras(table: ir.Table, used: Mapping[str, str], segment: str | None, source: str) -> dict[str, ir.Value]:
    """Return the columns that a log may have or not: timestamp, and the segment if one was asked for."""
    chosen: dict[str, ir.Value] = {}
    if "timestamp" in used:
        chosen["timestamp"] = moment(table, used["timestamp"], source)
    if segment is not None:
        if segment not in table.columns:
            raise DataError(f"there is no such column; there are {_names(table)}.", file=source, column=segment)
        chosen["segment"] = table[segment].cast("string")
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
