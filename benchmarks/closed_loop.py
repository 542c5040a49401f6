"""Ten rounds of log, learn, certify, deploy: `python benchmarks/closed_loop.py`.

The true utility of what is live after each round, for CRM that goes live only with a certificate, and for IPS that goes
live whatever it is. The logging policy of each round is the one that is live, so its exposure is known.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.features.load_features import with_ids
from saferank.lab.closed_loop import Round, closed_loop
from saferank.lab.end_to_end import production_policy, true_utility
from saferank.lab.world import make_world, prepare
from saferank.learning.settings import FitSettings
from saferank.report.closed_loop_figure import closed_loop_figure
from saferank.report.figures import save_figure

WAYS = {"CRM, certified": ("exposure-crm", True), "IPS, blindly": ("exposure-ips", False)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--interactions", type=float, nargs="+", default=[2e3, 3e4], help="of each round")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--fraction", type=float, default=0.5, help="share of the labels behind the first ranker")
    parser.add_argument("--out", type=Path, default=Path("closed-loop"))
    options = parser.parse_args()
    console = Console()
    model = PositionBasedModel(relevance_slope=0.2, relevance_noise=0.05)
    raw = load_dataset("synthetic:small")
    dataset, data = prepare(raw), with_ids(raw.train)
    history: dict[tuple[str, int, int], list[float]] = {}
    fell = 0
    for run in range(options.runs):
        world = make_world(dataset, seed=run, fraction=options.fraction, click_model=model)
        for interactions in (round(n) for n in options.interactions):
            for name, (method, certified) in WAYS.items():

                def tell(done: Round, name: str = name, run: int = run, n: int = interactions) -> None:
                    console.print(
                        f"run {run}, {n:,} per round, {name}, round {done.number}: live {done.utility:.5f}, "
                        f"learned {done.candidate:.5f}, {done.verdict}",
                        highlight=False,
                    )

                rounds = closed_loop(
                    world, data, settings=FitSettings(method=method), certified=certified, rounds=options.rounds,
                    interactions=interactions, seed=run, progress=tell,
                )  # fmt: skip
                utilities = [
                    true_utility(production_policy(world, data), world, data),
                    *(one.utility for one in rounds),
                ]
                history[name, interactions, run] = utilities
                if certified:
                    fell += sum(after < before for before, after in pairwise(utilities))
    table = Table(title="True clicks per interaction of what is live")
    for column in ("interactions per round", "way", "at the start", "at the end", "rounds in which it fell"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for interactions in (round(n) for n in options.interactions):
        for name in WAYS:
            runs = [history[name, interactions, run] for run in range(options.runs)]
            falls = sum(after < before for one in runs for before, after in pairwise(one))
            begin, end = (sum(one[place] for one in runs) / len(runs) for place in (0, -1))
            table.add_row(
                f"{interactions:,}", name, f"{begin:.4f}", f"{end:.4f}", f"{falls} of {options.rounds * options.runs}"
            )
    console.print(table)
    save_figure(closed_loop_figure(history), options.out, "closed_loop")
    console.print(f"The picture is {options.out / 'closed_loop.png'}.")
    return 1 if fell else 0


if __name__ == "__main__":
    raise SystemExit(main())
