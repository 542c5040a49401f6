"""Reader of documents to rank, as a stream: rows of one query are adjacent, and no more than a block is in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.ragged import query_of_document
from saferank.engine.types.ranking_data import RankingData
from saferank.features.columns import numbered, repeated_pair
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
    reader = PairTables(
        candidate_files(path),
        query=query,
        document=document,
        numeric=numbers,
        ignore=ignore,
        same_columns=True,
        rows=rows,
    )
    passed, seen = 0, set[str]()

    def block(table: pa.Table, starts: NDArray[np.int64]) -> RankingData:
        """Return these rows, which are whole queries that begin at `starts`."""
        nonlocal passed
        query_ids = table[query].take(pa.array(starts)).to_pylist()
        for start, query_id in zip(starts.tolist(), query_ids, strict=True):
            if query_id in seen:
                message = f"query {query_id} appears again after other queries; keep the rows of a query together."
                raise reader.error(message, passed + start)
            seen.add(query_id)
        offsets = np.append(starts, len(table))
        document_code, document_ids = numbered(table[document])
        if (row := repeated_pair(query_of_document(offsets), document_code)) is not None:
            pair = f"query {table[query][row]}, document {table[document][row]}"
            raise reader.error(f"{pair} appears twice; keep one row of each pair.", passed + row)
        passed += len(table)
        features = np.empty((len(table), len(reader.names or ())), np.float32)
        for place in range(features.shape[1]):
            features[:, place] = table.column(place + 2).to_numpy()
        return RankingData(
            features=features,
            offsets=offsets,
            query_ids=np.array(query_ids, np.str_),
            document_ids=document_ids[document_code],
            feature_names=reader.names,
            source=str(path),
            check_finite=False,
        )

    pending: pa.Table | None = None
    for table in reader:
        pending = table if pending is None else pa.concat_tables([pending, table])
        starts = _run_starts(pending[query])
        if len(starts) > 1:  # the last query may continue in the next table
            yield block(pending.slice(0, starts[-1]), starts[:-1])
            pending = pending.slice(starts[-1])
    if pending is None:
        raise DataError("has no row; there is nothing to rank.", file=path)
    yield block(pending, np.zeros(1, np.int64))


def _run_starts(values: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return where a run of equal values begins."""
    flat = values.combine_chunks()
    changes = pc.not_equal(flat.slice(1), flat.slice(0, len(flat) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(changes) + 1])
