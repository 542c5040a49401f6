"""The bound of Phan, Thomas and Learned-Miller (ICML 2021) beside one-look, and how near one-look is to Student's t.

For terms Y = -X between two limits and any statistic T of the sample, the mean of Y is at most, with confidence
1 - delta, the 1 - delta quantile over uniform order statistics U of

    max { sum_i y_i (U_i - U_{i-1}) + top (1 - U_n) :  T(y) <= T(sample), y sorted and within the limits }.

No linear program is needed: the maximum is over the steps of the isotonic regression of the gaps of U, of which there
are about ln n. T: the mean; Anderson's bound and the l2 norm, the paper's own choices; mean + 4 standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.engine.bounds.betting import condense
from saferank.engine.bounds.differences import Differences
from saferank.engine.bounds.one_look import in_random_order, rules_out
from saferank.engine.bounds.registry import student_t
from saferank.engine.bounds.verdict_choices import WEIGHTS
from saferank.engine.jit import jit
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.lab import world as paper
from saferank.lab.simulate import simulate

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.certify import DELTA, shifted_policy
from tests.engine.bounds.worlds import known_differences

Floats = NDArray[np.float64]
SAMPLES, LIMITS = 500, (20.0, 50.0, 100.0)
FINER = tuple(round(2.0 * 1.25**k, 1) for k in range(29))
MEAN, ANDERSON, NORM, ERRORS = range(4)
STATISTICS = ("the mean", "Anderson's bound", "l2 norm", "mean + 4 standard errors")


@jit
def _steps(gaps: Any, skip: int) -> Any:
    """Isotonic regression of the gaps: rows of (terms, sum of gaps); the first `skip` terms count for T as none."""
    steps = np.zeros((len(gaps), 2))
    last = -1
    first = 0.0
    for i in range(len(gaps)):
        if i < skip:
            first += gaps[i]
            continue
        last += 1
        steps[last, 0], steps[last, 1] = 1.0, gaps[i] + first
        first = 0.0
        while last > 0 and steps[last - 1, 1] * steps[last, 0] >= steps[last, 1] * steps[last - 1, 0]:
            steps[last - 1] += steps[last]
            last -= 1
    return steps[: last + 1].copy()


@jit
def _largest(steps: Any, rest: float, low: float, top: float, kind: int, t: float, n: int) -> Any:
    """The maximum for one draw of U: over y = clip(p + q slope, low, top), or its limit q = infinity."""
    best = -math.inf
    share, gap = steps[:, 0] / n, steps[:, 1]
    slope = gap / share
    if kind in (0, 1):  # fill from the steepest step down, until the budget of T is spent
        budget, best = t - low * share.sum() - top * (1.0 - share.sum()), low * gap.sum()
        for j in range(len(share) - 1, -1, -1):
            filled = min(max(budget / (share[j] * (top - low)), 0.0), 1.0)
            best += filled * gap[j] * (top - low)
            budget -= filled * share[j] * (top - low)
        return best + top * rest
    for place in range(1 if kind == 2 else 48):
        q = 0.0 if place == 0 else 1e-4 * (top - low) * 1.33**place
        least, most = (0.0, 2.0 * (top - low)) if kind == 2 else (low - q * slope[-1], top)
        for _ in range(50):
            middle = 0.5 * (least + most)
            y = (
                np.minimum(low + middle * slope, top)
                if kind == 2
                else np.minimum(np.maximum(middle + q * slope, low), top)
            )
            mean = (share * y).sum()
            if kind == 2:
                value = math.sqrt((share * (y - low) ** 2).sum())
            else:
                value = mean + 4.0 * math.sqrt((share * (y - mean) ** 2).sum() / n)
            least, most = (middle, most) if value <= t else (least, middle)
        y = np.minimum(low + most * slope, top) if kind == 2 else np.minimum(np.maximum(most + q * slope, low), top)
        best = max(best, (gap * y).sum() + top * rest)
    return best


def statistic(kind: int, differences: Differences) -> float:
    y, share = -differences.values[::-1], differences.counts[::-1] / differences.terms
    mean, n = float(share @ y), differences.terms
    if kind == ANDERSON:  # the least `skip` terms are replaced by the upper limit
        above = np.diff(np.maximum(np.cumsum(share) - skipped(n) / n, 0.0), prepend=0.0)
        return float(above @ y) - differences.low * skipped(n) / n
    if kind == NORM:
        return math.sqrt(float(share @ (y + differences.high) ** 2))
    return mean if kind == MEAN else mean + 4.0 * math.sqrt(float(share @ (y - mean) ** 2) / n)


def skipped(n: int) -> int:
    """Terms that Anderson's bound gives to the upper limit (Dvoretzky-Kiefer-Wolfowitz)."""
    return math.ceil(math.sqrt(0.5 * n * math.log(1.0 / DELTA)))


@cache
def draws(skip: int, n: int) -> tuple[list[tuple[Floats, float]], float]:
    """Steps of the gaps of U and the last gap, for each draw of U; and the seconds that it took."""
    rng, begin = np.random.default_rng([8, n]), time.perf_counter()
    found = []
    for _ in range(SAMPLES):
        gaps = rng.standard_exponential(n + 1)
        gaps /= gaps.sum()
        found.append((_steps(gaps[:-1], skip), float(gaps[-1])))
    return found, time.perf_counter() - begin


