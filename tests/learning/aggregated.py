"""An aggregated log made of counts."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from tests.log_tables import log_table


def aggregated_log(data: RankingData, parts: Mapping[str, LogStatistics]) -> AggregatedLog:
    """The counts of each part as tables; which documents were clicked together is not known, and not told."""
    assert data.query_ids is not None
    assert data.document_ids is not None
    impressions, patterns = [], []
    for name, log in parts.items():
        document, rank = np.nonzero(log.shown)
        columns = {
            "part": [name] * len(document),
            "period": [0] * len(document),
            "query_id": data.query_ids[data.query_of_document[document]],
            "document_id": data.document_ids[document],
            "position": rank + 1,
            "shown": log.shown[document, rank],
            "clicked": log.clicked[document, rank],
        }
        impressions.append(log_table("shown_counts", columns))
        issued = np.flatnonzero(log.interactions)
        columns = {
            "part": [name] * len(issued),
            "period": [0] * len(issued),
            "query_id": data.query_ids[issued],
            "clicked": [[]] * len(issued),
            "interactions": log.interactions[issued],
        }
        patterns.append(log_table("patterns", columns))
    cutoff = max(log.cutoff for log in parts.values())
    manifest = {"source": "log.parquet", "cutoff": cutoff, "split": {"by": "hash", "seed": 0}}
    return AggregatedLog(pa.concat_tables(impressions), pa.concat_tables(patterns), manifest)
