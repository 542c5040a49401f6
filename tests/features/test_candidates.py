import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.reader import read_candidates

TABLE = {
    "query_id": ["b", "b", "a", "c", "c", "c"],
    "document_id": ["1", "2", "1", "3", "1", "2"],
    "price": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
    "title": ["u", "v", "w", "x", "y", "z"],
    "stock": [1, 2, 3, 4, 5, 6],
}
EXPECTED = [
    *(("b", "1", [0.5, 1]), ("b", "2", [1.5, 2]), ("a", "1", [2.5, 3])),
    *(("c", "3", [3.5, 4]), ("c", "1", [4.5, 5]), ("c", "2", [5.5, 6])),
]


def write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({**TABLE, **columns})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=2)
    return path


def joined(blocks: Sequence[RankingData]) -> list[tuple[str, str, list[float]]]:
    rows: list[tuple[str, str, list[float]]] = []
    for block in blocks:
        assert block.query_ids is not None
        assert block.document_ids is not None
        queries = block.query_ids[block.query_of_document].tolist()
        rows += zip(queries, block.document_ids.tolist(), block.features.tolist(), strict=True)
    return rows


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_every_row_once_and_in_order(rows: int, suffix: str, tmp_path: Path) -> None:
    blocks = list(read_candidates(write(tmp_path / f"c{suffix}"), rows=rows))
    assert joined(blocks) == EXPECTED
    assert {block.feature_names for block in blocks} == {("price", "stock")}
    assert {block.source for block in blocks} == {str(tmp_path / f"c{suffix}")}


