"""Reader of documents to rank, as a stream: rows of one query are adjacent, and no more than a block is in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.tables import CSV, PairTables
from saferank.files.table_files import table_files

ROWS = 1 << 16
"""Rows of a block, except for a query that continues beyond it."""


def candidate_files(path: str | Path) -> list[Path]:
    """Return the files that `read_candidates` reads."""
    return table_files(path, (".parquet", *CSV))


def read_candidates(
    path: str | Path,
    *,
    numbers: Collection[str] = (),
    ignore: Collection[str] = (),
    query: str = "query_id",
    document: str = "document_id",
    rows: int = ROWS,
) -> Iterator[RankingData]:
    """Read a Parquet or CSV file, all those below a folder, or those that match a pattern, in blocks of queries.

    Every column of numbers (or of true and false, as 1 and 0) except those to `ignore` is a feature, and those in
    `numbers` must be. A missing value is NaN. A query whose rows are not adjacent is an error, and so is a document
    that appears twice in its query. Besides a block, only the ids of the queries that have passed are kept.
    """
    files = candidate_files(path)
    reader = PairTables(
        files, query=query, document=document, numeric=numbers, ignore=ignore, same_columns=True, rows=rows
    )
    passed, seen = 0, set[str]()

    def block(table: pa.Table, starts: NDArray[np.int64]) -> RankingData:
        """Return these rows, which are whole queries that begin at `starts`."""
        nonlocal passed
        for start, query_id in zip(starts.tolist(), table[query].take(pa.array(starts)).to_pylist(), strict=True):
            if query_id in seen:
                message = f"query {query_id} appears again after other queries; keep the rows of a query together."
                raise reader.error(message, passed + start)
            seen.add(query_id)
        data = reader.grouped(table, str(path), passed)
        passed += len(table)
        return data

    pending: pa.Table | None = None
    for table in reader:
        pending = table if pending is None else pa.concat_tables([pending, table])
        ids = pending[query].combine_chunks()
        changes = pc.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1)).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
        if len(starts) > 1:  # the last query may continue in the next table
            yield block(pending.slice(0, starts[-1]), starts[:-1])
            pending = pending.slice(starts[-1])
    if pending is None:
        raise DataError("has no row; there is nothing to rank.", file=path)
    yield block(pending, np.zeros(1, np.int64))
