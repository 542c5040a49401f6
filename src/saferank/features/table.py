"""Raw features from a table with named columns: a pandas or Polars DataFrame, a pyarrow or Ibis table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.categories import Categories, one_hot, one_hot_names
from saferank.features.columns import ids, is_numeric, numbers
from saferank.files.arrow_tables import plain_text

QUERY = "query_id"
SOURCE = "the table"


def column_names(features: Any) -> list[Any] | None:
    """Return the names of the columns, or None for an array, and for a table whose columns are only numbered."""
    names = getattr(features, "column_names", getattr(features, "columns", None))  # pyarrow's `columns` are the values
    if names is None or callable(names) or [*names] == [*range(len(names))]:
        return None
    return list(names)


def read_table(
    table: Any,
    features: Sequence[str],
    offsets: ArrayLike | None = None,
    *,
    categories: Categories | None = None,
    query: str = QUERY,
) -> RankingData:
    """Return these features of the table by name, and the values of `categories`, whatever other columns there are.

    Without `offsets`, the column `query_id`, or else `query`, says which rows are of one query (they must be
    contiguous); without either, all rows are of one query. A missing value is NaN. Rows in error messages count from 0.
    """
    table = table.to_pyarrow() if hasattr(table, "to_pyarrow") else table  # Ibis
    found, rows, categories = column_names(table) or [], len(table), categories or {}
    for name in (*features, *categories):
        if name not in found:
            there = ", ".join(map(str, found))
            message = f"the policy needs this column; there are {there}."
            raise DataError(message, file=SOURCE, column=name)
    if rows == 0:
        raise DataError("has no rows; there is nothing to rank.", file=SOURCE)
    values = np.empty((rows, len(features)), np.float32)
    for place, name in enumerate(features):
        column = _column(table, name, found)
        if not (is_numeric(column.type) or pa.types.is_null(column.type)):
            raise DataError(f"contains {column.type}, but must contain numbers; convert it.", file=SOURCE, column=name)
        values[:, place] = numbers(column, name, file=SOURCE)  # NaN and infinite ones are for the schema to judge
    encoded = [one_hot(_column(table, name, found), values) for name, values in categories.items()]
    values = np.hstack([values, *encoded]) if encoded else values
    if offsets is None:
        named = [name for name in (QUERY, query) if name in found and name not in features]
        offsets = query_offsets(_column(table, named[0], found)) if named else [0, rows]
    return RankingData(
        values,
        np.asarray(offsets),
        feature_names=(*features, *one_hot_names(categories)),
        source=SOURCE,
        categories=categories,
        check_finite=False,
    )


def _column(table: Any, name: str, found: list[Any]) -> pa.ChunkedArray:
    if found.count(name) > 1:
        raise DataError("two columns have this name; leave one of them out.", file=SOURCE, column=name)
    values = table[name]
    try:
        column = pa.chunked_array(values if hasattr(values, "__arrow_c_stream__") else [pa.array(values)])
    except pa.ArrowException as error:
        message = f"mixes several types of values ({str(error).rstrip('.')}); convert them to one."
        raise DataError(message, file=SOURCE, column=name) from error
    column = plain_text(column)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def query_offsets(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return where the rows of each query begin, and where the last one ends."""
    column = ids(column, QUERY, file=SOURCE)
    encoded = column.combine_chunks().dictionary_encode()  # numbered in the order of first appearance
    steps = np.diff(np.asarray(encoded.indices))
    if (steps < 0).any():
        row = int(np.argmax(steps < 0)) + 1
        message = f"query {column[row]} appears again after other queries; sort the rows by query."
        raise DataError(message, file=SOURCE, row=row, column=QUERY)
    return np.concatenate([[0], np.flatnonzero(steps) + 1, [len(column)]])
