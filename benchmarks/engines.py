"""How long each engine takes to count the same log: `python benchmarks/engines.py [--rows 1e7]`.

A log as in `benchmarks/aggregate.py`, as a table of DuckDB, of PostgreSQL (a server of its own) and of Spark (two
workers, each a process, on this machine; rows scattered over files). Each is counted with all checks by `load_log`, and
every table that comes back must equal DuckDB's to the last count; it ends with an error if one does not. Times are
those of one run each, beside their ratio to DuckDB's. Engines that are not installed are named as skipped.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import ibis
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from saferank.logs.aggregated_log import SCHEMAS, AggregatedLog
from saferank.logs.load_log import load_log

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.aggregate import write_log
from tests.servers import postgres_server, spark_cluster

BLOCK = 1 << 20


@contextmanager
def in_duckdb(file: Path) -> Iterator[str]:
    database = file.with_name("log.db")
    with duckdb.connect(str(database)) as connection:
        connection.execute("create table log as from read_parquet(?)", [str(file)])
    yield f"duckdb://{database}/log"


@contextmanager
def in_postgres(file: Path) -> Iterator[str]:
    with postgres_server(language=False) as url:
        connection = ibis.connect(url)
        log = pq.ParquetFile(file)
        connection.create_table("log", schema=ibis.Schema.from_pyarrow(log.schema_arrow))
        with connection.con.cursor() as cursor, cursor.copy("copy log from stdin (format csv)") as copy:
            for batch in log.iter_batches(BLOCK):
                copy.write(_csv(batch))
        connection.raw_sql("analyze log")
        connection.con.close()
        yield f"{url}/log"


def _csv(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(batch, sink, pa.csv.WriteOptions(include_header=False))
    return bytes(sink.getvalue())


@contextmanager
def in_spark(file: Path) -> Iterator[str]:
    with spark_cluster() as session:
        session.read.parquet(str(file)).repartition(8).write.saveAsTable("log")
        yield "spark:///log"


ENGINES = {"DuckDB": in_duckdb, "PostgreSQL": in_postgres, "Spark": in_spark}


def same(ours: AggregatedLog, theirs: AggregatedLog) -> bool:
    """Whether all tables are equal, row by row."""
    return all(
        (one := getattr(ours, name)) is (other := getattr(theirs, name)) or one.equals(other) for name in SCHEMAS
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**7)
    parser.add_argument("--engines", default=",".join(ENGINES), help="which, after DuckDB, with commas between")
    arguments = parser.parse_args()
    console, first, differ = Console(), None, False
    table = Table("engine", title=f"{arguments.rows:,} rows, ten per impression")
    for heading in ("seconds", "times DuckDB", "shown counts", "patterns", "equal"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.parquet"
        write_log(file, arguments.rows)
        for name, place in ENGINES.items():
            if name not in ("DuckDB", *arguments.engines.split(",")):
                continue
            try:
                with console.status(name), place(file) as url:
                    begin = time.perf_counter()
                    counted = load_log(url)
                    seconds = time.perf_counter() - begin
            except BaseException as error:
                if type(error).__name__ != "Skipped":  # as tests are, where something is not installed
                    raise
                table.add_row(name, "skipped", str(error))
                continue
            first = first or (seconds, counted)
            equal = same(first[1], counted)
            differ |= not equal
            rows = f"{len(counted.shown_counts):,}", f"{len(counted.patterns):,}"
            table.add_row(name, f"{seconds:.1f}", f"{seconds / first[0]:.1f}", *rows, "yes" if equal else "NO")
    console.print(table)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
