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
from saferank.features.candidates import read_candidates

TABLE = {
    "query_id": ["b", "b", "a", "c", "c", "c"],
    "document_id": ["1", "2", "1", "3", "1", "2"],
    "price": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
    "title": ["u", "v", "w", "x", "y", "z"],
    "stock": [1, 2, 3, 4, 5, 6],
}


def write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({**TABLE, **columns})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=2)
    return path


def joined(blocks: Sequence[RankingData]) -> list[tuple[str, str, list[float]]]:
    rows = []
    for block in blocks:
        assert block.query_ids is not None
        assert block.document_ids is not None
        queries = block.query_ids[block.query_of_document]
        rows += [
            (str(query), str(document), features.tolist())
            for query, document, features in zip(queries, block.document_ids, block.features, strict=True)
        ]
    return rows


EXPECTED = [
    *(("b", "1", [0.5, 1]), ("b", "2", [1.5, 2]), ("a", "1", [2.5, 3])),
    *(("c", "3", [3.5, 4]), ("c", "1", [4.5, 5]), ("c", "2", [5.5, 6])),
]


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_every_row_once_and_in_order(rows: int, suffix: str, tmp_path: Path) -> None:
    blocks = list(read_candidates(write(tmp_path / f"c{suffix}"), rows=rows))
    assert joined(blocks) == EXPECTED
    assert {block.feature_names for block in blocks} == {("price", "stock")}
    assert {block.source for block in blocks} == {str(tmp_path / f"c{suffix}")}


