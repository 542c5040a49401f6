import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saferank.engine.errors import DataError, UsageError
from saferank.features.reader import read_features

TABLE = {
    "query_id": ["b", "a", "b", "a"],
    "document_id": ["1", "1", "2", "3"],
    "price": [0.5, 1.5, 2.5, 3.5],
    "title": ["w", "x", "y", "z"],
    "stock": [1, 2, 3, 4],
    "label": [0, 1, 2, 3],
}


def write(path: Path, **columns: object) -> Path:
    """Write the table with some columns replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({**TABLE, **columns}), path)
    return path


def test_rows_of_a_query_are_brought_together_in_order_of_first_appearance(tmp_path: Path) -> None:
    data = read_features(write(tmp_path / "f.parquet"), label="label")
    assert data.feature_names == ("price", "stock")
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.document_ids is not None
    assert data.document_ids.tolist() == ["1", "2", "1", "3"]
    assert data.offsets.tolist() == [0, 2, 4]
    assert data.features.tolist() == [[0.5, 1], [2.5, 3], [1.5, 2], [3.5, 4]]
    assert data.features.dtype == np.float32
    assert data.labels is not None
    assert data.labels.tolist() == [0, 2, 1, 3]
    assert data.source == str(tmp_path / "f.parquet")


def test_without_a_label_every_column_of_numbers_is_a_feature(tmp_path: Path) -> None:
    data = read_features(write(tmp_path / "f.parquet"))
    assert data.feature_names == ("price", "stock", "label")
    assert data.labels is None


def test_chosen_columns_in_the_given_order(tmp_path: Path) -> None:
    data = read_features(write(tmp_path / "f.parquet"), columns=["stock", "price"])
    assert data.feature_names == ("stock", "price")
    assert data.features[0].tolist() == [1, 0.5]


def test_other_names_and_whole_number_ids(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"q": [7, 7], "d": [30, 4], "x": [1, 2]}), path)
    data = read_features(path, query="q", document="d")
    assert data.feature_names == ("x",)
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["7"]
    assert data.document_ids is not None
    assert data.document_ids.tolist() == ["30", "4"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([True, False, True, True]), [1, 1, 0, 1]),
        (pa.array([1, 2, 3, 4], pa.uint8()), [1, 3, 2, 4]),
        (pa.array([2**24 + 1, 2, 3, 4], pa.int64()), [2**24, 3, 2, 4]),
        (pa.array([1, 2, 3, 4], pa.decimal128(5, 1)), [1, 3, 2, 4]),
        (pa.array(np.array([1, 2, 3, 4], np.float16)), [1, 3, 2, 4]),
    ],
)
def test_kinds_of_numbers(tmp_path: Path, column: pa.Array, expected: list[float]) -> None:
    data = read_features(write(tmp_path / "f.parquet", price=column))
    assert data.features[:, 0].tolist() == expected


def test_dictionary_encoded_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", query_id=pa.array(TABLE["query_id"]).dictionary_encode())
    data = read_features(path)
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["b", "a"]


def test_folder_and_pattern_read_all_files_in_order_of_name(tmp_path: Path) -> None:
    write(tmp_path / "in/day-2.parquet", document_id=["9", "9", "8", "8"])
    write(tmp_path / "in/day-1.parquet")
    write(tmp_path / "in/query_id=5/day-3.parquet", query_id=["c"] * 4, document_id=["1", "2", "3", "4"])
    (tmp_path / "in/notes.txt").write_text("not data")
    folder = read_features(tmp_path / "in")
    assert folder.lengths.tolist() == [4, 4, 4]
    assert folder.document_ids is not None
    assert folder.document_ids[:4].tolist() == ["1", "2", "9", "8"]
    pattern = read_features(str(tmp_path / "in/day-*.parquet"))
    assert pattern.lengths.tolist() == [4, 4]


rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 5), st.floats(-1e6, 1e6, width=32)),
    min_size=1,
    max_size=20,
    unique_by=lambda row: row[:2],
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.integers(1, 3))
def test_every_row_comes_back(tmp_path: Path, rows: list[tuple[int, int, float]], files: int) -> None:
    folder = tmp_path / "in"
    for number in range(files):
        part = rows[number * len(rows) // files : (number + 1) * len(rows) // files]
        table = {
            "query_id": pa.array([row[0] for row in part], pa.int64()),
            "document_id": pa.array([str(row[1]) for row in part], pa.string()),
            "x": pa.array([row[2] for row in part], pa.float32()),
        }
        write_only(folder / f"{number}.parquet", table)
    data = read_features(folder)
    assert data.query_ids is not None
    assert data.document_ids is not None
    queries = data.query_ids[data.query_of_document].astype(int).tolist()
    found = list(zip(queries, data.document_ids.astype(int).tolist(), data.features[:, 0].tolist(), strict=True))
    first = list(dict.fromkeys(row[0] for row in rows))
    assert found == sorted(rows, key=lambda row: first.index(row[0]))
    for number in range(files):
        (folder / f"{number}.parquet").unlink()


def write_only(path: Path, columns: dict[str, pa.Array]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {},
            {"query": "q"},
            ", column 'q': there is no such column; the file has query_id, document_id, price,",
        ),
        (
            {},
            {"document": "d"},
            ", column 'd': there is no such column; the file has query_id, document_id, price,",
        ),
        (
            {},
            {"label": "y"},
            ", column 'y': there is no such column; the file has query_id, document_id, price,",
        ),
        (
            {},
            {"columns": ["prize"]},
            ", column 'prize': there is no such column; the file has query_id, document_id,",
        ),
        (
            {},
            {"columns": ["price", "title"]},
            ", column 'title': holds string, but must hold numbers; convert or leave it out.",
        ),
        (
            {},
            {"label": "title"},
            ", column 'title': holds string, but must hold numbers; convert or leave it out.",
        ),
        (
            {},
            {"columns": []},
            ": has no column of numbers to take as a feature; there are query_id, document_id, price,",
        ),
        (
            {"price": [1.0, None, 2.0, None]},
            {},
            ", row 1, column 'price': got null; fill it in, or name the number that stands for it (fit: --missing 0).",
        ),
        (
            {"query_id": ["a", "a", "a", None]},
            {},
            ", row 3, column 'query_id': got null; fill it in or leave out the row.",
        ),
        (
            {"price": [1.0, 2.0, float("nan"), 3.0]},
            {},
            ", row 2, column 'price': got nan, which is no number; fill it in, or name the number that stands for it",
        ),
        (
            {"label": [1.0, 2.0, 3.0, float("-inf")]},
            {"label": "label"},
            ", row 3, column 'label': got -inf, which is not finite; replace it.",
        ),
        (
            {"price": [1.0, 2.0, 3.0, 1e39]},
            {},
            ", row 3, column 'price': got 1e+39, which is too large for float32; scale it down first.",
        ),
        (
            {"price": [1.0, None, float("inf"), 3.0]},
            {"missing": "nan"},
            ", row 2, column 'price': got inf, which is not finite; replace it.",
        ),
        (
            {"query_id": ["a", None, "a", "a"], "price": [None, 1.0, 2.0, 3.0]},
            {"missing": "nan"},
            ", row 1, column 'query_id': got null; fill it in or leave out the row.",
        ),
        (
            {"label": [1.0, 2.0, 3.0, None]},
            {"label": "label", "missing": "nan"},
            ", row 3, column 'label': got null; fill it in or leave out the row.",
        ),
        (
            {"document_id": ["1", "1", "1", "1"]},
            {},
            ", row 2: query b, document 1 comes twice; keep one row of each pair.",
        ),
    ],
)
def test_errors_name_file_row_column_value_and_remedy(
    tmp_path: Path, columns: dict[str, object], options: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "f.parquet", **columns)
    with pytest.raises(DataError, match=re.escape(f"{path}{message}")):
        read_features(path, **options)


def test_holes_are_let_in_when_asked_for(tmp_path: Path) -> None:
    nan = float("nan")
    columns = {
        "price": [0.5, nan, None, 3.5],
        "stock": pa.array([1, None, 3, 4], pa.int32()),
        "label": pa.array([True, False, None, True]),
    }
    data = read_features(write(tmp_path / "f.parquet", **columns), missing="nan")
    assert data.feature_names == ("price", "stock", "label")
    np.testing.assert_array_equal(data.features, [[0.5, 1, 1], [nan, 3, nan], [nan, nan, 0], [3.5, 4, 1]])
    with pytest.raises(UsageError, match="missing='zero' is unknown; choose error or nan"):
        read_features(tmp_path / "f.parquet", missing="zero")  # type: ignore[arg-type]


def test_mistake_in_a_later_file_is_found_there(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    write(tmp_path / "2.parquet", document_id=["5", "6", "7", "3"])
    with pytest.raises(DataError, match=r"2\.parquet, row 3: query a, document 3 comes twice"):
        read_features(tmp_path)


def test_column_missing_from_a_later_file(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    pq.write_table(pa.table(TABLE).drop_columns("price"), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet, column 'price': there is no such column"):
        read_features(tmp_path)


def test_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table(TABLE).slice(0, 0), path)
    with pytest.raises(DataError, match=r"f\.parquet: has no row; there is nothing to read\."):
        read_features(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.parquet", "nowhere.parquet: there is no such file or folder; check the path."),
        ("*.none", "*.none: no file matches this pattern; check the path."),
        ("empty", "empty: has no file *.parquet in it."),
        ("text.parquet", "text.parquet: is not a Parquet file ("),
    ],
)
def test_nothing_to_read(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(DataError, match=re.escape(message)):
        read_features(tmp_path / path)
