"""Raw features from an array, or from columns by name, with NumPy alone: what a service ranks with."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.categories import one_hot_names
from saferank.features.schema import FeatureSchema

ARRAY, COLUMNS = "the array", "the columns"


def read_arrays(
    schema: FeatureSchema, features: ArrayLike | Mapping[str, ArrayLike], offsets: ArrayLike | None = None
) -> RankingData:
    """Return what a policy with this schema reads; without `offsets`, all rows are of one query.

    An array has one column per entry of `schema.numbers`, from which indicators are made, or of `schema.columns`.
    Columns by name (a mapping, or anything with `keys`, such as a pandas DataFrame) may include others. A missing
    number is NaN or None.
    """
    if hasattr(features, "keys"):
        names: tuple[str, ...] | None = (*schema.numbers, *one_hot_names(schema.categories))
        rows, source = _read_columns(schema, features), COLUMNS
    else:
        rows, source = np.asarray(features, np.float32), ARRAY
        names = schema.numbers if rows.ndim == 2 and rows.shape[1] == len(schema.numbers) else None
    bounds = np.asarray([0, len(rows)] if offsets is None else offsets)
    return RankingData(rows, bounds, feature_names=names, source=source, check_finite=False)


def _read_columns(schema: FeatureSchema, columns: Any) -> NDArray[np.float32]:
    if absent := [name for name in (*schema.numbers, *schema.categories) if name not in columns]:
        there = ", ".join(map(str, columns.keys()))
        message = f"the policy needs this column; there are {there}."
        raise DataError(message, file=COLUMNS, column=absent[0])
    found: list[NDArray[np.float32]] = []
    for name in schema.numbers:
        try:
            found.append(np.asarray(columns[name], np.float32))
        except (TypeError, ValueError) as error:
            raise DataError(f"must contain numbers ({error}); convert it.", file=COLUMNS, column=name) from error
    for name, values in schema.categories.items():
        place = {value: number for number, value in enumerate(values)}
        code = np.array([place.get(_text(value), -1) for value in columns[name]])
        found += list((code == np.arange(len(values))[:, None]).astype(np.float32))
    if uneven := [place for place, column in enumerate(found) if column.shape != (len(found[0]),)]:
        name = (*schema.numbers, *one_hot_names(schema.categories))[uneven[0]]
        raise DataError(
            f"has shape {found[uneven[0]].shape}, but there are {len(found[0])} rows.", file=COLUMNS, column=name
        )
    return np.column_stack(found)


def _text(value: Any) -> str:
    """Return the text of a value as Arrow has it, which is how the values of the policy were found."""
    if value is None or value != value:
        return ""  # which is no value of a policy
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
