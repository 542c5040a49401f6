"""Query-document pairs from Parquet, CSV and memory, batch by batch: features as one table, candidates as a stream."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import offsets_of
from saferank.engine.types.ranking_data import RankingData
from saferank.features.categories import Categories, values_of
from saferank.features.columns import is_numeric
from saferank.features.pair_tables import IDS, PairTables, matrix, readable
from saferank.features.table_source import TableSource, source_name, table_sources
from saferank.files.arrow_tables import Tabular
from saferank.files.large_table import TableWriter

Missing = Literal["error", "nan"]
ROWS = 1 << 16
"""Rows of a block of candidates, except for a query that continues beyond it."""


def read_features(
    path: str | Path | Tabular,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] | Categories = (),
    query: str = "query_id",
    document: str = "document_id",
    id_columns: Mapping[str, str] | None = None,
    missing: Missing = "error",
) -> RankingData:
    """Read a Parquet or CSV file, all such files below a folder, those that match a pattern, or a table in memory.

    `columns` are the features, by default every column of numbers (or of true and false, as 1 and 0) of the first
    file. Columns of text that are `categorical` become one feature for each of their values, or for each of those
    that are given with them. Rows of one query need not be adjacent: they are grouped, in the order in which queries
    and rows first appear. Rows in error messages count from 0 in their file. `id_columns` are the log's names of
    `query_id` and `document_id`, which are used where the features have no column of ours. Null and NaN in a feature
    are an `error`, or, with `missing="nan"`, NaN for whoever uses the data to fill in.
    """
    if missing not in get_args(Missing):
        raise UsageError(f"missing='{missing}' is unknown; choose {' or '.join(get_args(Missing))}.")
    names = None if columns is None else tuple(name for name in columns if name not in categorical)
    sources, name = table_sources(path), source_name(path)
    query, document = id_names(sources[0], query, document, id_columns or {})
    reader = PairTables(
        sources, query, document, names, numeric=names or (), missing=missing == "nan",
        categories=categorical if isinstance(categorical, Mapping) else category_values(sources, categorical),
    )  # fmt: skip
    pairs, features = [], None
    for table in reader:
        pairs.append(table.select([0, 1]))
        features = features or TableWriter(table.num_columns - 2)
        features.append(matrix(table))
    if not reader.feature_names:
        raise DataError("has no numeric column to use as a feature.", file=sources[0].name)
    if features is None:
        raise DataError("has no rows; there is nothing to read.", file=name)
    return reader.grouped(pa.concat_tables(pairs), features.finish(), str(name))


def id_names(source: TableSource, query: str, document: str, others: Mapping[str, str]) -> tuple[str, str]:
    """Return the columns of ids: those of our names where they are there, else those of other names, if there."""
    with readable(source):
        there = source.schema().names
    chosen = []
    for ours, default in zip(IDS, (query, document), strict=True):
        theirs = others.get(ours, default)
        chosen.append(theirs if default not in there and theirs in there else default)
    return chosen[0], chosen[1]


def category_values(sources: Sequence[TableSource], columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each of these columns of text."""
    return {column: values_of(_blocks(sources, column), column, file=sources[0].name) for column in columns}


def _blocks(sources: Sequence[TableSource], column: str) -> Iterator[pa.ChunkedArray]:
    def chosen(schema: pa.Schema) -> list[str]:
        if column not in schema.names:
            there = ", ".join(schema.names)
            raise DataError(f"there is no such column; there are {there}.", file=source.name, column=column)
        return [column]

    for source in sources:
        with readable(source):
            for batch in source.batches(ROWS, chosen, {column: pa.string()}):
                yield pa.chunked_array([batch.column(0)])


def candidate_files(path: str | Path) -> list[Path]:
    """Return the files that `read_candidates` reads."""
    return [Path(source.name) for source in table_sources(path, mixed=True)]


def read_candidates(
    path: str | Path | Tabular,
    *,
    numbers: Collection[str] = (),
    ignore: Collection[str] = (),
    categories: Categories | None = None,
    query: str = "query_id",
    document: str = "document_id",
    id_columns: Mapping[str, str] | None = None,
    rows: int = ROWS,
) -> Iterator[RankingData]:
    """Read a Parquet or CSV file, all below a folder, those that match a pattern, or a table in memory, by queries.

    Every column of numbers (or of true and false, as 1 and 0) except those to `ignore` is a feature, and those in
    `numbers` must be; values of columns of text are those in `categories`. A missing value is NaN.
    A query whose rows are not adjacent is an error, and so is a document that appears twice in its query. Besides a
    block, only the ids of the queries that have passed are kept. `id_columns`: as for `read_features`.
    """
    sources = table_sources(path, mixed=True)
    query, document = id_names(sources[0], query, document, id_columns or {})
    reader = PairTables(
        sources, query, document, numeric=numbers, ignore=ignore, categories=categories or {}, candidates=True,
        rows=rows,
    )  # fmt: skip
    passed, seen = 0, set[str]()

    def block(table: pa.Table, starts: NDArray[np.int64]) -> RankingData:
        """Return these rows, which are whole queries that begin at `starts`."""
        nonlocal passed
        for start, query_id in zip(starts.tolist(), table[query].take(pa.array(starts)).to_pylist(), strict=True):
            if query_id in seen:
                message = f"query {query_id} appears again after other queries; keep the rows of a query together."
                raise reader.error(message, passed + start)
            seen.add(query_id)
        data = reader.grouped(table, matrix(table), str(source_name(path)), passed)
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
        raise DataError("has no rows; there is nothing to rank.", file=source_name(path))
    yield block(pending, np.zeros(1, np.int64))


def joined(blocks: Sequence[RankingData]) -> RankingData:
    """Return blocks of whole queries, which have the same columns, as one."""
    if len(blocks) == 1:
        return blocks[0]
    ids = [block.require_ids() for block in blocks]
    return replace(
        blocks[0],
        features=np.concatenate([block.features for block in blocks]),
        offsets=offsets_of(np.concatenate([block.lengths for block in blocks])),
        query_ids=np.concatenate([query for query, _ in ids]),
        document_ids=np.concatenate([document for _, document in ids]),
        check_finite=False,
    )


def text_columns(path: str | Path | Tabular) -> list[str]:
    """Return the columns, besides the ids, that are no features because they hold no numbers; [] of other formats."""
    try:
        schema = table_sources(path)[0].schema()
    except (DataError, pa.ArrowInvalid):
        return []
    return [one.name for one in schema if one.name not in IDS and not is_numeric(one.type)]