def test_a_block_is_no_larger_than_it_must_be(tmp_path: Path) -> None:
    """Many queries in many row groups: what is in memory is a block and the query that goes on beyond it."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, 3_000)
    query = np.repeat(np.arange(3_000), lengths)
    document = np.arange(len(query))
    table = pa.table({"query_id": query, "document_id": document, "x": document.astype(float)})
    pq.write_table(table, tmp_path / "c.parquet", row_group_size=700)
    sizes, seen, queries = [], 0, 0
    for block in read_candidates(tmp_path / "c.parquet", rows=500):
        sizes.append(block.documents)
        np.testing.assert_array_equal(block.features[:, 0], np.arange(seen, seen + block.documents))
        np.testing.assert_array_equal(block.lengths, lengths[queries : queries + block.queries])
        seen, queries = seen + block.documents, queries + block.queries
    assert (seen, queries) == (len(query), 3_000)
    assert max(sizes) <= 500 + 30
    assert len(sizes) >= len(query) / 530


def test_what_has_passed_is_let_go(tmp_path: Path) -> None:
    """Of a file of 16 MB, in 40 row groups, Arrow never holds more than a few."""
    rng = np.random.default_rng(0)
    noise = {f"x{column}": rng.normal(size=200_000) for column in range(10)}
    table = pa.table({"query_id": np.arange(200_000) // 10, "document_id": np.arange(200_000) % 10, **noise})
    pq.write_table(table, tmp_path / "c.parquet", row_group_size=5_000)
    del table, noise
    assert (tmp_path / "c.parquet").stat().st_size > 15e6
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in read_candidates(tmp_path / "c.parquet", rows=5_000))
    assert most < 5e6


def test_a_query_may_go_on_in_the_next_file(tmp_path: Path) -> None:
    write(tmp_path / "day" / "1.parquet")
    rest = pa.table({"stock": [7, 8], "price": [6.5, 7.5], "query_id": ["c", "d"], "document_id": ["9", "9"]})
    pyarrow.csv.write_csv(rest, tmp_path / "day" / "2.csv")
    expected = [*EXPECTED, ("c", "9", [6.5, 7]), ("d", "9", [7.5, 8])]
    for path in (tmp_path / "day", f"{tmp_path}/day/*"):
        assert joined(list(read_candidates(path))) == expected


def test_missing_values_are_nan_and_true_is_one(tmp_path: Path) -> None:
    sale = [True, False, None, True, True, False]
    path = write(tmp_path / "c.parquet", price=[None, float("nan"), 1, 2, 3, 4], stock=sale)
    (block,) = [*read_candidates(path)][:1]
    features = np.concatenate([block.features for block in read_candidates(path)])
    np.testing.assert_array_equal(features[:, 0], [np.nan, np.nan, 1, 2, 3, 4])
    np.testing.assert_array_equal(features[:, 1], [1, 0, np.nan, 1, 1, 0])
    assert block.features.dtype == np.float32


def test_csv_columns_of_numbers_whatever_stands_first(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("query_id,document_id,price\n1,01,\n1,02,nan\n2,03,0.5\n")
    (first, second) = joined(list(read_candidates(path, numbers=["price", "absent"])))[1:]
    assert first[:2] == ("1", "02")
    assert second == ("2", "03", [0.5])
    with gzip.open(tmp_path / "d.csv.gz", "wb") as file:
        file.write(path.read_bytes())
    assert joined(list(read_candidates(tmp_path / "d.csv.gz", numbers=["price"])))[2] == second


def test_other_names_and_columns_to_ignore(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"q": [1, 1], "d": [7, 8], "x": [1, 2], "label": [0, 1]}), path)
    (block,) = read_candidates(path, query="q", document="d", ignore=["label"])
    assert block.feature_names == ("x",)
    assert joined([block]) == [("1", "7", [1.0]), ("1", "8", [2.0])]


def test_a_csv_column_to_ignore_may_turn_out_to_be_text(tmp_path: Path) -> None:
    lines = [f"{row // 4},{row},0.5,{'x' if row == 199_999 else row}" for row in range(200_000)]
    (tmp_path / "c.csv").write_text("\n".join(["query_id,document_id,price,sku", *lines]))
    blocks = list(read_candidates(tmp_path / "c.csv", ignore=["sku"]))
    assert sum(block.documents for block in blocks) == 200_000
    assert len(blocks) > 1
    message = r"c.csv, row 199999, column 'sku': got 'x', but must hold numbers; correct it, or leave the row out."
    with pytest.raises(DataError, match=message):
        list(read_candidates(tmp_path / "c.csv"))


def test_text_in_a_csv_column_that_must_hold_numbers(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("query_id,document_id,price,sku\na,1,,x\na,2,NaN,y\na,3,cheap,z\n")
    with pytest.raises(DataError, match=r"c.csv, row 2, column 'price': got 'cheap', but must hold numbers"):
        list(read_candidates(tmp_path / "c.csv", numbers=["price"]))


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_a_query_that_comes_back(rows: int, tmp_path: Path) -> None:
    path = write(tmp_path / "c.parquet", query_id=["b", "b", "a", "c", "b", "b"])
    with pytest.raises(DataError, match=r"c.parquet, row 4: query b comes back after other queries; let the rows of"):
        list(read_candidates(path, rows=rows))


def test_a_query_that_comes_back_in_another_file_is_told_by_its_place_there(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    write(tmp_path / "2.parquet", query_id=["c", "d", "d", "a", "a", "a"], document_id=list("987654"))
    with pytest.raises(DataError, match=r"2.parquet, row 3: query a comes back after other queries"):
        list(read_candidates(tmp_path))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"document_id": ["1", "2", "1", "3", "1", "3"]}, "row 5: query c, document 3 comes twice; keep one row of"),
        ({"query_id": ["b", "b", "a", None, "c", "c"]}, "row 3, column 'query_id': got null, but every row has an id"),
        ({"document_id": ["1", "2", "1", "3", "1", None]}, "row 5, column 'document_id': got null"),
        ({"price": list("abcdef")}, "column 'price': holds string, but must hold numbers; convert it"),
    ],
)
@pytest.mark.parametrize("rows", [1, 100])
def test_bad_rows(columns: dict[str, Any], message: str, rows: int, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"c.parquet, {message}"):
        list(read_candidates(write(tmp_path / "c.parquet", **columns), numbers=["price"], rows=rows))


def test_bad_files(tmp_path: Path) -> None:
    def fails(path: str | Path, message: str) -> None:
        with pytest.raises(DataError, match=message):
            list(read_candidates(path))

    fails(tmp_path / "none.parquet", r"none.parquet: there is no such file or folder; check the path")
    fails(tmp_path / "*.parquet", r"\*.parquet: no file matches this pattern; check the path")
    fails(tmp_path, r"has no file in it that ends in .parquet, .csv, .csv.gz")
    (tmp_path / "text.parquet").write_text("hello")
    fails(
        tmp_path / "text.parquet",
        r"text.parquet: cannot be read \(.*[^.]\); correct it: Parquet, or CSV if its name ends in .csv.",
    )
    (tmp_path / "ragged.csv").write_text("query_id,document_id,x\n1,2,3\n1,2\n")
    fails(tmp_path / "ragged.csv", r"ragged.csv: cannot be read \(")
    pq.write_table(pa.table({"query_id": ["a"], "x": [1]}), tmp_path / "c.parquet")
    fails(tmp_path / "c.parquet", r"column 'document_id': there is no such column; the file has query_id, x\.")
    pq.write_table(pa.table(TABLE).slice(0, 0), tmp_path / "empty.parquet")
    fails(tmp_path / "empty.parquet", r"empty.parquet: has no row; there is nothing to rank")


def test_files_with_other_columns(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet")
    write(tmp_path / "2.parquet", age=[1] * 6)
    with pytest.raises(DataError, match=r"2.parquet, column 'age': only one of this file and .*1.parquet has this"):
        list(read_candidates(tmp_path))
