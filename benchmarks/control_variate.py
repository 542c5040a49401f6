"""What a control variate would save: `python benchmarks/control_variate.py`.

The verdict's term of an interaction is X = sum over clicks of rho / rho_0 - 1. Z = sum over what was shown of
examination * (rho / rho_0 - 1) has a known mean, so X - c (Z - E Z) estimates the same. The table has the variance that
is left, with the best constant c, and with the true relevance of every document in its place (doubly robust, at best).
Both need what every single interaction showed; the verdict only needs counts.
"""

import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.engine.plackett_luce import exposure
from saferank.lab.simulate import simulate
from saferank.lab.world import make_world, prepare

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.certify import shifted_policy


def main() -> None:
    world = make_world(prepare(load_dataset("synthetic:small")), seed=0)
    data, examination, relevance = world.train, world.click_model.examination, world.relevance("train")
    scores = world.logging_scores["train"]
    rho_0 = exposure(scores, data.offsets, examination).astype(np.float64)
    log = simulate(
        scores, data.offsets, relevance, examination, 400_000, np.random.default_rng(0), keep_rankings=400_000
    )
    assert log.rankings is not None
    rows = log.rankings.rows(data.offsets)
    examined = examination * (log.rankings.ranking >= 0)
    table = Table(title="Share of the variance of a term that is left, 400,000 interactions, paper's setting")
    for name in ("truth", "largest weight", "one constant", "true relevance"):
        table.add_column(name, justify="right")
    for factor in (1.05, 1.02, 0.95):
        rho = shifted_policy(world, factor)
        for limit in (20.0, 50.0, 100.0):
            weight = (np.minimum(rho / rho_0, limit) - 1)[rows]
            x, z = (weight * log.rankings.clicks).sum(axis=1), (weight * examined).sum(axis=1)
            constant = np.cov(x, z)[0, 1] / z.var()
            robust = x - (weight * examined * relevance[rows]).sum(axis=1)
            left = [f"{(x - constant * z).var() / x.var():.3f}", f"{robust.var() / x.var():.3f}"]
            table.add_row(f"{factor - 1:+.0%}", f"{limit:g}", *left)
    Console().print(table)


if __name__ == "__main__":
    main()
