"""A ranker made elsewhere: tables and files in any order, and every wrong one."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.verdict.new_ranker import NewRanker, ranker_of_policy, ranker_of_table, read_ranker
from tests.oracles import enumeration
from tests.verdict.small_log import linear_policy, small_log

TABLE: dict[str, list[Any]] = {
    "query_id": ["7", "7", "7", "b", "b"],
    "document_id": ["x", "y", "z", "x", "02"],
    "score": [0.5, 2.0, -1.0, 0.0, 3.0],
}
PLACES = {("7", "x"): 2, ("7", "y"): 1, ("7", "z"): 3, ("b", "x"): 2, ("b", "02"): 1}


def ranks(ranker: NewRanker) -> dict[tuple[str, str], int]:
    """Rank of each pair."""
    data = ranker.data
    assert data.query_ids is not None
    assert data.document_ids is not None
    placed = ranker.placement(3)
    assert ((placed == 0) | (placed == 1)).all()
    assert (placed.sum(axis=1) == 1).all()
    pairs = zip(data.query_ids[data.query_of_document].tolist(), data.document_ids.tolist(), strict=True)
    return dict(zip(pairs, (placed.argmax(axis=1) + 1).tolist(), strict=True))


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 2, 0, 3, 1]])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_in_any_order_of_rows_is_the_table(tmp_path: Path, kind: str, order: list[int]) -> None:
    rows = pa.table(TABLE).take(order)
    path = tmp_path / f"scores.{kind}"
    if kind == "csv":
        pyarrow.csv.write_csv(rows, path)
    else:
        pq.write_table(rows, path)
    assert ranks(read_ranker(path)) == ranks(ranker_of_table(TABLE)) == PLACES


def test_files_of_a_folder_are_one_ranker(tmp_path: Path) -> None:
    for place, rows in enumerate(([3, 0, 4], [1, 2])):
        pq.write_table(pa.table(TABLE).take(rows), tmp_path / f"{place}.parquet")
    assert ranks(read_ranker(tmp_path)) == PLACES


def test_the_lowest_rank_comes_first() -> None:
    by_rank = {name: TABLE[name] for name in ("query_id", "document_id")} | {"rank": [20, 1, 30, 7, 3]}
    assert ranks(ranker_of_table(by_rank)) == PLACES


def test_sampled_scores_place_as_enumerated() -> None:
    ranker = ranker_of_table(TABLE, "sampled")
    for query in range(2):
        rows = slice(*ranker.data.offsets[query : query + 2])
        wanted = enumeration.placement(ranker.scores[rows].tolist(), 2)
        np.testing.assert_allclose(ranker.placement(2)[rows], wanted, atol=1e-4)


def test_what_stands_below_the_cutoff_is_not_shown() -> None:
    placed = ranker_of_table(TABLE).placement(2)
    assert placed.shape == (5, 2)
    assert placed.sum() == 4.0


def changed(**columns: Any) -> dict[str, Any]:
    return {name: values for name, values in (TABLE | columns).items() if values is not None}


@pytest.mark.parametrize(
    ("table", "column", "row"),
    [
        (changed(query_id=None), "query_id", None),
        (changed(document_id=None), "document_id", None),
        (changed(score=None), "score", None),
        (changed(query_id=["7", "7", None, "b", "b"]), "query_id", 2),
        (changed(document_id=["x", None, "z", "x", "02"]), "document_id", 1),
        (changed(score=[0.5, 2.0, -1.0, float("nan"), 3.0]), "score", 3),
        (changed(score=[0.5, 2.0, float("inf"), 1.0, 3.0]), "score", 2),
        (changed(score=[0.5, None, 1.0, 1.0, 3.0]), "score", 1),
        (changed(score=["1", "2", "low", "1", "2"]), "score", 2),
        (changed(score=[[1.0]] * 5), "score", 0),
        (changed(document_id=["x", "y", "x", "x", "02"]), "document_id", 2),
        (changed(query_id=[], document_id=[], score=[]), None, None),
    ],
)
def test_wrong_tables(table: dict[str, Any], column: str | None, row: int | None) -> None:
    with pytest.raises(DataError) as raised:
        ranker_of_table(table, source="scores.csv")
    assert (raised.value.file, raised.value.column, raised.value.row) == ("scores.csv", column, row)


def test_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    path.write_text("query_id,document_id,score\n1,2,3\n")
    with pytest.raises(DataError) as raised:
        read_ranker(path)
    assert str(raised.value.file) == str(path)
    with pytest.raises(DataError):
        read_ranker(tmp_path / "nothing.parquet")


def test_wrong_calls() -> None:
    by_rank = {name: TABLE[name] for name in ("query_id", "document_id")} | {"rank": [2, 1, 3, 2, 1]}
    with pytest.raises(UsageError):
        ranker_of_table(by_rank, "sampled")
    ranker = ranker_of_table(TABLE)
    with pytest.raises(UsageError):
        NewRanker(ranker.data, ranker.scores, "drawn")  # type: ignore[arg-type]
    with pytest.raises(DataError):
        NewRanker(ranker.data, ranker.scores[1:])
    with pytest.raises(DataError):
        NewRanker(RankingData(np.zeros((5, 0), np.float32), np.array([0, 5])), ranker.scores)


def test_other_scores_are_another_ranker_to_the_ledger() -> None:
    one, same, other = (
        ranker_of_table(changed(score=scores)).description
        for scores in (TABLE["score"], list(TABLE["score"]), [9.0, *TABLE["score"][1:]])
    )
    assert one == same != other


def test_other_weights_are_another_ranker_to_the_ledger() -> None:
    data = small_log().data
    one, other = (ranker_of_policy(linear_policy(good, 0.5), data, "deterministic").identity for good in (0.3, -0.3))
    assert one != other
