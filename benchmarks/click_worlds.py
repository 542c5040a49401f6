"""Every method where users do not click as assumed: `python benchmarks/click_worlds.py`.

The paper's experiment in the worlds of `saferank reproduce --world`: trust in the top ranks, an adversary, rare
queries, few validation queries. Printed for each method and number of interactions are NDCG@5 on the test labels, and
true clicks on the training queries against those of the logging policy, both in the mean over runs. PRPO has a limit
whatever the clicks: if no document has less than 1/c of its logging exposure, at most 1 - 1/c of the clicks are lost.
Results are kept in --out, and a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from saferank.engine.objectives.prpo import growing_limit
from saferank.lab.click_worlds import CLICK_WORLDS
from saferank.lab.experiment import Plan
from saferank.lab.reproduce import reproduce
from saferank.lab.results import LABELS, NEIGHBOURS

METHODS = ("logging", "naive", "exposure-ips", "exposure-crm", "exposure-crm-known", *NEIGHBOURS, "auto")
Cell = tuple[float, float, float]
"""NDCG@5, true clicks, and those of the worst run, both over the logging policy's."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", choices=list(CLICK_WORLDS), default=list(CLICK_WORLDS))
    parser.add_argument("--interactions", type=float, nargs="+", default=[400, 1e5, 1e8])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: one per core")
    parser.add_argument("--out", type=Path, default=Path("click-worlds"))
    options = parser.parse_args()
    console = Console()
    sizes = tuple(round(n) for n in options.interactions)
    for name in options.worlds:
        plan = Plan("synthetic:small", METHODS, sizes, runs=options.runs, world=name)
        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task(name)

            def tell(done: int, total: int, _: list[str], bar: Progress = bar, task: TaskID = task) -> None:
                bar.update(task, completed=done, total=total)

            results = reproduce(plan, options.out / name, jobs=options.jobs, progress=tell)
        show(console, name, pq.read_table(results).to_pylist(), sizes)
    return 0


def show(console: Console, name: str, rows: list[dict[str, Any]], sizes: tuple[int, ...]) -> None:
    """Print one world's table, and PRPO's limit."""
    table = Table(title=f"{name}: {CLICK_WORLDS[name].description}")
    table.add_column("method")
    for n in sizes:
        table.add_column(f"N = {n:,}: NDCG@5", justify="right")
        table.add_column("clicks (worst run)", justify="right")
    for method in METHODS:
        found = [cell(rows, method, n) for n in sizes]
        table.add_row(LABELS[method], *(text for one in found for text in _texts(one)))
    console.print(table)
    for n in sizes:
        limit, worst = 1.0 / growing_limit(n) - 1.0, cell(rows, "prpo", n)[2] - 1.0
        kept = "kept" if worst >= limit else "NOT kept"
        console.print(f"PRPO at N = {n:,}: at worst {worst:+.1%} of the clicks; its limit is {limit:+.1%}: {kept}.")
    console.print()


def cell(rows: list[dict[str, Any]], method: str, interactions: int) -> Cell:
    """Mean NDCG@5, and mean and worst clicks over those of the logging policy of the same run."""

    def values(of: str, n: int, what: str) -> np.ndarray:
        chosen = {row["run"]: row[what] for row in rows if (row["method"], row["interactions"]) == (of, n)}
        return np.array([chosen[run] for run in sorted(chosen)], np.float64)

    n = 0 if method == "logging" else interactions
    clicks = values(method, n, "clicks") / values("logging", 0, "clicks")
    return float(values(method, n, "ndcg").mean()), float(clicks.mean()), float(clicks.min())


def _texts(one: Cell) -> tuple[str, str]:
    return f"{one[0]:.3f}", f"{one[1] - 1.0:+.1%} ({one[2] - 1.0:+.1%})"


if __name__ == "__main__":
    raise SystemExit(main())
