"""Features by name, held against arrays put in order by hand; what Polars is to us, a class with its methods."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from saferank.engine.errors import DataError
from saferank.features.table import column_names, read_table

pd = pytest.importorskip("pandas")

NAMES = ("price", "stock")
COLUMNS: dict[str, list[Any]] = {
    "stock": [5, 0, 2, 7, 1],
    "query_id": ["b", "b", "a", "a", "c"],
    "document_id": ["x", "y", "x", "z", "x"],
    "price": [1.5, 2.5, 0.25, 4.0, 8.0],
}
IN_ORDER = np.column_stack([COLUMNS["price"], COLUMNS["stock"]]).astype(np.float32)


class Polarslike:
    """`columns`, `[name]` to a column that exports an Arrow stream, and a length, as a Polars DataFrame has."""

    class Series:
        def __init__(self, values: list[Any]) -> None:
            self.values = pa.chunked_array([values[:2], values[2:]])

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.values.__arrow_c_stream__(requested_schema)

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.values, self.columns = columns, list(columns)

    def __getitem__(self, name: str) -> "Polarslike.Series":
        return self.Series(self.values[name])

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table, pa.RecordBatch.from_pydict, Polarslike])
def test_columns_are_found_by_name_and_queries_by_their_id(kind: Any) -> None:
    data = read_table(kind(COLUMNS), NAMES)
    np.testing.assert_array_equal(data.features, IN_ORDER)
    assert data.feature_names == NAMES
    assert data.offsets.tolist() == [0, 2, 4, 5]
    assert read_table(kind(COLUMNS), NAMES, [0, 1, 5]).offsets.tolist() == [0, 1, 5]
    alone = {name: COLUMNS[name] for name in ("stock", "price")}
    assert read_table(kind(alone), NAMES).offsets.tolist() == [0, 5]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False, True, True, False], [1, 0, 1, 1, 0]),
        ([None, 1.0, float("nan"), 3.0, 4.0], [np.nan, 1, np.nan, 3, 4]),
        ([Decimal("0.5")] * 5, [0.5] * 5),
        ([None] * 5, [np.nan] * 5),
        ([2**60, 1, 2, 3, 4], [2.0**60, 1, 2, 3, 4]),
    ],
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table, Polarslike])
def test_numbers_of_any_kind(kind: Any, values: list[Any], expected: list[float]) -> None:
    data = read_table(kind(COLUMNS | {"price": values}), NAMES)
    np.testing.assert_array_equal(data.features[:, 0], np.array(expected, np.float32))


def test_pandas_columns_with_holes_and_categories() -> None:
    frame = pd.DataFrame(COLUMNS)
    frame["stock"] = pd.array([5, None, 2, 7, 1], dtype="Int64")
    frame["query_id"] = pd.Categorical(frame["query_id"])  # its codes are sorted, not in order of appearance
    data = read_table(frame.set_index("document_id"), NAMES)
    np.testing.assert_array_equal(data.features[:, 1], [5, np.nan, 2, 7, 1])
    assert data.offsets.tolist() == [0, 2, 4, 5]


def test_a_table_whose_columns_are_only_numbered_is_an_array() -> None:
    assert column_names(pd.DataFrame(IN_ORDER)) is None
    assert column_names(pd.DataFrame(IN_ORDER)[[1, 0]]) == [1, 0]
    assert column_names(IN_ORDER) is None
    assert column_names(IN_ORDER.tolist()) is None


@pytest.mark.parametrize(
    ("changes", "column", "row"),
    [
        ({"price": None}, "price", None),
        ({"price": ["cheap"] * 5}, "price", None),
        ({"query_id": ["b", "a", "b", "b", "c"]}, "query_id", 2),
        ({"query_id": ["b", "b", None, "a", "c"]}, "query_id", 2),
        ({"query_id": [1.0, 1.0, 2.0, float("nan"), 3.0]}, "query_id", 3),
    ],
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table, Polarslike])
def test_what_cannot_be_used_is_named(kind: Any, changes: dict[str, Any], column: str, row: int | None) -> None:
    columns = {name: values for name, values in (COLUMNS | changes).items() if values is not None}
    with pytest.raises(DataError) as raised:
        read_table(kind(columns), NAMES)
    assert (raised.value.column, raised.value.row) == (column, row)


def test_pandas_columns_that_cannot_be_one() -> None:
    frame = pd.DataFrame(COLUMNS)
    for wrong in (pd.concat([frame, frame[["price"]]], axis=1), frame.assign(price=[1, "two", 3, 4, 5])):
        with pytest.raises(DataError) as raised:
            read_table(wrong, NAMES)
        assert raised.value.column == "price"
    with pytest.raises(DataError, match="has no row"):
        read_table(frame.head(0), NAMES)
