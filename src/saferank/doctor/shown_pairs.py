"""The counts of a log by themselves, without features."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog


def shown_pairs(aggregated: AggregatedLog) -> RankingData:
    """Return the queries and documents that the log shows, sorted, as a data set without any feature."""
    table = aggregated.shown_counts.select(["query_id", "document_id"]).group_by(["query_id", "document_id"])
    pairs = table.aggregate([]).sort_by([("query_id", "ascending"), ("document_id", "ascending")])
    if pairs.num_rows == 0:
        raise DataError("shows no document; there is nothing to diagnose.", file=aggregated.source)
    query = pairs["query_id"].combine_chunks().dictionary_encode()
    code = query.indices.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    return RankingData(
        features=np.zeros((len(pairs), 0), np.float32),
        offsets=np.append(starts, len(pairs)),
        query_ids=_texts(query.dictionary),
        document_ids=_texts(pairs["document_id"]),
        feature_names=(),
        source=aggregated.source,
    )


def _texts(values: pa.Array | pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    return np.array(values.to_pylist(), np.str_)
