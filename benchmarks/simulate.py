"""How long clicks take to simulate on 19,000 queries with 120 documents on average: a billion in under a minute.

Judged by CPU time per thread, so that what else the machine does is left out of it.

python benchmarks/simulate.py [--full]    --full goes on to 1e9
"""

import resource
import sys
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.plackett_luce.ragged import thread_count
from saferank.simulation.click_model import PositionBasedModel
from saferank.simulation.simulate import simulate

QUERIES = 19_000
MEAN_LENGTH = 120
SPREADS = {"mild": 1.0, "peaked": 3.0, "very peaked": 10.0}
"""Standard deviation of the scores."""
MOST_SECONDS, MOST_GIGABYTES = 60.0, 4.0


def lists(rng: np.random.Generator) -> NDArray[np.int64]:
    """Offsets of lists with a tail to 1,000 documents, like those of MSLR."""
    lengths = np.clip(rng.gamma(2.0, MEAN_LENGTH / 2.0, QUERIES).astype(np.int64), 1, 1_000)
    return np.concatenate([[0], np.cumsum(lengths)])


def main() -> None:
    full = "--full" in sys.argv[1:]
    rng = np.random.default_rng(0)
    offsets = lists(rng)
    model = PositionBasedModel()
    relevance = model.relevance(rng.integers(0, 5, offsets[-1]))
    unit = rng.normal(size=offsets[-1])
    simulate(unit[: offsets[1]], offsets[:2], relevance[: offsets[1]], model.examination, 10, rng)  # compiles

    title = f"{QUERIES:,} queries, {offsets[-1]:,} documents, K = 5, {thread_count()} threads"
    table = Table(title=title, title_justify="left")
    for heading in ("scores", "interactions", "seconds", "CPU seconds", "CPU ns per interaction", "peak memory, GB"):
        table.add_column(heading, justify="left" if heading == "scores" else "right")
    too_slow = False
    for name, spread in SPREADS.items():
        for exponent in range(5, 10 if full else 9):
            interactions = 10**exponent
            begin, cpu_begin = time.perf_counter(), time.process_time()
            log = simulate(spread * unit, offsets, relevance, model.examination, interactions, rng)
            seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu_begin
            assert log.total_interactions == interactions
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            each = f"{1e9 * cpu / interactions:,.0f}"
            table.add_row(name, f"1e{exponent}", f"{seconds:.2f}", f"{cpu:.2f}", each, f"{memory:.2f}")
            too_slow |= cpu / thread_count() > MOST_SECONDS or memory > MOST_GIGABYTES
    Console().print(table)
    if too_slow:
        sys.exit(f"more than {MOST_SECONDS:.0f} seconds or {MOST_GIGABYTES:.0f} GB for up to a billion interactions.")


if __name__ == "__main__":
    main()
