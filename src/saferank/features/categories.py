"""Columns of text as features: one column of 0 and 1 for each of a few values.

The values are those that a column has when a policy is learned. They are kept in its schema, so that new data becomes
the same features; there, a value that is not among them, or that is missing, is 0 in all of these columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Categories: TypeAlias = Mapping[str, Sequence[str]]
"""Column -> its values, each of which is a feature."""
MOST_VALUES = 50
"""Values of one column, at most."""


def one_hot_name(column: str, value: str) -> str:
    """Return the name of the feature that says whether a document has this value.

    >>> one_hot_name("brand", "Acme")
    'brand=Acme'
    """
    return f"{column}={value}"


def one_hot_names(categories: Categories) -> tuple[str, ...]:
    """Return the names of all features that these categories become."""
    return tuple(one_hot_name(column, value) for column, values in categories.items() for value in values)


def one_hot(column: pa.ChunkedArray, values: Sequence[str]) -> NDArray[np.float32]:
    """(row, value): 1 where the row has the value, else 0."""
    import pyarrow as pa  # not for a service, which has no Arrow tables
    import pyarrow.compute as pc

    place = pc.index_in(column.cast(pa.string()), value_set=pa.array(values, pa.string()))
    code: NDArray[np.int64] = pc.fill_null(place, -1).to_numpy()
    found: NDArray[np.float32] = (code[:, None] == np.arange(len(values))).astype(np.float32)
    return found


def values_of(blocks: Iterable[pa.ChunkedArray], column: str, *, file: object) -> tuple[str, ...]:
    """Return the values of a column in order, of which there must be a few; missing and empty ones do not count."""
    import pyarrow as pa

    found = set[str]()
    for block in blocks:
        found |= {value for value in block.cast(pa.string()).unique().to_pylist() if value}
        if len(found) > MOST_VALUES:
            message = f"has more than {MOST_VALUES} values, each of them a feature; group them, or leave it out."
            raise DataError(message, file=file, column=column)
    if not found:
        raise DataError("has no values; leave the column out.", file=file, column=column)
    return tuple(sorted(found))
