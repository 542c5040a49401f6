from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData

FINE: dict[str, Any] = {
    "features": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "offsets": [0, 2, 3],
    "labels": [0, 1, 0],
    "query_ids": np.array(["a", "b"]),
    "document_ids": np.array(["1", "2", "3"]),
    "feature_names": ("x", "y"),
    "source": "here.txt",
}


def test_counts() -> None:
    data = RankingData(**FINE)
    assert (data.queries, data.documents) == (2, 3)
    assert data.lengths.tolist() == [2, 1]
    assert data.query_of_document.tolist() == [0, 0, 1]
    assert data.features.dtype == np.float32
    assert data.offsets.dtype == np.int64
    assert data.require_labels().dtype == np.float32


@pytest.mark.parametrize(
    ("change", "row", "column"),
    [
        ({"features": [1.0, 2.0, 3.0]}, None, None),
        ({"offsets": [1, 2, 3]}, None, None),
        ({"offsets": [0]}, None, None),
        ({"offsets": [[0, 3]]}, None, None),
        ({"offsets": [0, 2, 4]}, None, None),
        ({"offsets": [0, 3, 3]}, None, None),
        ({"offsets": [0, 4, 3]}, None, None),
        ({"labels": [0, 1]}, None, None),
        ({"labels": [[0], [1], [2]]}, None, None),
        ({"labels": [0, np.nan, 1]}, 1, "label"),
        ({"query_ids": np.array(["a"])}, None, None),
        ({"document_ids": np.array(["1"])}, None, None),
        ({"feature_names": ("x",)}, None, None),
        ({"features": [[1, 2], [3, np.inf], [np.nan, 6]]}, 1, "y"),
        ({"features": [[1, 2], [3, 4], [np.nan, 6]], "feature_names": None}, 2, "1"),
        ({"features": [[np.inf, 2], [-np.inf, 4], [5, 6]]}, 0, "x"),
    ],
)
def test_every_check(change: dict[str, Any], row: int | None, column: str | None) -> None:
    with pytest.raises(DataError) as error:
        RankingData(**FINE | change)
    assert (error.value.file, error.value.row, error.value.column) == ("here.txt", row, column)


def test_not_finite_far_down_the_table() -> None:
    features = np.zeros((70_000, 1), dtype=np.float32)
    features[69_999] = np.nan
    with pytest.raises(DataError) as error:
        RankingData(features, np.array([0, 70_000]))
    assert (error.value.row, error.value.column) == (69_999, "1")


def test_large_finite_features_are_fine() -> None:
    largest = np.finfo(np.float32).max
    assert RankingData(np.full((9, 9), largest), np.array([0, 9])).features.max() == largest


def test_check_for_finite_features_can_be_left_out_but_is_back_after_replace() -> None:
    data = RankingData(**FINE | {"features": np.full((3, 2), np.nan)}, check_finite=False)
    assert np.isnan(data.features).all()
    with pytest.raises(DataError):
        replace(data, source="elsewhere")


def test_labels_are_required_where_needed() -> None:
    with pytest.raises(DataError):
        RankingData(**FINE | {"labels": None}).with_relevant_document()


def test_subset_by_index_keeps_the_given_order() -> None:
    data = RankingData(**FINE).subset([1, 0])
    assert data.features.tolist() == [[5, 6], [1, 2], [3, 4]]
    assert data.offsets.tolist() == [0, 1, 3]
    assert data.require_labels().tolist() == [0, 0, 1]
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["b", "a"]
    assert data.document_ids is not None
    assert data.document_ids.tolist() == ["3", "1", "2"]
    assert data.feature_names == ("x", "y")


def test_subset_by_mask_and_without_optional_parts() -> None:
    data = RankingData(np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0, 2, 3])).subset([False, True])
    assert data.features.tolist() == [[4, 5]]
    assert (data.labels, data.query_ids, data.document_ids) == (None, None, None)


@pytest.mark.parametrize("nothing", [[], [False, False]])
def test_subset_of_nothing(nothing: list[bool]) -> None:
    with pytest.raises(DataError):
        RankingData(**FINE).subset(np.array(nothing, dtype=bool))


def test_with_relevant_document() -> None:
    data = RankingData(**FINE).with_relevant_document()
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["a"]


def test_log1p() -> None:
    features = np.array([[0.0, -3.0], [9.0, 4.0], [1.0, 0.0]])
    data = RankingData(**FINE | {"features": features})
    expected = [[0, -np.log(4)], [np.log(10), np.log(5)], [np.log(2), 0]]
    np.testing.assert_allclose(data.log1p().features, expected, rtol=1e-6)
    assert data.features.tolist() == features.tolist()


lists = st.lists(st.integers(1, 5), min_size=1, max_size=6)


@given(lists, st.integers(0, 2**32 - 1))
def test_scaled_per_query(lengths: list[int], seed: int) -> None:
    features = np.random.default_rng(seed).integers(-5, 5, (sum(lengths), 3)) * 1e3
    data = RankingData(features, np.concatenate([[0], np.cumsum(lengths)]))
    scaled = data.scaled_per_query().features
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        for column in range(3):
            x = features[first:last, column]
            span = x.max() - x.min()
            expected = (x - x.min()) / span if span > 0 else 0 * x
            np.testing.assert_allclose(scaled[first:last, column], expected, rtol=1e-6)


def test_scaled_per_query_over_many_blocks() -> None:
    features = np.random.default_rng(0).normal(size=(1200, 1)).astype(np.float32)
    scaled = RankingData(features, np.arange(0, 1201, 2)).scaled_per_query().features.reshape(600, 2)
    assert np.all(scaled.min(axis=1) == 0)
    assert np.all(scaled.max(axis=1) == 1)


def test_scaled_per_query_of_the_smallest_differences() -> None:
    tiny = np.finfo(np.float32).smallest_subnormal
    data = RankingData(np.array([[0.0], [tiny], [2 * tiny]]), np.array([0, 3]))
    assert data.scaled_per_query().features.ravel().tolist() == [0, 0.5, 1]
