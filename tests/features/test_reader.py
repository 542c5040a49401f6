from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features import categories
from saferank.features.load_features import load_features
from saferank.features.reader import read_features

TABLE = {
    "query_id": ["b", "a", "b", "a"],
    "document_id": ["1", "1", "2", "3"],
    "price": [0.5, 1.5, 2.5, 3.5],
    "title": ["w", "x", "y", "z"],
    "stock": [1, 2, 3, 4],
}
NAN, INF = float("nan"), float("inf")


def write(path: Path, **columns: object) -> Path:
    """Write the table with some columns replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({**TABLE, **columns}), path)
    return path


def ids(data: RankingData) -> list[tuple[str, str]]:
    assert data.query_ids is not None
    assert data.document_ids is not None
    return list(zip(data.query_ids[data.query_of_document].tolist(), data.document_ids.tolist(), strict=True))


def test_rows_of_a_query_are_grouped_in_order_of_first_appearance(tmp_path: Path) -> None:
    data = read_features(write(tmp_path / "f.parquet"))
    assert data.feature_names == ("price", "stock")
    assert ids(data) == [("b", "1"), ("b", "2"), ("a", "1"), ("a", "3")]
    assert data.offsets.tolist() == [0, 2, 4]
    assert data.features.tolist() == [[0.5, 1], [2.5, 3], [1.5, 2], [3.5, 4]]
    assert data.features.dtype == np.float32
    assert data.source == str(tmp_path / "f.parquet")


def test_other_names_whole_number_ids_and_chosen_columns(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(
        pa.table({"q": [7, 7], "d": pa.array(["30", "4"]).dictionary_encode(), "x": [1, 2], "y": [3, 4]}), path
    )
    data = read_features(path, query="q", document="d", columns=["y", "x"])
    assert ids(data) == [("7", "30"), ("7", "4")]
    assert data.feature_names == ("y", "x")
    assert data.features.tolist() == [[3, 1], [4, 2]]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([True, False, True, True]), [1, 1, 0, 1]),
        (pa.array([2**24 + 1, 2, 3, 4], pa.int64()), [2**24, 3, 2, 4]),
        (pa.array([1, 2, 3, 4], pa.decimal128(5, 1)), [1, 3, 2, 4]),
        (pa.array(np.array([1, 2, 3, 4], np.float16)), [1, 3, 2, 4]),
    ],
)
def test_kinds_of_numbers(tmp_path: Path, column: pa.Array, expected: list[float]) -> None:
    assert read_features(write(tmp_path / "f.parquet", price=column)).features[:, 0].tolist() == expected


def test_folder_and_pattern_read_all_files_in_order_of_name(tmp_path: Path) -> None:
    write(tmp_path / "in/day-2.parquet", document_id=["9", "9", "8", "8"])
    write(tmp_path / "in/day-1.parquet")
    write(tmp_path / "in/query_id=5/day-3.parquet", query_id=["c"] * 4, document_id=["1", "2", "3", "4"])
    (tmp_path / "in/notes.txt").write_text("not data")
    folder = read_features(tmp_path / "in")
    assert folder.lengths.tolist() == [4, 4, 4]
    assert ids(folder)[:4] == [("b", "1"), ("b", "2"), ("b", "9"), ("b", "8")]
    assert read_features(str(tmp_path / "in/day-*.parquet")).lengths.tolist() == [4, 4]


def test_a_folder_of_several_kinds_is_not_half_read(tmp_path: Path) -> None:
    write(tmp_path / "in/day-1.parquet")
    (tmp_path / "in/day-2.csv").write_text("query_id,document_id,price,stock\nc,1,2.5,3\n")
    for path in (tmp_path / "in", f"{tmp_path}/in/*"):
        with pytest.raises(DataError, match=r"day-1\.parquet and day-2\.csv") as error:
            load_features(path)
        assert error.value.file == path
    (tmp_path / "in/day-1.parquet").unlink()
    assert ids(load_features(tmp_path / "in")) == [("c", "1")]


rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.floats(-1e6, 1e6, width=32)),
    min_size=1,
    max_size=20,
    unique_by=lambda row: row[:2],
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.integers(1, 3))
def test_every_row_comes_back(tmp_path: Path, rows: list[tuple[int, int, float]], files: int) -> None:
    (tmp_path / "in").mkdir(exist_ok=True)
    for number in range(3):
        part = rows[number * len(rows) // files : (number + 1) * len(rows) // files]
        columns = zip(*part, strict=True) if part else [[]] * 3
        kinds = {"query_id": pa.int64(), "document_id": pa.int16(), "x": pa.float32()}
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds.values(), strict=True)]
        pq.write_table(pa.table(arrays, names=list(kinds)), tmp_path / f"in/{number}.parquet")
    data = read_features(tmp_path / "in")
    found = [(int(q), int(d), x) for (q, d), x in zip(ids(data), data.features[:, 0].tolist(), strict=True)]
    first = list(dict.fromkeys(row[0] for row in rows))
    assert found == sorted(rows, key=lambda row: first.index(row[0]))


@pytest.mark.parametrize(
    ("columns", "options", "row", "column"),
    [
        ({}, {"query": "q"}, None, "q"),
        ({}, {"document": "d"}, None, "d"),
        ({}, {"columns": ["prize"]}, None, "prize"),
        ({}, {"columns": ["price", "title"]}, None, "title"),
        ({}, {"columns": []}, None, None),
        ({"price": [1.0, None, 2.0, None]}, {}, 1, "price"),
        ({"price": [1.0, 2.0, NAN, 3.0]}, {}, 2, "price"),
        ({"price": [1.0, 2.0, 3.0, 1e39]}, {}, 3, "price"),
        ({"price": [1.0, None, INF, 3.0]}, {"missing": "nan"}, 2, "price"),
        ({"query_id": ["a", None, "a", "a"], "price": [None, 1.0, 2.0, 3.0]}, {"missing": "nan"}, 1, "query_id"),
        ({"document_id": ["1", "1", "1", "1"]}, {}, 2, None),
    ],
)
def test_errors_name_file_row_and_column(
    tmp_path: Path, columns: dict[str, object], options: dict[str, Any], row: int | None, column: str | None
) -> None:
    path = write(tmp_path / "f.parquet", **columns)
    with pytest.raises(DataError) as error:
        read_features(path, **options)
    assert (error.value.file, error.value.row, error.value.column) == (path, row, column)


@pytest.mark.parametrize(
    ("price", "message"),
    [
        (
            None,
            "got null, which is not a number; fill it in, or say how to treat missing values "
            "(fit `missing` indicator, or fit `missing` 0).",
        ),
        (-INF, "got -inf, which is not finite; replace it."),
        (1e39, "got 1e+39, which is too large for float32; scale it down first."),
    ],
)
def test_messages_give_the_value_and_the_remedy(tmp_path: Path, price: float | None, message: str) -> None:
    path = write(tmp_path / "f.parquet", price=[1.0, price, 2.0, 3.0])
    with pytest.raises(DataError) as error:
        read_features(path)
    assert str(error.value) == f"{path}, row 1, column 'price': {message}"


def test_missing_values_are_let_in_when_asked_for(tmp_path: Path) -> None:
    columns = {
        "price": [0.5, NAN, None, 3.5],
        "stock": pa.array([1, None, 3, 4], pa.int32()),
        "sale": pa.array([True, False, None, True]),
    }
    data = read_features(write(tmp_path / "f.parquet", **columns), missing="nan")
    assert data.feature_names == ("price", "stock", "sale")
    np.testing.assert_array_equal(data.features, [[0.5, 1, 1], [NAN, 3, NAN], [NAN, NAN, 0], [3.5, 4, 1]])
    with pytest.raises(UsageError):
        read_features(tmp_path / "f.parquet", missing="zero")  # type: ignore[arg-type]


def test_mistakes_in_a_later_file_are_found_there(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    second = write(tmp_path / "2.parquet", document_id=["5", "6", "7", "3"])
    with pytest.raises(DataError, match="document 3 of query a") as error:
        read_features(tmp_path)
    assert (error.value.file, error.value.row) == (second, 3)
    write(second, document_id=["5", "6", "7", "8"], price=[1, 2, None, 4])
    with pytest.raises(DataError) as error:
        read_features(tmp_path)
    assert (error.value.file, error.value.row, error.value.column) == (second, 2, "price")
    pq.write_table(pa.table(TABLE).drop_columns("price"), second)
    with pytest.raises(DataError) as error:
        read_features(tmp_path)
    assert (error.value.file, error.value.column) == (second, "price")


@pytest.mark.parametrize("name", ["nowhere.parquet", "*.none", "empty", "text.parquet", "no_rows.parquet"])
def test_nothing_to_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("hello")
    pq.write_table(pa.table(TABLE).slice(0, 0), tmp_path / "no_rows.parquet")
    with pytest.raises(DataError) as error:
        read_features(tmp_path / name)
    assert error.value.file == tmp_path / name


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_values_of_text_become_features(tmp_path: Path, suffix: str) -> None:
    table = pa.table({**TABLE, "brand": ["x", "", "y", "x"], "size": [1, 2, 2, 1]})
    path = tmp_path / f"f{suffix}"
    (pq.write_table if suffix == ".parquet" else pyarrow.csv.write_csv)(table, path)
    data = read_features(path, categorical=["brand", "size"])
    assert data.feature_names == ("price", "stock", "brand=x", "brand=y", "size=1", "size=2")
    assert data.categories == {"brand": ("x", "y"), "size": ("1", "2")}
    assert data.features.tolist() == [
        [0.5, 1, 1, 0, 1, 0],
        [2.5, 3, 0, 1, 0, 1],
        [1.5, 2, 0, 0, 0, 1],
        [3.5, 4, 1, 0, 1, 0],
    ]
    known = read_features(path, columns=["stock", "brand"], categorical={"brand": ["y", "z"]})
    assert known.feature_names == ("stock", "brand=y", "brand=z")
    assert known.features.tolist() == [[1, 0, 0], [3, 1, 0], [2, 0, 0], [4, 0, 0]]


def test_text_of_too_many_values_or_none(tmp_path: Path) -> None:
    rows = categories.MOST_VALUES + 1
    table = {"query_id": ["q"] * rows, "document_id": [str(row) for row in range(rows)], "x": [1] * rows}
    pq.write_table(pa.table({**table, "title": table["document_id"], "none": [""] * rows}), tmp_path / "f.parquet")
    for column in ("title", "none", "nowhere"):
        with pytest.raises(DataError) as error:
            read_features(tmp_path / "f.parquet", categorical=[column])
        assert (error.value.file, error.value.column) == (tmp_path / "f.parquet", column)


def test_ids_under_the_names_that_they_have_in_the_log(tmp_path: Path) -> None:
    named = {"query_id": "search", "document_id": "sku", "click": "clicked"}
    path = tmp_path / "f.parquet"
    table = pa.table(TABLE)
    pq.write_table(table.rename_columns(["search", "sku", *table.column_names[2:]]), path)
    expected = ids(read_features(write(tmp_path / "ours.parquet")))
    assert ids(load_features(path, id_columns=named)) == expected
    assert load_features(path, id_columns=named).feature_names == ("price", "stock")
    assert ids(load_features(tmp_path / "ours.parquet", id_columns=named)) == expected  # ours, where they are there
    with pytest.raises(DataError) as error:
        load_features(path, id_columns={"document_id": "sku"})
    assert error.value.column == "query_id"
