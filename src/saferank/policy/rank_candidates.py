"""Candidates ranked as a stream, block by block, and written to a Parquet or CSV file."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.files.atomic_write import whole_file
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs, serve, shown_examination

WRITERS = {".parquet": pq.ParquetWriter, ".csv": pyarrow.csv.CSVWriter}
IDS = ("query_id", "document_id")
COLUMNS = (
    ("score", pa.float32()),
    ("rank", pa.int32()),
    ("exposure", pa.float64()),
)
SAMPLED = ("log_probability", pa.float64())


def rank_candidates(
    policy: Policy,
    candidates: Iterable[RankingData],
    *,
    serve_as: ServeAs = "deterministic",
    seed: int | None = None,
    cutoff: int | None = None,
) -> Iterator[pa.Table]:
    """Yield a table for each block of queries, its rows in the order of the candidates; see `serve` for the columns.

    `log_probability`, of the ranks that are shown, is a column if rankings are drawn; it is the same in all rows of a
    query. The same `seed` draws the same rankings, whatever the blocks; without a seed, they differ each time.
    `cutoff`: show fewer ranks than the policy was learned for.
    """
    examination = shown_examination(policy.examination, cutoff)
    schema = output_schema(serve_as)
    rng = np.random.default_rng(seed)
    for data in candidates:
        served = serve(policy.scores(data), data.offsets, examination, serve_as=serve_as, rng=rng)
        if data.query_ids is None or data.document_ids is None:
            raise DataError("has no query and document ids; add them.", file=data.source)
        query_ids = pa.array(data.query_ids, pa.string()).take(pa.array(data.query_of_document))
        columns = [query_ids, pa.array(data.document_ids, pa.string()), served.scores, served.rank, served.exposure]
        if served.log_probability is not None:
            columns.append(served.log_probability[data.query_of_document])
        yield pa.table([pa.array(column) for column in columns], schema=schema)


def output_schema(serve_as: ServeAs, ids: Sequence[str] = IDS) -> pa.Schema:
    """Return the columns that `rank_candidates` yields, with the names that the ids have in the candidates."""
    numbers = (*COLUMNS, SAMPLED) if serve_as == "sampled" else COLUMNS
    return pa.schema([*((name, pa.string()) for name in ids), *numbers])


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, out: Path) -> int:
    """Write the tables one after the other, atomically, in the format of the suffix; return the number of rows.

    The columns are those of the tables, in this order, by the names of the schema.
    """
    rows = 0
    with whole_file(out) as unfinished, WRITERS[out.suffix](unfinished, schema) as writer:
        for table in tables:
            writer.write_table(table.rename_columns(schema.names))
            rows += len(table)
    return rows


def check_output(out: Path) -> None:
    """Raise unless the file name ends in a known format."""
    if out.suffix not in WRITERS:
        raise UsageError(f"{out}: must end in {' or '.join(WRITERS)}, which decides the format.")
