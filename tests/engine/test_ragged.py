"""Helpers of ragged arrays: against loops over the queries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from saferank.engine.click_models.examination import total_examination
from saferank.engine.ragged import (
    flat_rows,
    offsets_of,
    place_in_query,
    query_indices,
    query_of_document,
    query_sums,
)

lists = st.lists(st.integers(0, 5), max_size=6)


@given(lists, st.data())
def test_rows_and_sums_are_those_of_a_loop(lengths: list[int], data: st.DataObject) -> None:
    offsets = offsets_of(lengths)
    spans = [range(sum(lengths[:query]), sum(lengths[: query + 1])) for query in range(len(lengths))]
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [0, *(span.stop for span in spans)]
    assert query_of_document(offsets).tolist() == [query for query, span in enumerate(spans) for _ in span]
    assert place_in_query(offsets).tolist() == [place for length in lengths for place in range(length)]
    values = np.random.default_rng(0).integers(-9, 9, (sum(lengths), 2))
    expected = np.array([values[span].sum(axis=0) for span in spans]).reshape(-1, 2)
    np.testing.assert_array_equal(query_sums(values, offsets), expected)
    np.testing.assert_array_equal(query_sums(values[:, 0].astype(float), offsets), expected[:, 0])
    np.testing.assert_array_equal(query_sums(values[:, 0] > -99, offsets, dtype=np.int64), lengths)
    chosen = data.draw(st.lists(st.sampled_from(range(len(lengths))))) if lengths else []
    rows = [row for query in chosen for row in spans[query]]
    assert flat_rows(offsets, np.array(chosen, dtype=np.int64)).tolist() == rows


def test_queries_by_index_and_by_mask() -> None:
    assert query_indices([2, 0]).tolist() == [2, 0]
    assert query_indices([True, False, True]).tolist() == [0, 2]


def test_total_examination_stops_with_the_list_and_with_the_ranks() -> None:
    total = total_examination(np.array([1.0, 0.5, 0.25]), np.array([0, 1, 2, 3, 9]))
    assert total.tolist() == [0.0, 1.0, 1.0 + 0.5, 1.0 + 0.5 + 0.25, 1.0 + 0.5 + 0.25]
