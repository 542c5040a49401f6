"""How long clicks take to simulate: `python benchmarks/simulate.py`.

1e5 to 1e9 interactions on the lists of synthetic:mslr30k (training part), K = 5, for scores from flat to very peaked.
Ends with an error if a billion takes more than 60 s or 4 GB.
"""

import resource
import sys
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.datasets.synthetic import PRESETS, _draw_lengths
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.ragged import thread_count
from saferank.lab.simulate import simulate

SPREADS = {"flat": 0.0, "mild": 1.0, "peaked": 3.0, "very peaked": 10.0}
"""Standard deviation of the scores."""
MOST_SECONDS, MOST_GIGABYTES = 60.0, 4.0


def list_offsets() -> NDArray[np.int64]:
    """Return the offsets of synthetic:mslr30k, drawn as its generator does, without the 25 s for the features."""
    preset, seed = PRESETS["mslr30k"], np.random.SeedSequence(0).spawn(3)[0]
    lengths = _draw_lengths(np.random.default_rng(seed), preset.queries[0], preset.mean_length)
    return np.concatenate([[0], np.cumsum(lengths)])


def main() -> int:
    console = Console()
    rng = np.random.default_rng(0)
    offsets, model = list_offsets(), PositionBasedModel()
    relevance = model.relevance(rng.integers(0, 5, offsets[-1]))
    unit = rng.normal(size=offsets[-1])
    simulate(unit[: offsets[1]], offsets[:2], relevance[: offsets[1]], model.examination, 10, rng)  # compiles

    title = f"{len(offsets) - 1:,} queries, {offsets[-1]:,} documents, K = 5, {thread_count()} threads"
    table = Table("scores", title=title)
    for heading in ("interactions", "wall s", "CPU s", "CPU ns an interaction", "peak GB so far"):
        table.add_column(heading, justify="right")
    most_seconds = memory = 0.0
    for name, spread in SPREADS.items():
        for exponent in range(5, 10):
            interactions = 10**exponent
            wall, cpu = time.perf_counter(), time.process_time()
            log = simulate(spread * unit, offsets, relevance, model.examination, interactions, rng)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            assert log.total_interactions == interactions
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            each = f"{1e9 * cpu / interactions:,.0f}"
            table.add_row(name, f"1e{exponent}", f"{wall:.2f}", f"{cpu:.2f}", each, f"{memory:.2f}")
            most_seconds = max(most_seconds, wall)
    console.print(table)
    console.print(f"a billion: at most {most_seconds:.0f} s and {memory:.2f} GB", highlight=False)
    if most_seconds > MOST_SECONDS or memory > MOST_GIGABYTES:
        console.print(f"more than {MOST_SECONDS:.0f} s or {MOST_GIGABYTES:.0f} GB; is the machine busy otherwise?")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
