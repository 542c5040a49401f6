"""Columns of a table as ids and numbers, checked and converted alike wherever the table comes from."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.features.schema import FILL

ROW_NUMBERS = re.compile(r"__index_level_\d+__|Unnamed: \d+|")
"""Names under which pandas writes the numbers of rows, which are no feature."""


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers, or true and false, which are read as 1 and 0."""
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(is_kind(kind) for is_kind in kinds)


def ids(column: pa.ChunkedArray, name: str, *, file: object, first_row: int = 0) -> pa.ChunkedArray:
    """Return ids as text; a missing one is an error."""
    row = pc.index(pc.is_null(column, nan_is_null=True), True).as_py()
    if row >= 0:
        message = "got null, but every row needs an id; fill it in."
        raise DataError(message, file=file, row=first_row + row, column=name)
    return column.cast(pa.string())


def numbers(
    column: pa.ChunkedArray, name: str, *, file: object, first_row: int = 0, missing: bool = True, infinite: bool = True
) -> NDArray[np.float32]:
    """Return numbers as float32, with NaN for null; true and false are 1 and 0.

    `missing` and `infinite` say whether a row may have none, or one beyond float32; where not, it is an error.
    """
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    exact = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")).to_numpy()
    with np.errstate(over="ignore"):
        values: NDArray[np.float32] = exact.astype(np.float32)
    if missing and infinite:
        return values
    bad = np.flatnonzero(np.isinf(values) if missing else ~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        if np.isnan(exact[row]):
            why = f"which is not a number; {FILL}"
        elif np.isinf(exact[row]):
            why = "which is not finite; replace it"
        else:
            why = "which is too large for float32; scale it down first"
        got = "null" if column[row].as_py() is None else exact[row]
        raise DataError(f"got {got}, {why}.", file=file, row=first_row + row, column=name)
    return values
