"""Texts from Arrow to NumPy, and what one long text costs among many short ones."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.doctor.log_arrays import shown_pairs
from saferank.features.load_features import load_features
from saferank.files.arrow_tables import as_arrow, is_tabular, numbered, table_digest, text_array
from saferank.logs.load_log import load_log
from saferank.verdict.new_ranker import read_ranker

ROWS, LONG = 2_000, 4_000
MOST = 2 << 20
"""Bytes; an array as wide as its longest text would have 16 for each of its characters in each row: 32 MB."""


def peak(run: Callable[[], object]) -> int:
    """Bytes that were allocated at most, by Python and NumPy, but not by Arrow."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_one_long_id_does_not_widen_all_others(tmp_path: Path) -> None:
    ids = [f"d{row}" for row in range(ROWS)]
    ids[7] = "x" * LONG
    queries = [f"q{row // 10}" for row in range(ROWS)]
    pairs = pa.table({"query_id": queries, "document_id": ids, "score": np.arange(ROWS) / 7})
    pq.write_table(pairs, tmp_path / "pairs.parquet")
    shown = {"impression_id": queries, "position": [row % 10 + 1 for row in range(ROWS)], "click": [0, 1] * (ROWS // 2)}
    log = load_log(pa.table({**shown, "query_id": queries, "document_id": ids}))
    assert peak(lambda: load_features(tmp_path / "pairs.parquet")) < MOST
    assert peak(lambda: read_ranker(tmp_path / "pairs.parquet")) < MOST
    assert peak(lambda: log.statistics("train", shown_pairs(log))) < MOST
    data = load_features(tmp_path / "pairs.parquet")
    assert data.document_ids is not None
    assert data.document_ids.tolist() == ids


def test_texts_by_number() -> None:
    texts = pa.chunked_array([["b", "a"], ["b", "", "c"]])
    codes, values = numbered(texts)
    assert (codes.tolist(), values.tolist()) == ([0, 1, 0, 2, 3], ["b", "a", "", "c"])
    assert text_array(texts).tolist() == texts.to_pylist()


def test_the_digest_is_that_of_columns_and_values() -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})
    chunks = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert table_digest(chunks) == table_digest(table)
    others = [table.slice(1), table.rename_columns(["a", "c"]), table.set_column(0, "a", pa.array([1, 2, 4]))]
    assert len({table_digest(one) for one in (table, *others)}) == 4


@pytest.mark.parametrize("value", ["log.parquet", Path("log.parquet"), np.zeros((2, 2)), [[1.0]], pa.array([1]), None])
def test_what_is_no_table(value: object) -> None:
    assert not is_tabular(value)


def test_the_index_of_a_data_frame_is_left_out() -> None:
    frame = pa.table({"a": [1, 2]}).to_pandas().set_index(np.array([5, 9]))
    assert as_arrow(frame, "the table").column_names == ["a"]