def test_a_block_is_no_larger_than_it_must_be(tmp_path: Path) -> None:
    """What is in memory is a block and the query that continues beyond it: Arrow lets go of earlier row groups."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, 6_000)
    query = np.repeat(np.arange(6_000), lengths)
    document = np.arange(len(query))
    noise = {f"x{column}": rng.normal(size=len(query)) for column in range(10)}
    table = pa.table({"query_id": query, "document_id": document, "x": document.astype(float), **noise})
    pq.write_table(table, tmp_path / "c.parquet", row_group_size=2_000)
    del table, noise
    sizes, seen, queries, before, most = [], 0, 0, pa.total_allocated_bytes(), 0
    for block in read_candidates(tmp_path / "c.parquet", rows=500):
        most = max(most, pa.total_allocated_bytes() - before)
        sizes.append(block.documents)
        np.testing.assert_array_equal(block.features[:, 0], np.arange(seen, seen + block.documents))
        np.testing.assert_array_equal(block.lengths, lengths[queries : queries + block.queries])
        seen, queries = seen + block.documents, queries + block.queries
    assert (seen, queries) == (len(query), 6_000)
    assert max(sizes) <= 500 + 30
    assert most < (tmp_path / "c.parquet").stat().st_size / 3


def test_a_query_may_continue_in_the_next_file(tmp_path: Path) -> None:
    write(tmp_path / "day" / "1.parquet")
    rest = pa.table({"stock": [7, 8], "price": [6.5, 7.5], "query_id": ["c", "d"], "document_id": ["9", "9"]})
    pyarrow.csv.write_csv(rest, tmp_path / "day" / "2.csv")
    expected = [*EXPECTED, ("c", "9", [6.5, 7]), ("d", "9", [7.5, 8])]
    for path in (tmp_path / "day", f"{tmp_path}/day/*"):
        assert joined(list(read_candidates(path))) == expected


def test_missing_and_infinite_values_are_let_in(tmp_path: Path) -> None:
    sale = [True, False, None, True, True, False]
    path = write(tmp_path / "c.parquet", price=[None, float("nan"), 1, 1e39, 3, float("-inf")], stock=sale)
    features = np.concatenate([block.features for block in read_candidates(path)])
    np.testing.assert_array_equal(features[:, 0], [np.nan, np.nan, 1, np.inf, 3, -np.inf])
    np.testing.assert_array_equal(features[:, 1], [1, 0, np.nan, 1, 1, 0])
    assert features.dtype == np.float32


def test_csv_columns_of_numbers_whatever_the_first_rows_hold(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("query_id,document_id,price\n1,01,\n1,02,nan\n2,03,0.5\n")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, tmp_path / "d.csv.gz"):
        found = joined(list(read_candidates(file, numbers=["price", "absent"])))
        assert [row[:2] for row in found] == [("1", "01"), ("1", "02"), ("2", "03")]
        assert found[2][2] == [0.5]


@pytest.mark.parametrize("word", ["true", "True", "TRUE"])
def test_true_and_false_in_a_csv_column_of_numbers(tmp_path: Path, word: str) -> None:
    path = tmp_path / "candidates.csv"
    path.write_text(f"query_id,document_id,sale\nq,a,{word}\nq,b,False\n")
    assert joined([*read_candidates(path, numbers=["sale"])]) == [("q", "a", [1.0]), ("q", "b", [0.0])]


def test_other_names_and_columns_to_ignore(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"q": [1, 1], "d": [7, 8], "x": [1, 2], "label": [0, 1]}), path)
    (block,) = read_candidates(path, query="q", document="d", ignore=["label"])
    assert block.feature_names == ("x",)
    assert joined([block]) == [("1", "7", [1.0]), ("1", "8", [2.0])]


def test_a_csv_column_to_ignore_may_turn_out_to_be_text(tmp_path: Path) -> None:
    lines = [f"{row // 4},{row},0.5,{'x' if row == 99_999 else row}" for row in range(100_000)]
    (tmp_path / "c.csv").write_text("\n".join(["query_id,document_id,price,sku", *lines]))
    blocks = list(read_candidates(tmp_path / "c.csv", ignore=["sku"]))
    assert sum(block.documents for block in blocks) == 100_000
    assert len(blocks) > 1
    with pytest.raises(DataError) as error:
        list(read_candidates(tmp_path / "c.csv"))
    assert (error.value.row, error.value.column) == (99_999, "sku")


def test_text_in_a_csv_column_that_must_hold_numbers(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("query_id,document_id,price,sku\na,1,,x\na,2,NaN,y\na,3,cheap,z\n")
    with pytest.raises(DataError) as error:
        list(read_candidates(tmp_path / "c.csv", numbers=["price"]))
    assert str(error.value) == (
        f"{tmp_path / 'c.csv'}, row 2, column 'price': got 'cheap', but must be a number; correct it, or leave the "
        "row out."
    )


@pytest.mark.parametrize(
    ("columns", "row", "column"),
    [
        ({"query_id": ["b", "b", "a", "c", "b", "b"]}, 4, None),
        ({"document_id": ["1", "2", "1", "3", "1", "3"]}, 5, None),
        ({"query_id": ["b", "b", "a", None, "c", "c"]}, 3, "query_id"),
        ({"document_id": ["1", "2", "1", "3", "1", None]}, 5, "document_id"),
        ({"price": list("abcdef")}, None, "price"),
    ],
)
@pytest.mark.parametrize("rows", [1, 100])
def test_bad_rows(columns: dict[str, Any], row: int | None, column: str | None, rows: int, tmp_path: Path) -> None:
    path = write(tmp_path / "c.parquet", **columns)
    with pytest.raises(DataError) as error:
        list(read_candidates(path, numbers=["price"], rows=rows))
    assert (error.value.file, error.value.row, error.value.column) == (path, row, column)


def test_mistakes_in_a_later_file_are_found_there(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    second = write(tmp_path / "2.parquet", query_id=["c", "d", "d", "a", "a", "a"], document_id=list("987654"))
    with pytest.raises(DataError, match="query a appears again after other queries") as error:
        list(read_candidates(tmp_path))
    assert (error.value.file, error.value.row) == (second, 3)
    write(second, age=[1] * 6)
    with pytest.raises(DataError) as error:
        list(read_candidates(tmp_path))
    assert (error.value.file, error.value.column) == (second, "age")


def test_bad_files(tmp_path: Path) -> None:
    def fails(path: str | Path, column: str | None = None) -> None:
        with pytest.raises(DataError) as error:
            list(read_candidates(path))
        assert (str(error.value.file), error.value.column) == (str(path), column)

    fails(tmp_path / "none.parquet")
    fails(tmp_path / "*.parquet")
    fails(tmp_path)
    (tmp_path / "text.parquet").write_text("hello")
    fails(tmp_path / "text.parquet")
    (tmp_path / "ragged.csv").write_text("query_id,document_id,x\n1,2,3\n1,2\n")
    fails(tmp_path / "ragged.csv")
    pq.write_table(pa.table({"query_id": ["a"], "x": [1]}), tmp_path / "c.parquet")
    fails(tmp_path / "c.parquet", "document_id")
    pq.write_table(pa.table(TABLE).slice(0, 0), tmp_path / "empty.parquet")
    fails(tmp_path / "empty.parquet")
