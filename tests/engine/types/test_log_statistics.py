from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.engine.errors import DataError
from saferank.engine.types.log_statistics import LoggedRankings, LogStatistics

# Query 0 has three documents and five interactions, query 1 one document and two, query 2 was never issued.
COUNTS: dict[str, Any] = {
    "offsets": [0, 3, 4, 6],
    "interactions": [5, 2, 0],
    "shown": [[4, 1], [1, 2], [0, 2], [2, 0], [0, 0], [0, 0]],
    "clicked": [[3, 0], [0, 1], [0, 2], [1, 0], [0, 0], [0, 0]],
}


def kept() -> LoggedRankings:
    return LoggedRankings(
        np.array([1, 0, 0], np.int32),
        np.array([[0, -1], [1, 0], [0, 2]], np.int32),
        np.array([[1, 0], [0, 0], [1, 1]], np.uint8),
    )


def log(**changed: Any) -> LogStatistics:
    return LogStatistics(**{**COUNTS, **changed})


def test_sizes_and_sums() -> None:
    statistics = log(rankings=kept())
    assert (statistics.queries, statistics.documents, statistics.cutoff) == (3, 6, 2)
    assert statistics.total_interactions == 5 + 2
    assert statistics.impressions.tolist() == [4 + 1, 1 + 2, 2, 2, 0, 0]
    assert statistics.clicks.tolist() == [3, 1, 2, 1, 0, 0]
    assert statistics.query_of_document.tolist() == [0, 0, 0, 1, 2, 2]
    assert statistics.kept.tolist() == [2, 1, 0]
    assert log().kept.tolist() == [0, 0, 0]
    assert statistics.shown.dtype == statistics.clicked.dtype == statistics.interactions.dtype == np.int64
    assert kept().clicks.dtype == np.bool_
    assert kept().rows(statistics.offsets).tolist() == [[3, 3], [1, 0], [0, 2]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"offsets": [0]}, "offsets must start at 0"),
        ({"offsets": [0, 3, 3, 6]}, "query 1 has no document"),
        ({"interactions": [5, 2]}, r"interactions of shape \(2,\) for 3 queries"),
        ({"shown": [[1, 1]]}, r"shown has shape \(1, 2\), but there are 6 documents"),
        ({"shown": np.zeros((6, 2))}, "shown must be whole numbers, got float64"),
        ({"clicked": np.zeros((6, 1), int)}, r"clicked has shape \(6, 1\), but shown has \(6, 2\)"),
        (
            {"clicked": [[3, 0], [0, 1], [0, 2], [-1, 0], [0, 0], [0, 0]]},
            "row 3, column 'clicked': got -1, but a count cannot be negative",
        ),
        (
            {"clicked": [[3, 0], [0, 1], [0, 3], [1, 0], [0, 0], [0, 0]]},
            "document 2 at rank 2 was clicked 3 times, but shown 2",
        ),
        ({"interactions": [4, 2, 0]}, "query 0 has 4 interactions, but 5 documents shown at rank 1"),
        ({"interactions": [5, 2, 1]}, None),  # a list without a document that can be shown
        ({"interactions": [6, 2, 0]}, None),  # an interaction whose documents have no features
        (
            {"shown": [[4, 1], [1, 2], [0, 3], [2, 0], [0, 0], [0, 0]], "clicked": np.zeros((6, 2), int)},
            "query 0 has 5 interactions, but 6 documents shown at rank 2",
        ),
    ],
)
def test_counts_that_cannot_be(changed: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert log(**changed).total_interactions == 8
        return
    with pytest.raises(DataError, match=message):
        log(**changed)


@pytest.mark.parametrize(
    ("query", "ranking", "clicks", "message"),
    [
        ([0], [[0, 1], [1, 0]], [[0, 0], [0, 0]], "rankings of shape"),
        ([0], [[0, 1]], [[0]], "clicks of shape"),
        ([0, 0], [[0, 1], [0, -1]], [[0, 0], [0, 1]], "row 1: a click where no document was shown"),
        ([0], [[-1, 1]], [[0, 0]], "row 0: the ranking goes on after a rank with no document"),
        ([3], [[0, 1]], [[0, 0]], "a ranking of a query that is not among the 3"),
        ([1], [[0, 1]], [[0, 0]], "row 0: the ranking names a document that its query does not have"),
        ([0], [[0, 1, 2]], [[0, 0, 0]], "rankings have 3 ranks, but the counts 2"),
        ([2], [[0, 1]], [[0, 0]], "query 2 has 0 interactions, but 1 rankings"),
    ],
)
def test_rankings_that_cannot_be(query: Any, ranking: Any, clicks: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        log(rankings=LoggedRankings(query, ranking, clicks))


def test_a_subset_keeps_the_order_asked_for() -> None:
    part = log(rankings=kept()).subset([1, 0])
    assert part.offsets.tolist() == [0, 1, 4]
    assert part.interactions.tolist() == [2, 5]
    assert part.shown.tolist() == [[2, 0], [4, 1], [1, 2], [0, 2]]
    assert part.clicked.tolist() == [[1, 0], [3, 0], [0, 1], [0, 2]]
    assert part.rankings is not None
    assert part.rankings.query.tolist() == [0, 1, 1]
    assert part.rankings.ranking.tolist() == [[0, -1], [1, 0], [0, 2]]
    assert part.rankings.clicks.tolist() == [[True, False], [False, False], [True, True]]
    np.testing.assert_array_equal(log().subset([True, False, False]).shown, log().subset([0]).shown)
    assert log().subset([0]).rankings is None
    with pytest.raises(DataError, match="a subset of no query"):
        log().subset([])


def test_merging_adds_up() -> None:
    one, two = log(rankings=kept()), log(rankings=kept()).subset([0, 1, 2])
    both = one.merge(two)
    np.testing.assert_array_equal(both.interactions, 2 * one.interactions)
    np.testing.assert_array_equal(both.shown, 2 * one.shown)
    np.testing.assert_array_equal(both.clicked, 2 * one.clicked)
    assert both.rankings is not None
    assert both.rankings.query.tolist() == [0, 0, 0, 0, 1, 1]
    assert one.merge(log()).rankings is None
    with pytest.raises(DataError, match="cannot be merged"):
        one.merge(one.subset([0, 1]))
    with pytest.raises(DataError, match="cannot be merged"):
        one.merge(replace(log(), shown=one.shown[:, :1], clicked=one.clicked[:, :1]))