def needed(kind: int, population: dict[float, Differences]) -> tuple[str, float]:
    """Interactions at which the lower bound is above 0 in 4 of 5 logs, and the seconds to draw U for it.

    It depends on the sample by T alone, so it is computed for the T that 4 of 5 logs stay below. X is lowered to the
    best of some upper limits.
    """
    for step in range(13, 27):
        n = round(100 * 2 ** (step / 2))
        drawn, seconds = draws(skipped(n) if kind == ANDERSON else 0, n)
        lower = -math.inf
        for one in population.values():
            logs = np.random.default_rng([step, 1]).multinomial(n, one.counts / one.counts.sum(), size=200)
            for high in (one.high, one.high / 4.0, one.high / 16.0):
                clipped = replace(one, values=np.minimum(one.values, high), high=high)
                t = float(np.quantile([statistic(kind, replace(clipped, counts=counts)) for counts in logs], 0.8))
                each = [_largest(steps, rest, -high, -one.low, kind, t, n) for steps, rest in drawn]
                lower = max(lower, -float(np.quantile(each, 1.0 - DELTA, method="higher")))
        if lower > 0.0:
            return f"{n:,}", seconds
    return f"more than {n:,}", seconds


class Setting:
    """The paper's setting, as in `certify.py --only power`: terms of a policy that is so much better."""

    def __init__(self, factor: float, seed: int) -> None:
        world = paper.make_world(paper.prepare(load_dataset("synthetic:small")), seed=seed)
        data, examination = world.train, world.click_model.examination
        scores = world.logging_scores["train"]
        old = exposure(scores, data.offsets, examination).astype(np.float64)
        log = simulate(
            scores, data.offsets, world.relevance("train"), examination, 4_000_000, np.random.default_rng(seed),
            keep_rankings=10_000,
        )  # fmt: skip
        assert log.rankings is not None
        patterns = ClickPatterns.of_rankings(log.rankings, data.offsets)
        new = shifted_policy(world, factor)
        self.chances = np.cumsum(patterns.interactions) / patterns.total_interactions
        self.terms, self.population = {}, {}
        for limit in sorted({*LIMITS, *WEIGHTS, *FINER}):
            raised = np.maximum(old, new / limit)
            self.terms[limit] = patterns.sums(new / raised - 1.0)
            if limit in LIMITS or limit in WEIGHTS:
                found = known_differences(patterns, data.offsets, new, raised, examination)
                self.low = found.low
                self.population[limit] = condense(found)

    def shares(self, n: int, logs: int) -> dict[str, float]:
        """Share of logs in which it is decided, for limits of the weights that are given or chosen on validation."""
        count: dict[str, float] = {}
        for number in range(logs):
            rng = np.random.default_rng([11, n, number])
            validation, held_out = (np.searchsorted(self.chances, rng.random(n)) for _ in range(2))
            chosen = {f"limit {limit:g}": limit for limit in LIMITS}
            for name, limits in (("limit chosen on validation", WEIGHTS), ("the same, finer limits", FINER)):
                found = {limit: self.terms[limit][validation] for limit in limits}
                chosen[name] = max(found, key=lambda one: found[one].mean() - 1.645 * found[one].std() / math.sqrt(n))
            for name, limit in chosen.items():
                guess = float(self.terms[limit][validation].var())
                values, counts = np.unique(self.terms[limit][held_out], return_counts=True)
                terms = Differences(values, counts, self.low, float(values[-1]), guess=guess)
                for bound, decided in (
                    ("one-look", rules_out(terms, in_random_order(terms), 0.0, DELTA)),
                    ("t", student_t(terms, DELTA) > 0.0),
                ):
                    key = f"{bound}, {name}"
                    count[key] = count.get(key, 0.0) + decided / logs
        return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=1000, help="logs of each size")
    logs = parser.parse_args().logs
    console = Console(width=None if sys.stdout.isatty() else 150)
    settings = {factor: Setting(factor, 0) for factor in (1.05, 1.02)}
    sizes = [(1.05, 18_102), (1.05, 25_600), (1.02, 9_051), (1.02, 12_800)]
    table = Table(title=f"Share of {logs:,} logs in which it is decided, paper's setting, delta = {DELTA}")
    table.add_column("bound")
    found = []
    for factor, n in sizes:
        table.add_column(f"{factor - 1:+.0%}\n{n:,}", justify="right")
        found.append(settings[factor].shares(n, logs))
    for name in found[0]:
        table.add_row(name, *(f"{one[name]:.3f}" for one in found))
    console.print(table)
    table = Table(title=f"Held-out interactions to decide in 4 of 5 logs: Phan et al., {SAMPLES:,} draws of U")
    for name in ("T", "+5%", "+2%", "seconds to draw U at the last size"):
        table.add_column(name, justify="left" if name == "T" else "right")
    for kind, name in enumerate(STATISTICS):
        each = [needed(kind, {k: settings[f].population[k] for k in LIMITS}) for f in settings]
        table.add_row(name, each[0][0], each[1][0], f"{each[0][1]:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
