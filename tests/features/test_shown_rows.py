"""Rows with features and clicks, held against the log and the features written out by hand."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from saferank.engine.errors import UsageError
from saferank.features.shown_rows import shown_rows

X = np.array([[1.0, 5.0], [2.0, 6.0], [2.0, 6.0], [1.0, 5.0], [1.0, 5.0], [3.0, 7.0]])
"""Two impressions of query 7, with two documents each in either order, and one of query 8."""
CLICKS = [0, 1, 1, 0, 0, 0]
QID = [7, 7, 7, 7, 8, 8]
POSITION = [1, 2, 1, 2, 1, 2]


def log_rows(log: pa.Table) -> list[tuple[Any, ...]]:
    names = ("impression_id", "query_id", "document_id", "position", "click")
    return list(zip(*(log[name].to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("given", [{"position": POSITION}, {"group": [2, 2, 2]}, {"impression": list("aabbcc")}])
def test_rows_by_hand(given: dict[str, Any]) -> None:
    log, features = shown_rows(X, CLICKS, qid=QID, **given)
    one, two, three = (log["document_id"][row].as_py() for row in (0, 1, 5))
    assert len({one, two, three}) == 3
    names = "aabbcc" if "impression" in given else (0, 0, 1, 1, 2, 2)
    documents = (one, two, two, one, one, three)
    assert log_rows(log) == list(zip(names, QID, documents, POSITION, CLICKS, strict=True))
    assert features.column_names == ["query_id", "document_id", "1", "2"]
    found = {(row["query_id"], row["document_id"]): (row["1"], row["2"]) for row in features.to_pylist()}
    assert found == {(7, one): (1, 5), (7, two): (2, 6), (8, one): (1, 5), (8, three): (3, 7)}
    assert len(features) == 4


def test_columns_by_name_and_documents_whose_features_change() -> None:
    table = pa.table({"q": QID, "sku": list("abbabc"), "rank": POSITION, "price": [1, 2, 3, 4, 5, 6], "day": [1] * 6})
    log, features = shown_rows(table, CLICKS, qid="q", position="rank", document="sku", timestamp="day")
    assert log_rows(log) == list(zip((0, 0, 1, 1, 2, 2), QID, "abbabc", POSITION, CLICKS, strict=True))
    assert log["timestamp"].to_pylist() == [1] * 6
    assert [tuple(row.values()) for row in features.to_pylist()] == [(7, "b", 3), (7, "a", 4), (8, "b", 5), (8, "c", 6)]


def test_rows_of_an_impression_that_are_alike_are_different_documents() -> None:
    log, features = shown_rows(np.ones((4, 1)), [0, 1, 0, 0], group=[2, 2], qid=[1, 1, 1, 1])
    first, second, *again = log["document_id"].to_pylist()
    assert first != second
    assert again == [first, second]
    assert len(features) == 2


def test_groups_alone_are_queries() -> None:
    log, _ = shown_rows(X, CLICKS, group=[4, 2])
    assert log["query_id"].to_pylist() == [0, 0, 0, 0, 1, 1]
    assert log["position"].to_pylist() == [1, 2, 3, 4, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"qid": QID[:5]},
        {"qid": "q"},
        {"group": [2, 2]},
        {"group": [0, 6]},
        {"qid": QID, "impression": list("abccab")},
    ],
)
def test_wrong_calls(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        shown_rows(X, CLICKS, **wrong)


def test_what_is_no_table() -> None:
    with pytest.raises(UsageError):
        shown_rows([1.0, 2.0], [0, 1], group=[2])
    with pytest.raises(UsageError):
        shown_rows(X, CLICKS[:2], qid=QID)
