"""How long a log takes to aggregate: `python benchmarks/aggregate.py [--full]`.

Logs of 1e6 and 1e7 rows (and 1e8 with --full), ten documents an impression, as Parquet in a temporary folder. Each is
aggregated by `saferank` with all its checks; by DuckDB SQL written by hand that makes the same three tables (counts,
patterns and the sample, sorted) with none, once from the file alone and once with a temporary table of impressions that
the others join; and by the single plain GROUP BY of query, document and position. The quickest of three processes each,
after their imports; ratios are to the quicker SQL by hand. Ends with an error if 1e8 rows take more than 1.3 times as
long as that, or 4 GB.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

QUERIES, DOCUMENTS, RANKS = 10_000, 30, 10
BLOCK = 1 << 17
REPEATS = 3
MOST_TIMES, MOST_GIGABYTES = 1.3, 4.0

PLAIN = """
    select query_id, document_id, position, count(*) shown, count(*) filter (click > 0) clicked
    from '{file}' group by query_id, document_id, position
"""
PART = """
    case when md5('0:' || impression_id::text) < '9999999999999' then 0
         when md5('0:' || impression_id::text) < 'ccccccccccccc' then 1 else 2 end
"""
WIDE = ", ".join(
    f"count(*) filter (part = {part}) shown_{part}, count(*) filter (part = {part} and click > 0) clicked_{part}"
    for part in range(3)
)
LONG = " union all ".join(
    f"select '{name}' part, query_id, document_id, position, shown_{part} shown, clicked_{part} clicked "
    f"from wide where shown_{part} > 0"
    for part, name in enumerate(("train", "validation", "certify"))
)
IMPRESSIONS = f"""
    with wide as materialized (
        select query_id, document_id, position, {WIDE} from (select *, {PART} part from '{{file}}')
        group by query_id, document_id, position
    ) select * from ({LONG}) order by part, query_id, document_id, position
"""
PATTERNS = f"""
    select part, query, clicked, count(*) interactions from (
        select {PART} part, any_value(query_id) query, list_sort(list(document_id) filter (click > 0)) clicked
        from '{{file}}' group by impression_id
    ) group by all order by part, query, clicked
"""
SAMPLE = f"""
    with drawn as (
        select impression_id, any_value({PART}) part from '{{file}}' group by impression_id
        order by md5('sample:' || impression_id::text) limit 50000
    ) select log.*, part from '{{file}}' log join drawn using (impression_id) order by impression_id, position
"""

IMPRESSION_TABLE = f"""
    create temporary table impressions as select *, {PART} part from (
        select impression_id, any_value(query_id) query, list_sort(list(document_id) filter (click > 0)) clicked
        from '{{file}}' group by impression_id
    )
