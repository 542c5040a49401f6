"""A simulated click log in full: a Parquet file with one row per shown document, written as a stream."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.log_statistics import LoggedRankings, LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import with_ids
from saferank.files.atomic_write import whole_file
from saferank.lab.simulate import Simulator

SCHEMA = pa.schema(
    [
        ("impression_id", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("query_id", pa.string()),
        ("document_id", pa.string()),
        ("position", pa.int32()),
        ("click", pa.int8()),
    ]
)
BEGIN = np.datetime64("2024-01-01T00:00:00", "us")
DURATION = np.timedelta64(30, "D").astype("timedelta64[us]")
"""The interactions are spread evenly over this time."""
IDS = 10**12
"""Impression ids that each month has."""
GROUP = 1 << 17
"""Interactions per row group: all that is in memory at a time."""


def write_raw_log(
    path: str | os.PathLike[str],
    data: RankingData,
    scores: ArrayLike,
    click_model: PositionBasedModel,
    interactions: int,
    rng: np.random.Generator,
    progress: Callable[[int], object] | None = None,
    *,
    group: int = GROUP,
    month: int = 0,
) -> LogStatistics:
    """Simulate a log of `data`, ranked by the Plackett-Luce policy with these scores, and write it; return its counts.

    The distribution is that of `simulate`, in an order that could be one of time: queries come as they come.
    Columns: see `SCHEMA`; positions count from 1. A data set without ids gets `q0`, `q1`, ... and, within each query,
    `d0`, `d1`, ... `progress` is told after each row group how many interactions it has. The file appears under its
    name when it is complete. Logs of different months share no impression id and no moment: they can be read together.
    """
    if interactions < 1:
        raise UsageError(f"got {interactions} interactions, but a log has at least 1.")
    simulator = Simulator(scores, data.offsets, click_model.relevance(data.require_labels()), click_model.examination)
    named = with_ids(data)
    names = pa.array(named.query_ids, pa.string()), pa.array(named.document_ids, pa.string())
    path = Path(path)
    try:
        with whole_file(path) as unfinished, pq.ParquetWriter(unfinished, SCHEMA, compression="zstd") as writer:
            for first in range(0, interactions, group):
                size = min(group, interactions - first)
                log = _draw(simulator, size, rng)
                writer.write_table(_table(log, first, interactions, month, data.offsets, *names))
                if progress is not None:
                    progress(size)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}.", file=path) from error
    return simulator.statistics()


def _draw(simulator: Simulator, size: int, rng: np.random.Generator) -> LoggedRankings:
    """Draw so many interactions, of queries in random order."""
    queries = len(simulator.offsets) - 1
    query = rng.integers(0, queries, size=size)
    log = simulator.add(np.bincount(query, minlength=queries), size, rng)
    place = np.empty(size, np.int64)
    place[np.argsort(query, kind="stable")] = np.arange(size)
    return LoggedRankings(log.query[place], log.ranking[place], log.clicks[place])


def _table(
    log: LoggedRankings,
    first: int,
    interactions: int,
    month: int,
    offsets: NDArray[np.int64],
    query_ids: pa.Array,
    document_ids: pa.Array,
) -> pa.Table:
    row, rank = np.nonzero(log.ranking >= 0)
    impression = first + row
    elapsed = (impression * (int(DURATION.astype(np.int64)) / interactions)).astype("timedelta64[us]")
    columns = [
        pa.array(month * IDS + impression),
        pa.array(BEGIN + month * DURATION + elapsed).cast(SCHEMA.field("timestamp").type),
        query_ids.take(pa.array(log.query[row])),
        document_ids.take(pa.array(log.rows(offsets)[row, rank])),
        pa.array((rank + 1).astype(np.int32)),
        pa.array(log.clicks[row, rank].astype(np.int8)),
    ]
    return pa.table(columns, schema=SCHEMA)
