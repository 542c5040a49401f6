import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData, flat_rows

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
    ("change", "message"),
    [
        (
            {"features": [1.0, 2.0, 3.0]},
            ": features must be a table of documents by features, got 1 dimension(s).",
        ),
        ({"offsets": [1, 2, 3]}, ": offsets must start at 0 and have one entry more than there are queries."),
        ({"offsets": [0]}, ": offsets must start at 0 and have one entry more than there are queries."),
        ({"offsets": [[0, 3]]}, ": offsets must start at 0 and have one entry more than there are queries."),
        ({"offsets": [0, 2, 4]}, ": offsets end at 4, but there are 3 documents."),
        ({"offsets": [0, 3, 3]}, ": query 1 has no document; leave such queries out."),
        ({"offsets": [0, 4, 3]}, ": query 1 has no document; leave such queries out."),
        ({"labels": [0, 1]}, ": (2,) labels for 3 documents."),
        ({"labels": [[0], [1], [2]]}, ": (3, 1) labels for 3 documents."),
        (
            {"labels": [0, np.nan, 1]},
            ", row 1, column 'label': got nan, but a label must be a finite number.",
        ),
        ({"query_ids": np.array(["a"])}, ": 1 query ids for 2 queries."),
        ({"document_ids": np.array(["1"])}, ": 1 document ids for 3 documents."),
        ({"feature_names": ("x",)}, ": 1 feature names for 2 features."),
        (
            {"features": [[1, 2], [3, np.inf], [np.nan, 6]]},
            ", row 1, column 'y': got inf, but a feature must be a finite number; fill or drop it first.",
        ),
        (
            {"features": [[1, 2], [3, 4], [np.nan, 6]], "feature_names": None},
            ", row 2, column '1': got nan, but a feature must be a finite number; fill or drop it first.",
        ),
        (
            {"features": [[np.inf, 2], [-np.inf, 4], [5, 6]]},
            ", row 0, column 'x': got inf, but a feature must be a finite number; fill or drop it first.",
        ),
    ],
)
def test_every_check(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(f'here.txt{message}')}$"):
        RankingData(**FINE | change)


def test_not_finite_far_down_the_table() -> None:
    features = np.zeros((70_000, 1), dtype=np.float32)
    features[69_999] = np.nan
    with pytest.raises(DataError, match="row 69999, column '1': got nan"):
        RankingData(features, np.array([0, 70_000]))


def test_large_finite_features_are_fine() -> None:
    largest = np.finfo(np.float32).max
    assert RankingData(np.full((9, 9), largest), np.array([0, 9])).features.max() == largest


def test_check_for_finite_features_can_be_left_out_but_is_back_after_replace() -> None:
    data = RankingData(**FINE | {"features": np.full((3, 2), np.nan)}, check_finite=False)
    assert np.isnan(data.features).all()
    with pytest.raises(DataError, match="got nan"):
        replace(data, source="elsewhere")


def test_labels_are_required_where_needed() -> None:
    with pytest.raises(DataError, match=re.escape("here.txt: has no labels, and this needs them.")):
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
    with pytest.raises(DataError, match=re.escape("here.txt: a subset of no query at all; choose at least one.")):
        RankingData(**FINE).subset(np.array(nothing, dtype=bool))


def test_with_relevant_document() -> None:
    data = RankingData(**FINE).with_relevant_document()
    assert data.query_ids is not None
    assert data.query_ids.tolist() == ["a"]


def test_log1p_of_all_and_of_some_columns() -> None:
    features = np.array([[0.0, -3.0], [9.0, 4.0], [1.0, 0.0]])
    data = RankingData(**FINE | {"features": features})
    expected = [[0, -np.log(4)], [np.log(10), np.log(5)], [np.log(2), 0]]
    np.testing.assert_allclose(data.log1p().features, expected, rtol=1e-6)
    np.testing.assert_allclose(data.log1p([1]).features, np.column_stack([features[:, 0], np.array(expected)[:, 1]]))
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


@given(lists, st.data())
def test_flat_rows(lengths: list[int], data: st.DataObject) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    chosen = data.draw(st.lists(st.integers(0, len(lengths) - 1)))
    expected = [row for query in chosen for row in range(offsets[query], offsets[query + 1])]
    assert flat_rows(offsets, np.array(chosen, dtype=np.int64)).tolist() == expected
