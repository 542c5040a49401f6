from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.types.log_statistics import LoggedRankings, LogStatistics, stacked

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
    assert statistics.times_shown.tolist() == [4 + 1, 1 + 2, 2, 2, 0, 0]
    assert statistics.clicks.tolist() == [3, 1, 2, 1, 0, 0]
    assert statistics.query_of_document.tolist() == [0, 0, 0, 1, 2, 2]
    assert statistics.kept.tolist() == [2, 1, 0]
    assert log().kept.tolist() == [0, 0, 0]
    assert statistics.shown.dtype == statistics.clicked.dtype == statistics.interactions.dtype == np.int64
    assert kept().clicks.dtype == np.bool_
    assert kept().rows(statistics.offsets).tolist() == [[3, 3], [1, 0], [0, 2]]


@pytest.mark.parametrize(
    "changed",
    [
        {"offsets": [0]},
        {"offsets": [0, 3, 3, 6]},
        {"interactions": [5, 2]},
        {"shown": [[1, 1]]},
        {"shown": np.zeros((6, 2))},
        {"clicked": np.zeros((6, 1), int)},
        {"clicked": [[3, 0], [0, 1], [0, 3], [1, 0], [0, 0], [0, 0]]},  # more than shown
        {"interactions": [4, 2, 0]},  # but 5 documents at rank 1
        {"shown": [[4, 1], [1, 2], [0, 3], [2, 0], [0, 0], [0, 0]], "clicked": np.zeros((6, 2), int)},
    ],
)
def test_counts_that_cannot_be(changed: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        log(**changed)


def test_a_negative_count_is_named() -> None:
    with pytest.raises(DataError) as error:
        log(clicked=[[3, 0], [0, 1], [0, 2], [-1, 0], [0, 0], [0, 0]])
    assert (error.value.row, error.value.column) == (3, "clicked")


@pytest.mark.parametrize("interactions", [[5, 2, 1], [6, 2, 0]])
def test_interactions_may_show_fewer_documents_than_ranks(interactions: list[int]) -> None:
    """A list without a document that can be shown, or whose documents have no features."""
    assert log(interactions=interactions).total_interactions == 8


@pytest.mark.parametrize(
    ("query", "ranking", "clicks", "row"),
    [
        ([0], [[0, 1], [1, 0]], [[0, 0], [0, 0]], None),
        ([0], [[0, 1]], [[0]], None),
        ([0, 0], [[0, 1], [0, -1]], [[0, 0], [0, 1]], 1),  # a click where no document was shown
        ([0], [[-1, 1]], [[0, 0]], 0),  # goes on after a rank with no document
        ([3], [[0, 1]], [[0, 0]], None),  # no such query
        ([1], [[0, 1]], [[0, 0]], 0),  # a document that its query does not have
        ([0], [[0, 1, 2]], [[0, 0, 0]], None),
        ([2], [[0, 1]], [[0, 0]], None),  # of a query without interactions
    ],
)
def test_rankings_that_cannot_be(query: Any, ranking: Any, clicks: Any, row: int | None) -> None:
    with pytest.raises(DataError) as error:
        log(rankings=LoggedRankings(query, ranking, clicks))
    assert error.value.row == row


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
    with pytest.raises(DataError):
        log().subset([])


def test_merging_adds_up() -> None:
    one, two = log(rankings=kept()), log(rankings=kept()).subset([0, 1, 2])
    tables: list[NDArray[np.int64]] = []

    def new_table(documents: int, ranks: int, kind: type[np.int64]) -> NDArray[np.int64]:
        tables.append(np.full((documents, ranks), -1, kind))
        return tables[-1]

    both = one.merge(two)
    given = one.merge(two, new_table=new_table)
    assert given.shown is tables[0]
    assert given.clicked is tables[1]
    np.testing.assert_array_equal(given.shown, both.shown)
    np.testing.assert_array_equal(given.clicked, both.clicked)
    np.testing.assert_array_equal(both.interactions, 2 * one.interactions)
    np.testing.assert_array_equal(both.shown, 2 * one.shown)
    np.testing.assert_array_equal(both.clicked, 2 * one.clicked)
    assert both.rankings is not None
    assert both.rankings.query.tolist() == [0, 0, 0, 0, 1, 1]
    assert one.merge(log()).rankings is None
    with pytest.raises(DataError):
        one.merge(one.subset([0, 1]))
    with pytest.raises(DataError):
        one.merge(replace(log(), shown=one.shown[:, :1], clicked=one.clicked[:, :1]))


def test_stacked_logs_have_the_queries_of_all() -> None:
    one, other = log(rankings=kept()), log(interactions=[6, 3, 1])
    both = stacked([one, other])
    assert both.offsets.tolist() == [0, 3, 4, 6, 9, 10, 12]
    assert both.interactions.tolist() == [5, 2, 0, 6, 3, 1]
    np.testing.assert_array_equal(both.clicked, np.concatenate([one.clicked, other.clicked]))
    np.testing.assert_array_equal(both.shown[6:], other.shown)
    assert both.rankings is None
    assert stacked([one]) is one
