"""The certificate: how often it errs, how much data it needs, and what it costs.

Coverage: logs drawn in worlds whose truth is known and where the new policy is no better; the share in which each bound
says DEPLOY must not exceed delta. Power: the paper's setting, a policy that is truly 5% better; the interactions at
which each bound says DEPLOY in four of five logs. Cost: bounds as the patterns of 10^8 interactions grow in number.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.certification.betting import betting, condense, log_capital, planned_bets, spread_bets
from saferank.certification.bounds import BOUNDS
from saferank.certification.differences import Differences, paired_differences
from saferank.data.click_patterns import ClickPatterns
from saferank.data.dataset import load_dataset
from saferank.experiments.world import World, make_world, prepare
from saferank.plackett_luce import exposure
from saferank.simulation.simulate import simulate

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.certification import worlds

DELTA = 0.05
PLANNED = "betting, planned"
"""Betting with the number of interactions and the variance guessed beforehand: what `saferank certify` does."""


def says_deploy(name: str, differences: Differences, variance: float) -> bool:
    if name in ("betting", PLANNED):
        bets = spread_bets()
        if name == PLANNED:
            bets = planned_bets(differences.interactions, variance, differences.low, DELTA)
        return log_capital(differences, 0.0, bets) >= math.log(1.0 / DELTA)
    return BOUNDS[name].lower(differences, DELTA) > 0.0


def names() -> list[str]:
    return [PLANNED, *BOUNDS]


def show_coverage(console: Console, logs: int) -> None:
    table = Table(title=f"Share of false DEPLOY, delta = {DELTA}, {logs:,} logs each, N = 3 / 100 / 10,000")
    made = [worlds.paper_world(), worlds.dcg_world(), worlds.correlated_world(), worlds.heavy_world()]
    table.add_column("bound")
    for world in made:
        table.add_column(world.name, justify="right")
    rates: dict[str, list[str]] = {name: [] for name in names()}
    for world in made:
        values, chances = world.chances_of_values()
        variance = float(chances @ values**2)
        found: dict[str, list[float]] = {name: [] for name in names()}
        for n in (3, 100, 10_000):
            draws = [
                replace(world.outcomes(), values=values[counts > 0], counts=counts[counts > 0])
                for counts in np.random.default_rng(n).multinomial(n, chances, size=logs)
            ]
            for name in names():
                found[name].append(float(np.mean([says_deploy(name, one, variance) for one in draws])))
        for name in names():
            rates[name].append(" / ".join(f"{rate:.3f}" for rate in found[name]))
    for name in names():
        promise = name == PLANNED or BOUNDS[name].guarantee
        table.add_row(name, *rates[name], style="" if promise else "dim")
    console.print(table)
    error = 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / logs)
    console.print(f"Up to {DELTA + error:.3f} is within three standard errors of delta. Dim: no promise.\n")


def better_policy(world: World, factor: float) -> NDArray[np.float64]:
    """Exposure of the logging policy's scores plus so much of the label that its true utility is `factor` times."""
    data, relevance = world.train, world.relevance("train")
    examination = world.click_model.examination
    labels = data.require_labels()

    def shown(push: float) -> NDArray[np.float64]:
        scores = world.logging_scores["train"] + np.float32(push) * labels
        return exposure(scores, data.offsets, examination).astype(np.float64)

    goal, low, high = factor * float(shown(0.0) @ relevance), 0.0, 20.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(shown(middle) @ relevance) < goal else (low, middle)
    return shown(high)


def show_power(console: Console, logs: int) -> None:
    world = make_world(prepare(load_dataset("synthetic:small")), seed=0)
    data, examination = world.train, world.click_model.examination
    old = exposure(world.logging_scores["train"], data.offsets, examination).astype(np.float64)
    table = Table(title="Interactions at which DEPLOY is said in 4 of 5 logs, paper's setting")
    table.add_column("bound")
    found: dict[str, list[str]] = {name: [] for name in names()}
    for factor in (1.05, 1.02):
        new = better_policy(world, factor)
        truth = float((new - old) @ world.relevance("train")) / data.queries
        log = simulate(
            world.logging_scores["train"], data.offsets, world.relevance("train"), examination,
            1_000_000, np.random.default_rng(0), keep_rankings=10_000,
        )  # fmt: skip
        assert log.rankings is not None
        patterns = ClickPatterns.of_rankings(log.rankings, data.offsets)
        population = condense(paired_differences(patterns, data.offsets, new, old, examination))
        table.add_column(f"{factor - 1:.0%} better\n(+{truth:.4f} clicks)", justify="right")
        chances = population.counts / population.counts.sum()
        variance = population.variance
        for name in names():
            found[name].append(_first(name, population, chances, variance, logs))
    for name in names():
        promise = name == PLANNED or BOUNDS[name].guarantee
        table.add_row(name, *found[name], style="" if promise else "dim")
    console.print(table)
    console.print()


def _first(name: str, population: Differences, chances: NDArray[np.float64], variance: float, logs: int) -> str:
    for step in range(28):
        n = round(100 * 2**step)
        rng = np.random.default_rng([step, 1])
        draws = rng.multinomial(n, chances, size=logs)
        deployed = [
            says_deploy(name, replace(population, values=population.values[c > 0], counts=c[c > 0]), variance)
            for c in draws
        ]
        if np.mean(deployed) >= 0.8:
            return f"{n:,}"
    return "more than 10^10"


def show_cost(console: Console, largest: int) -> None:
    table = Table(title="Seconds, 10^8 held-out interactions as so many patterns")
    table.add_column("patterns", justify="right")
    for name in ("differences", *BOUNDS):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(0)
    documents, queries = 600_000, 6_000
    offsets = np.arange(0, documents + 1, documents // queries)
    old = rng.dirichlet(np.full(100, 0.3), queries).ravel() + 1e-6
    new = 0.8 * old + 0.2 * rng.dirichlet(np.full(100, 0.3), queries).ravel()
    for size in [10**k for k in range(4, int(math.log10(largest)) + 1)]:
        query = rng.integers(0, queries, size)
        patterns = ClickPatterns(
            query, np.arange(size + 1), query * 100 + rng.integers(0, 100, size), np.full(size, 10**8 // size)
        )
        begin = time.perf_counter()
        differences = paired_differences(patterns, offsets, new, old, np.ones(5) / 5)
        times = [time.perf_counter() - begin]
        for bound in BOUNDS.values():
            begin = time.perf_counter()
            bound.lower(differences, DELTA)
            times.append(time.perf_counter() - begin)
        table.add_row(f"{size:,}", *(f"{seconds:.2f}" for seconds in times))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=2_000, help="logs of each world")
    parser.add_argument("--patterns", type=int, default=10**7, help="largest number of patterns")
    options = parser.parse_args()
    console = Console()
    betting(Differences(np.zeros(1), np.ones(1), -1.0, 1.0, {}), DELTA)
    show_coverage(console, options.logs)
    show_power(console, min(options.logs, 200))
    show_cost(console, options.patterns)


if __name__ == "__main__":
    main()
