"""Reader of features: one row per query-document pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.tables import PairTables
from saferank.files.table_files import table_files

Missing = Literal["error", "nan"]


def read_features(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    query: str = "query_id",
    document: str = "document_id",
    missing: Missing = "error",
) -> RankingData:
    """Read a Parquet or CSV file, all Parquet files below a folder, or the files that match a pattern.

    `columns` are the features, by default every column of numbers (or of true and false, as 1 and 0) of the first
    file. Rows of one query need not be adjacent: they are grouped, in the order in which queries and rows first
    appear. Rows in error messages count from 0 in their file. Null and NaN in a feature are an `error`, or, with
    `missing="nan"`, NaN for whoever uses the data to fill in.
    """
    if missing not in get_args(Missing):
        raise UsageError(f"missing='{missing}' is unknown; choose {' or '.join(get_args(Missing))}.")
    reader = PairTables(
        table_files(path, (".parquet",)),
        query=query,
        document=document,
        columns=columns,
        missing=missing == "nan",
        infinite=False,
    )
    tables = list(reader)
    if not reader.names:
        raise DataError("has no column of numbers to use as a feature.", file=reader.files[0])
    if not tables:
        raise DataError("has no row; there is nothing to read.", file=path)
    return reader.grouped(pa.concat_tables(tables), str(path))
