"""Layouts of a click log, recognised by their columns, each brought to one row per shown document."""

from collections.abc import Mapping, Sequence

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir

from saferank.engine.errors import DataError, UsageError
from saferank.logs.run_query import fetch, short_path
from saferank.logs.source import ADDED, FILE, ROW, LogSource

LONG = ("impression_id", "query_id", "document_id", "position", "click")
NESTED = ("query_id", "document_ids", "clicks")
IDS = ("impression_id", "query_id", "document_id")
GROUPS = tuple(f"group_{number}" for number in range(16))
"""Columns that may tell groups of users apart: other columns of text, of true and false, or of numbers."""
EXTRAS = ("timestamp", "segment", "unit", "reward", *GROUPS)
"""Columns that not every log has."""
WORDS = {1: ("1", "true", "t", "1.0"), 0: ("0", "false", "f", "0.0")}
"""What a click may be as text, in upper or lower case."""
Laid = tuple[ir.Table, dict[str, str]]
"""A log in our layout, and our name -> theirs of the columns that were used."""


def is_nested(table: ir.Table, columns: Mapping[str, str]) -> bool:
    """Whether a table has lists of documents, or its columns were named so."""
    name = columns.get("document_ids", "document_ids")
    return name in table.columns or "document_ids" in columns


def long_log(source: LogSource, columns: Mapping[str, str], asked: Mapping[str, str]) -> Laid:
    """Bring a log with one row per shown document to our names; return it and the columns used."""
    table = source.tables["log"]
    used = pick(table, source.name, LONG, ("timestamp",), columns)
    ids = [used[name] for name in IDS]
    log = table.select(
        **{name: identifier(table, used[name], source.name) for name in IDS},
        position=number(table, used["position"], source.name, ids),
        click=clicks(table, used["click"], source.name, ids),
        **extras(table, used, asked, source.name),
    )
    return log, used


def nested_log(source: LogSource, columns: Mapping[str, str], asked: Mapping[str, str]) -> Laid:
    """Bring a log with one row per impression, and lists in it, to one row per shown document.

    `clicks` are as many numbers as `document_ids`, or, as text, the ids of the clicked documents. Positions count
    from 1 unless `positions` gives them. Without an `impression_id`, each row is one impression, identified by its
    place in the file.
    """
    table = source.tables["log"]
    used = pick(table, source.name, NESTED, ("impression_id", "positions", "timestamp"), columns)
    lists = {name: table[used[name]] for name in ("document_ids", "clicks", "positions") if name in used}
    for name, values in lists.items():
        if not values.type().is_array():
            raise DataError(f"contains {values.type()}, but must contain a list.", file=source.name, column=used[name])
    if "impression_id" in used:
        impression = identifier(table, used["impression_id"], source.name)
    elif source.row_id is not None:
        impression = source.row_id
    else:
        raise missing(table, source.name, {"impression_id": "impression_id"})
    if _zips(table):  # an empty list in place of null: beside a list of documents that is one of another length
        lists = {name: ibis.coalesce(values, ibis.literal([], type=values.type())) for name, values in lists.items()}
    by_id = all(lists[name].type().value_type.is_string() for name in ("document_ids", "clicks"))
    rows = table.select(
        impression_id=impression,
        query_id=identifier(table, used["query_id"], source.name),
        **lists,
        **extras(table, used, asked, source.name),
    )
    return (_clicked_by_id(rows, source.name) if by_id else _shown(rows, source.name)), used


def _zips(table: ir.Table) -> bool:
    """Whether the engine puts lists side by side; PostgreSQL does not, but what is beyond the end of a list is null."""
    return bool(table.get_backend().has_operation(ops.ArrayZip))


