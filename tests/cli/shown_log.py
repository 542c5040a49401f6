"""A log with rankings in random order, one row per shown document."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.doctor.logs import random_interactions

BEGIN = np.datetime64("2024-01-01T00:00:00", "us")


def write_shown_log(path: Path, *, queries: int, impressions: int = 20, days: int = 10) -> Path:
    """Write `impressions` of each query, over so many days; users examine rank 2 half as often as rank 1."""
    total = queries * impressions
    rows = [
        {
            "impression_id": i,
            "timestamp": BEGIN + np.timedelta64(i * days * 24 * 3600 // total, "s"),
            "query_id": query,
            "document_id": document,
            "position": rank,
            "click": int(document in clicked),
        }
        for i, (query, ranking, clicked) in enumerate(random_interactions(queries, impressions, examination=[1.0, 0.5]))
        for rank, document in enumerate(ranking, 1)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path
