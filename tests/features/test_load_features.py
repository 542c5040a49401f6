from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.datasets.synthetic import synthetic_dataset
from saferank.engine.errors import DataError, UsageError
from saferank.features.load_features import load_features, take_column

LETOR = "1 qid:7 1:0.5 2:3\n0 qid:7 1:0.25 2:4\n2 qid:9 1:1 2:5\n"


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    table = {"query_id": ["a", "a"], "document_id": ["x", "y"], "bm25": [1.0, 2.0], "rank": [3, 4], "label": [0, 1]}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    return tmp_path / "f.parquet"


def test_parquet(parquet: Path) -> None:
    for name in (parquet, str(parquet), parquet.parent, f"{parquet.parent}/*.parquet"):
        assert load_features(name).feature_names == ("bm25", "rank", "label")
    assert load_features(parquet, ignore=["label"]).feature_names == ("bm25", "rank")
    assert load_features(parquet, columns=["rank", "bm25"]).features.tolist() == [[3, 1], [4, 2]]
    assert load_features(parquet, columns=["rank", "bm25"], ignore=["bm25"]).features.tolist() == [[3], [4]]


def test_a_data_set_gets_the_ids_of_a_simulated_log() -> None:
    data, whole = load_features("synthetic:small", part="validation"), synthetic_dataset("small").validation
    np.testing.assert_array_equal(data.features, whole.features)
    assert data.query_ids is not None
    assert data.document_ids is not None
    assert data.query_ids[:2].tolist() == ["validation-0", "validation-1"]
    for query in (0, 7):
        rows = slice(data.offsets[query], data.offsets[query + 1])
        assert data.document_ids[rows].tolist() == [f"d{place}" for place in range(data.lengths[query])]
    assert data.feature_names == whole.feature_names


def test_letor_file_and_folder(tmp_path: Path) -> None:
    for name in ("train.txt", "vali.txt", "test.txt"):
        (tmp_path / name).write_text(LETOR)
    for path in (tmp_path, tmp_path / "train.txt"):
        data = load_features(path)
        assert data.query_ids is not None
        assert data.document_ids is not None
        assert data.query_ids.tolist() == ["7", "9"]
        assert data.document_ids.tolist() == ["d0", "d1", "d0"]
        assert load_features(path, columns=["2"]).features.tolist() == [[3], [4], [5]]


def test_a_column_taken_out(parquet: Path) -> None:
    data, column = take_column(load_features(parquet), "rank")
    assert column.tolist() == [3, 4]
    assert data.feature_names == ("bm25", "label")
    assert data.features.tolist() == [[1, 0], [2, 1]]


def test_missing_values(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    table = {"query_id": ["a", "a"], "document_id": ["x", "y"], "bm25": [None, 2.0], "rank": [3, 4], "label": [0, 1]}
    pq.write_table(pa.table(table), file)
    with pytest.raises(DataError) as error:
        load_features(file)
    assert (error.value.file, error.value.row, error.value.column) == (file, 0, "bm25")
    data = load_features(file, ignore=["label"], missing="nan")
    np.testing.assert_array_equal(data.features, [[np.nan, 3], [2, 4]])
    rest, column = take_column(data, "rank")
    assert column.tolist() == [3, 4]
    assert np.isnan(rest.features[0, 0])
    with pytest.raises(DataError, match="query a, document x: got nan") as error:
        take_column(data, "bm25")
    assert error.value.column == "bm25"


def test_what_is_not_there(parquet: Path) -> None:
    with pytest.raises(UsageError):
        load_features("synthetic:small", part="dev")
    for name, options in ((parquet, {"ignore": ["size"]}), ("synthetic:small", {"columns": ["size"]})):
        with pytest.raises(DataError) as error:
            load_features(name, **options)  # type: ignore[arg-type]
        assert error.value.column == "size"
    with pytest.raises(DataError) as error:
        take_column(load_features(parquet), "size")
    assert error.value.column == "size"
    with pytest.raises(DataError):
        load_features("nowhere")