def _shown(rows: ir.Table, name: str, *, by_id: bool = False) -> ir.Table:
    """One row per shown document; where the lists differ in length, the missing values are null.

    `by_id`: clicks are ids of clicked documents, in place of a number for each.
    """
    lists = ["document_ids", *([] if by_id else ["clicks"]), *(["positions"] if "positions" in rows.columns else [])]
    first, *others = (rows[column] for column in lists)
    if _zips(rows):
        zipped = rows.mutate(shown=first.zip(*(others or [first]))).unnest("shown", offset="place")
        values = {column: zipped.shown[f"f{place}"] for place, column in enumerate(lists, 1)}
    else:
        longest = ibis.greatest(first.length(), *(other.length() for other in others))
        zipped = rows.mutate(place=ibis.range(0, longest)).unnest("place")
        values = {column: zipped[column][zipped.place] for column in lists}
    document = values["document_ids"]
    flat = zipped.mutate(
        document_id=document,
        click=ibis.coalesce(zipped.clicks.contains(document), False) if by_id else values["clicks"],
        position=values.get("positions", zipped.place + 1),
    )
    return flat.select(
        "impression_id",
        "query_id",
        document_id=identifier(flat, "document_id", name),
        position=number(flat, "position", name, IDS),
        click=clicks(flat, "click", name, IDS),
        **{column: flat[column] for column in EXTRAS if column in flat.columns},
    )


def _clicked_by_id(rows: ir.Table, name: str) -> ir.Table:
    """One row per shown document, and one without position for each click on what was not shown."""
    shown = _shown(rows, name, by_id=True)
    clicks = rows.mutate(document_id=rows.clicks).unnest("document_id")
    not_shown = clicks.filter(~ibis.coalesce(clicks.document_ids.contains(clicks.document_id), False))
    others = not_shown.select(
        *IDS,
        position=ibis.null(shown.position.type()),
        click=ibis.literal(1).cast(shown.click.type()),
        **{column: not_shown[column] for column in shown.columns[5:]},
    )
    return shown.union(others)


# What every layout needs.


def pick(
    table: ir.Table, source: str, required: tuple[str, ...], optional: tuple[str, ...], columns: Mapping[str, str]
) -> dict[str, str]:
    """Return our name -> theirs for the columns that are there; raise for those that are missing."""
    if unknown := sorted({*columns} - {*required, *optional}):
        raise UsageError(f"this layout has no column '{unknown[0]}'; it has {', '.join((*required, *optional))}.")
    wanted = {name: columns.get(name, name) for name in (*required, *optional)}
    used = {name: theirs for name, theirs in wanted.items() if theirs in table.columns}
    absent = {name: wanted[name] for name in wanted if name not in used and (name in required or name in columns)}
    if absent:
        raise missing(table, source, absent)
    return used


def missing(table: ir.Table, source: str, absent: Mapping[str, str]) -> DataError:
    """Return the error for columns that are not there: our name -> theirs."""
    options = " ".join(f"--column {name}=THEIRS" for name in absent)
    one = next(iter(absent.values())) if len(absent) == 1 else None
    what = (
        "there is no such column"
        if one
        else "there are no columns " + ", ".join(f"'{name}'" for name in absent.values())
    )
    remedy = f"If {'it has another name' if one else 'they have other names'} there, use {options}."
    return DataError(f"{what}; the log has {_names(table)}. {remedy}", file=source, column=one)


def _names(table: ir.Table) -> str:
    return ", ".join(name for name in table.columns if name not in ADDED)


def identifier(table: ir.Table, name: str, source: str) -> ir.Value:
    """Return a column of ids: text, or whole numbers as they are, which are quicker to group by."""
    kind = table[name].type()
    if kind.is_string() or kind.is_integer():
        return table[name]
    if kind.is_floating() or kind.is_decimal() or kind.is_nested():
        raise DataError(
            f"contains {kind}, but ids must be text or whole numbers; convert it.", file=source, column=name
        )
    return table[name].cast("string")


