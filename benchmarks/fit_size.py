"""What `saferank fit` needs by the number of query-document pairs: `python benchmarks/fit_size.py [--large]`.

A log and features are made for each size (random features, rankings by a noisy linear ranker, position-based clicks;
100 documents and 20 interactions per query, 10 ranks), and a process of its own fits them. Printed are its peak memory
as the operating system counts it, the peak of what it cannot reclaim (`RssAnon`: mapped files are left out), and
seconds, on the clock and of CPU time. Ends with an error if what cannot be reclaimed is above twice the features, or
above 1.5 GB where that is more, for 136 features (with fewer, the log outweighs them). --large adds 1e7 pairs. Linux.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

DOCUMENTS, RANKS, INTERACTIONS = 100, 10, 20
QUERIES_AT_A_TIME = 500
FEATURES = 136
"""As in MSLR-WEB30K."""
SIZES = [(100_000, FEATURES), (1_000_000, FEATURES), (2_250_000, FEATURES)]
LARGE = [(10_000_000, 20), (10_000_000, FEATURES)]
LEAST_LIMIT = 1536
"""Megabytes: the libraries need about 450, and LightGBM reads 200,000 rows in float64 to find its bins."""


@dataclass(frozen=True)
class Peak:
    """Of one process, in megabytes and seconds."""

    resident: float
    anonymous: float
    seconds: float
    cpu_seconds: float


def write_inputs(folder: Path, pairs: int, features: int) -> None:
    """Write log.parquet and features.parquet, a block of queries at a time."""
    rng = np.random.default_rng([pairs, features])
    taste, ranker = rng.normal(size=(2, features)).astype(np.float32) / np.sqrt(features)
    names = [f"f{place}" for place in range(features)]
    values = pa.schema({"query_id": pa.string(), "document_id": pa.string()} | dict.fromkeys(names, pa.float32()))
    shown = {"impression_id": pa.int64(), "query_id": pa.string(), "document_id": pa.string(), "position": pa.int32()}
    log = pa.schema(shown | {"click": pa.int8()})
    files = folder / "features.parquet", folder / "log.parquet"
    with pq.ParquetWriter(files[0], values, use_dictionary=False) as to_features, pq.ParquetWriter(files[1], log) as to:
        for first in range(0, pairs // DOCUMENTS, QUERIES_AT_A_TIME):
            queries = np.arange(first, min(first + QUERIES_AT_A_TIME, pairs // DOCUMENTS))
            x = rng.normal(size=(len(queries) * DOCUMENTS, features)).astype(np.float32)
            ids = np.char.add("q", queries.astype(str)), np.char.add("d", np.arange(DOCUMENTS).astype(str))
            pair = np.repeat(ids[0], DOCUMENTS), np.tile(ids[1], len(queries))
            to_features.write_table(pa.table([*pair, *x.T], schema=values))
            noise = rng.gumbel(size=(len(queries), INTERACTIONS, DOCUMENTS))
            scores = (x @ (taste + ranker)).reshape(len(queries), 1, DOCUMENTS) + noise
            ranking = np.argsort(-scores, axis=2)[:, :, :RANKS]
            relevance = 0.5 / (1 + np.exp(-2 * (x @ taste).reshape(len(queries), 1, DOCUMENTS)))
            chance = np.take_along_axis(np.broadcast_to(relevance, scores.shape), ranking, axis=2)
            click = rng.random(ranking.shape) < chance / np.arange(1, RANKS + 1)
            impression = first * INTERACTIONS + np.arange(len(queries) * INTERACTIONS)
            to.write_table(
                pa.table(
                    {
                        "impression_id": np.repeat(impression, RANKS),
                        "query_id": np.repeat(ids[0], INTERACTIONS * RANKS),
                        "document_id": ids[1][ranking.ravel()],
                        "position": np.tile(np.arange(1, RANKS + 1, dtype=np.int32), len(impression)),
                        "click": click.ravel().astype(np.int8),
                    },
                    schema=log,
                )
            )


def fit_peak(folder: Path, scorer: str) -> Peak:
    """Run `saferank fit` in a process of its own, and watch its memory."""
    command = [sys.executable, "-m", "saferank", "fit", "log.parquet", "--features", "features.parquet"]
    command += ["--out", f"model-{scorer}", "--scorer", scorer]
    started, anonymous = time.monotonic(), 0.0
    with (folder / f"{scorer}.txt").open("w") as words:
        process = subprocess.Popen(command, cwd=folder, stdout=words, stderr=words)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            anonymous = max(anonymous, _anonymous(process.pid))
            time.sleep(0.05)
    if status:
        raise SystemExit((folder / f"{scorer}.txt").read_text())
    seconds = time.monotonic() - started
    return Peak(usage.ru_maxrss / 1024, anonymous, seconds, usage.ru_utime + usage.ru_stime)


def _anonymous(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--sizes", nargs="+", metavar="PAIRSxFEATURES", help="instead, such as 1000000x136")
    parser.add_argument("--scorers", nargs="+", default=["gbdt", "linear"])
    parser.add_argument("--folder", type=Path, help="keep logs and features there, and find them there")
    options = parser.parse_args()
    sizes = SIZES + (LARGE if options.large else [])
    if options.sizes:
        sizes = [(int(pairs), int(features)) for pairs, _, features in (text.partition("x") for text in options.sizes)]
    columns = "features MB", "peak MB", "not reclaimable MB", "limit MB", "seconds", "CPU seconds"
    table = Table("pairs", "features", "scorer", *columns)
    good, console = True, Console(width=120)
    for pairs, features in sizes:
        kept = None if options.folder is None else options.folder / f"{pairs}x{features}"
        folder = Path(tempfile.mkdtemp()) if kept is None else kept
        try:
            if kept is None or not kept.exists():
                folder.mkdir(parents=True, exist_ok=True)
                write_inputs(folder, pairs, features)
            for scorer in options.scorers:
                peak, size = fit_peak(folder, scorer), pairs * features * 4 / 2**20
                limit = max(2 * size, LEAST_LIMIT)
                good &= peak.anonymous <= limit or features < FEATURES
                numbers = (size, peak.resident, peak.anonymous, limit, peak.seconds, peak.cpu_seconds)
                row = f"{pairs:,}", str(features), scorer, *(f"{number:,.0f}" for number in numbers)
                table.add_row(*row)
                print("  ".join(row), file=sys.stderr, flush=True)
        finally:
            if kept is None:
                shutil.rmtree(folder, ignore_errors=True)
    console.print(table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