"""
JOINED = (
    "select part, query, clicked, count(*) interactions from impressions group by all order by part, query, clicked",
    f"""
    with wide as materialized (
        select query_id, document_id, position, {WIDE} from '{{file}}' join impressions using (impression_id)
        group by query_id, document_id, position
    ) select * from ({LONG}) order by part, query_id, document_id, position
    """,
    """
    with drawn as (
        select impression_id, part from impressions order by md5('sample:' || impression_id::text) limit 50000
    ) select log.*, part from '{file}' log join drawn using (impression_id) order by impression_id, position
    """,
)
STATEMENTS = {"group-by": (PLAIN,), "by hand": (PATTERNS, IMPRESSIONS, SAMPLE), "by hand, joined": JOINED}


def write_log(path: Path, rows: int) -> None:
    """Make up a log: popular queries are more frequent, rankings are at random, lower ranks are clicked less."""
    rng = np.random.default_rng(0)
    queries = pa.array(np.char.add("q", np.arange(QUERIES).astype(str)), pa.string())
    names = [f"q{query}-d{document}" for query in range(QUERIES) for document in range(DOCUMENTS)]
    documents = pa.array(names, pa.string())
    rankings = np.argsort(rng.random((4096, DOCUMENTS)), axis=1)[:, :RANKS]
    writer = None
    for first in range(0, rows // RANKS, BLOCK):
        size = min(BLOCK, rows // RANKS - first)
        query = (QUERIES * rng.random(size) ** 2).astype(np.int64)
        shown = query[:, None] * DOCUMENTS + rankings[rng.integers(0, len(rankings), size)]
        clicks = rng.random((size, RANKS)) < 0.3 / np.arange(1, RANKS + 1)
        columns = {
            "impression_id": pa.array(np.repeat(np.arange(first, first + size), RANKS)),
            "query_id": queries.take(pa.array(np.repeat(query, RANKS))),
            "document_id": documents.take(pa.array(shown.ravel())),
            "position": pa.array(np.tile(np.arange(1, RANKS + 1, dtype=np.int32), size)),
            "click": pa.array(clicks.ravel().astype(np.int8)),
        }
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def run(way: str, file: str) -> dict[str, float]:
    """Aggregate in this process; return what it took."""
    if way == "saferank":
        import ibis
        import ibis.backends.duckdb.converter  # and pandas with it, at the first query

        from saferank.logs.load_log import load_log  # imported before the clock starts

        assert ibis.duckdb  # which Ibis imports when it is first asked for
    else:
        import duckdb

    begin, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    if way == "saferank":
        rows = len(load_log(file).shown_counts)
    else:
        connection = duckdb.connect(config={"preserve_insertion_order": False, "memory_limit": "2500MB"})
        if way == "by hand, joined":
            connection.execute(IMPRESSION_TABLE.format(file=file))
        rows = sum(len(connection.sql(sql.format(file=file)).to_arrow_table()) for sql in STATEMENTS[way])
    seconds, now = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return {"wall": seconds, "cpu": cpu, "gigabytes": now.ru_maxrss / 2**20, "rows": rows}


def measured(file: Path) -> dict[str, dict[str, float]]:
    """Return the quickest of a few processes of each way, taken in turns: other load comes and goes."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in (*STATEMENTS, "saferank")}
    for _ in range(REPEATS):
        for way, took in runs.items():
            command = [sys.executable, __file__, "--one", way, str(file)]
            took.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    quickest = {way: {name: min(run[name] for run in took) for name in took[0]} for way, took in runs.items()}
    for way, took in runs.items():
        quickest[way]["gigabytes"] = max(run["gigabytes"] for run in took)
    return quickest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="1e8 rows too")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run(*arguments.one)))
        return 0
    console = Console()
    table = Table("rows", "way", title=f"{QUERIES * DOCUMENTS:,} pairs of query and document, {RANKS} ranks")
    for heading in ("wall s", "CPU s", "wall / by hand", "CPU / by hand", "ns a row", "peak GB"):
        table.add_column(heading, justify="right")
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        for exponent in (6, 7, 8) if arguments.full else (6, 7):
            file = Path(folder) / f"{exponent}.parquet"
            with console.status(f"1e{exponent} rows"):
                write_log(file, 10**exponent)
                took = measured(file)
            file.unlink()
            by_hand = {clock: min(took[way][clock] for way in took if "by hand" in way) for clock in ("wall", "cpu")}
            for way, of in took.items():
                times = [of[clock] / by_hand[clock] for clock in by_hand]
                counts = f"{of['wall']:.1f}", f"{of['cpu']:.1f}", *(f"{ratio:.2f}" for ratio in times)
                each = f"{1e9 * of['wall'] / 10**exponent:,.0f}"
                table.add_row(f"1e{exponent}", way, *counts, each, f"{of['gigabytes']:.2f}")
            ratio = took["saferank"]["wall"] / by_hand["wall"]
            bad |= exponent == 8 and (ratio > MOST_TIMES or took["saferank"]["gigabytes"] > MOST_GIGABYTES)
    console.print(table)
    if bad:
        console.print(f"1e8 rows: more than {MOST_TIMES} times by hand, or {MOST_GIGABYTES:.0f} GB; a busy machine?")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