def number(table: ir.Table, name: str, source: str, ids: Sequence[str]) -> ir.Value:
    """Return a column of numbers, or of true and false as 1 and 0; `ids` are the columns that identify a row."""
    kind = table[name].type()
    if kind.is_boolean():  # not a cast: DuckDB would have its CSV reader parse `True` as a number
        return ibis.cases((table[name], _small(1)), (~table[name], _small(0)))
    if kind.is_string() and table.get_backend().name != "postgres":  # which cannot try a cast
        bad = table[name].notnull() & table[name].try_cast("float64").isnull()
        _refuse_text(table, name, source, ids, bad, "must contain numbers")
    if not kind.is_numeric():
        raise DataError(f"contains {kind}, but must contain numbers; convert it.", file=source, column=name)
    return table[name]


def clicks(table: ir.Table, name: str, source: str, ids: Sequence[str]) -> ir.Value:
    """Return a column of clicks as numbers: 0 and 1, true and false, or any of `WORDS` as text."""
    if not table[name].type().is_string():
        return number(table, name, source, ids)
    said = table[name].strip().lower()
    known = said.isin([word for words in WORDS.values() for word in words])
    _refuse_text(table, name, source, ids, table[name].notnull() & ~known, "a click is 0 or 1, or true or false")
    return ibis.cases(*((said.isin(words), _small(value)) for value, words in WORDS.items()))


def _small(value: int) -> ir.IntegerScalar:
    return ibis.literal(value, "int8")


def _refuse_text(
    table: ir.Table, name: str, source: str, ids: Sequence[str], bad: ir.BooleanValue, wanted: str
) -> None:
    """Raise for the first `bad` text, if any; name its row, or its ids where rows have no number."""
    place = [column for column in (FILE, ROW) if column in table.columns] or [*ids]
    found = fetch(table.filter(bad).order_by(place).limit(1).select(*dict.fromkeys((*place, name)))).to_pylist()
    for row in found:
        where = "" if ROW in row else " for " + ", ".join(f"{column} {row[column]}" for column in ids)
        message = f"got '{row[name]}'{where}, but {wanted}; correct it, or convert the column."
        file = short_path(row[FILE]) if FILE in row else source
        raise DataError(message, file=file, row=row.get(ROW), column=name)


def extras(table: ir.Table, used: Mapping[str, str], asked: Mapping[str, str], source: str) -> dict[str, ir.Value]:
    """Return the columns that a log may have or not: its timestamp, and those of `EXTRAS` that were asked for."""
    chosen: dict[str, ir.Value] = {}
    ids = [used[ours] for ours in IDS if ours in used]
    if "timestamp" in used:
        chosen["timestamp"] = moment(table, used["timestamp"], source, ids)
    for name, theirs in asked.items():
        if theirs not in table.columns:
            raise DataError(f"there is no such column; there are {_names(table)}.", file=source, column=theirs)
        if name in GROUPS:  # read only for a sample, and as it is
            chosen[name] = table[theirs]
            continue
        reward = name == "reward"
        chosen[name] = number(table, theirs, source, ids).cast("float64") if reward else table[theirs].cast("string")
    return chosen


def moment(table: ir.Table, name: str, source: str, ids: Sequence[str]) -> ir.Value:
    """Return a column of times: timestamps, dates, texts of such, or numbers in a unit of the log's own."""
    kind = table[name].type()
    if kind.is_date():
        return table[name].cast("timestamp")
    if kind.is_string():
        engine, read = table.get_backend().name, table[name].try_cast("timestamp")
        if engine == "postgres":  # which cannot try a cast
            return table[name].cast("timestamp")
        if engine != "duckdb" or ROW in table.columns:  # its CSV reader names the line itself
            bad = table[name].notnull() & (table[name].strip() != "") & read.isnull()
            _refuse_text(table, name, source, ids, bad, "times are written like 2025-10-20 00:25, or in seconds")
        return read
    if not (kind.is_timestamp() or kind.is_numeric()):
        raise DataError(f"contains {kind}, but must contain times or numbers; convert it.", file=source, column=name)
    return table[name]
