"""Reader of features: one row per query-document pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import offsets_of
from saferank.engine.types.ranking_data import RankingData
from saferank.features.columns import numbered, repeated_pair
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
    names = reader.names or ()
    if not names:
        raise DataError("has no column of numbers to use as a feature.", file=reader.files[0])
    if not tables:
        raise DataError("has no row; there is nothing to read.", file=path)
    table = pa.concat_tables(tables)
    query_code, query_ids = numbered(table.column(0))
    document_code, document_ids = numbered(table.column(1))
    if (row := repeated_pair(query_code, document_code)) is not None:
        pair = f"query {query_ids[query_code[row]]}, document {document_ids[document_code[row]]}"
        raise reader.error(f"{pair} appears twice; keep one row of each pair.", row)
    order = np.argsort(query_code, kind="stable")
    features = np.empty((len(order), len(names)), np.float32)
    for place in range(len(names)):
        features[:, place] = table.column(place + 2).to_numpy()[order]
    return RankingData(
        features=features,
        offsets=offsets_of(np.bincount(query_code)),
        query_ids=query_ids,
        document_ids=document_ids[document_code[order]],
        feature_names=names,
        source=str(path),
        check_finite=False,  # checked by the reader, which knows the file and the row
    )
