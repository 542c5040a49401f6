"""How quickly a LETOR file is read, beside scikit-learn: at least 5 times as fast, and the same values.

python benchmarks/letor_reader.py [MEGABYTES]
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_svmlight_file

from saferank.datasets.letor import read_letor

FEATURES = 136
LEAST_RATIO = 5.0
Result = TypeVar("Result")


def write_file(path: Path, megabytes: float) -> None:
    """Write text like that of MSLR: half of the features are whole numbers, half have six decimals."""
    random = np.random.default_rng(0)
    query = 0
    with path.open("w") as file:
        while file.tell() < megabytes * 1e6:
            query += 1
            for _ in range(random.integers(1, 240)):
                counts = random.geometric(0.05, FEATURES) - 1
                values = [
                    f"{feature + 1}:{count if feature % 2 else f'{count * weight:.6f}'}"
                    for feature, (count, weight) in enumerate(zip(counts, random.random(FEATURES), strict=True))
                ]
                file.write(f"{random.integers(5)} qid:{query} {' '.join(values)}\n")


def timed(action: Callable[[], Result], repeats: int = 3) -> tuple[float, Result]:
    """Return the best time of a few runs, in seconds, and what the last one returned."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SAFERANK_CACHE"] = f"{folder}/cache"
        small, path = Path(folder) / "small.txt", Path(folder) / "train.txt"
        write_file(small, 0.1)
        write_file(path, megabytes)
        read_letor(small, cache=False)  # compiles the parser
        other, (expected, labels, _) = timed(lambda: load_svmlight_file(str(path), query_id=True, zero_based=False))
        cold, data = timed(lambda: read_letor(path, cache=False))
        first, _ = timed(lambda: read_letor(path), repeats=1)
        cached, again = timed(lambda: read_letor(path))

        size = path.stat().st_size / 1e6
        np.testing.assert_array_equal(data.features, expected.toarray().astype(np.float32))
        np.testing.assert_array_equal(again.features, data.features)
        np.testing.assert_array_equal(data.require_labels(), labels)

    table = Table(title=f"{size:.0f} MB, {data.documents:,} documents, {FEATURES} features; values equal")
    for heading in ("", "seconds", "MB/s", "times scikit-learn"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for name, seconds in (
        ("scikit-learn", other),
        ("saferank", cold),
        ("saferank, and fill the cache", first),
        ("saferank, from the cache", cached),
    ):
        table.add_row(name, f"{seconds:.4f}", f"{size / seconds:,.0f}", f"{other / seconds:,.1f}")
    Console().print(table)
    if other / cold < LEAST_RATIO:
        sys.exit(f"only {other / cold:.1f} times as fast as scikit-learn; at least {LEAST_RATIO} is promised.")


if __name__ == "__main__":
    main()
