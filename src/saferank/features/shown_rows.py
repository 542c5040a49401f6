"""Rows of shown documents, as LightGBM and XGBoost take them, as a log and the features of what it shows."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.ragged import offsets_of, place_in_query, query_of_document
from saferank.files.arrow_tables import Tabular, as_arrow, is_tabular

SOURCE = "X"


def shown_rows(
    features: Tabular | ArrayLike,
    clicks: Any,
    *,
    qid: str | ArrayLike | None = None,
    group: ArrayLike | None = None,
    position: str | ArrayLike | None = None,
    impression: str | ArrayLike | None = None,
    document: str | ArrayLike | None = None,
    timestamp: str | ArrayLike | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Return the log that these rows are, and the features of each query and document in it.

    Args:
        features: One row per shown document, with those of an impression adjacent. What is not named below is a
            feature, by its column in a table, and by its number from 1 in an array.
        clicks: Whether each row was clicked.
        qid: Query of each row. Without it, every impression is a query of its own.
        group: Number of rows of each impression. Without it (and without `impression`), an impression ends where the
            query changes, or where the position does not rise.
        position: Rank of each row from 1, by default its place in the impression.
        impression: Id of each row's impression, by default its number.
        document: Id of each row's document, by default the same for all rows of the query with the same features. Of
            a document whose features change, the last ones are taken.
        timestamp: Time of each row.

        Each of them is an array with one entry per row (except `group`), or the name of a column of the table.
    """
    table = _table(features)
    rows = len(table)
    given = {"query_id": qid, "position": position, "impression_id": impression, "document_id": document}
    given |= {"timestamp": timestamp}
    named = [value for value in given.values() if isinstance(value, str)]
    known = {ours: _column(table, value, ours) for ours, value in given.items() if value is not None}
    click = _column(table, clicks, "clicks")
    table = table.drop_columns([*dict.fromkeys(named)])
    starts = _starts(rows, group, known)
    offsets = np.append(starts, rows)
    number = query_of_document(offsets)
    known.setdefault("impression_id", pa.chunked_array([pa.array(number)]))
    known.setdefault("position", pa.chunked_array([pa.array(place_in_query(offsets) + 1)]))
    known.setdefault("query_id", known["impression_id"])
    known.setdefault("document_id", _documents(table, number))
    log = pa.table({**known, "click": click})
    pair = _codes([known["query_id"], known["document_id"]])
    last = rows - 1 - np.unique(pair[::-1], return_index=True)[1]
    ids = {name: known[name] for name in ("query_id", "document_id")}
    columns = ids | {name: table[name] for name in table.column_names if name not in ids}
    return log, pa.table(columns).take(pa.array(np.sort(last)))


def _table(features: Any) -> pa.Table:
    if hasattr(features, "toarray"):
        raise UsageError("sparse features are not supported; give X.toarray().")
    if is_tabular(features):
        return as_arrow(features, SOURCE)
    values = np.asarray(features)
    if values.ndim != 2:
        raise UsageError(f"features must be a table of rows by columns, got {values.ndim} dimension(s).")
    return pa.table({str(place + 1): np.ascontiguousarray(column) for place, column in enumerate(values.T)})


def _column(table: pa.Table, value: Any, ours: str) -> pa.ChunkedArray:
    """Return one value per row: the column of this name, or the array itself."""
    if isinstance(value, str):
        if value not in table.column_names:
            raise UsageError(f"there is no column '{value}' for {ours}; there are {', '.join(table.column_names)}.")
        return table[value]
    column = value if isinstance(value, (pa.Array, pa.ChunkedArray)) else pa.array(np.asarray(value))
    if len(column) != len(table):
        raise UsageError(f"{len(column)} values of {ours} for {len(table)} rows; give one for each row.")
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _starts(rows: int, group: ArrayLike | None, known: dict[str, pa.ChunkedArray]) -> NDArray[np.int64]:
    """Return the first row of each impression."""
    if group is not None:
        sizes = np.asarray(group, np.int64)
        if sizes.ndim != 1 or (sizes < 1).any() or sizes.sum() != rows:
            raise UsageError(f"the sizes of the groups add up to {sizes.sum()}, but there are {rows} rows.")
        return offsets_of(sizes)[:-1]
    if "impression_id" not in known and "query_id" not in known:
        raise UsageError("say which rows belong together: qid=, group= or impression=.")
    code = _codes([known.get("impression_id", known.get("query_id"))])
    new = np.diff(code, prepend=-1) != 0
    if "impression_id" in known:
        if len(np.unique(code[new])) != new.sum():
            raise UsageError("the rows of an impression are not together; sort the rows by impression.")
    elif "position" in known:
        new[1:] |= np.diff(known["position"].to_numpy()) <= 0
    return np.flatnonzero(new)


def _documents(table: pa.Table, impression: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return ids of rows by their features; rows of one impression that are alike are different documents."""
    code = _codes([table[name] for name in table.column_names])
    order = np.lexsort((np.arange(len(code)), code, impression))
    alike = (np.diff(impression[order]) == 0) & (np.diff(code[order]) == 0)
    again = np.empty(len(code), np.int64)
    again[order] = place_in_query(np.append(np.flatnonzero(np.append(True, ~alike)), len(code)))
    return pa.chunked_array([_text(code, again)])


def _text(code: NDArray[np.int64], again: NDArray[np.int64]) -> pa.Array:
    return pa.array([f"{one}" if place == 0 else f"{one}-{place}" for one, place in zip(code, again, strict=True)])


def _codes(columns: list[pa.ChunkedArray | None]) -> NDArray[np.int64]:
    """Return a number for each row, the same for rows that agree in all columns."""
    code = np.zeros(len(columns[0] or ()), np.int64)
    for column in columns:
        assert column is not None
        encoded = column.combine_chunks().dictionary_encode("encode")
        code = np.unique(code * (len(encoded.dictionary) + 1) + np.asarray(encoded.indices), return_inverse=True)[1]
    return code
