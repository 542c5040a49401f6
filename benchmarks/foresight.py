"""What `fit` foresees, against the truth: `python benchmarks/foresight.py [--shops 4]`.

Shops of 300 queries with 20 documents, of which 10 are shown. The features tell half of what makes a document relevant
(or all of it); the current ranker knows all of it, blurred by noise, so that it is the best possible, nearly so, fair
or poor. Improvements are in percent of the clicks of the current ranker: that of what is learned by default, as it was
foreseen and as it is, the mean over shops, and the largest difference in one shop. Exit code 1 if the mean is foreseen
more than 5 points too high anywhere.
"""

import argparse
import sys
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from saferank.engine.plackett_luce import exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.simulate import simulate
from saferank.learning.evidence import find_evidence
from saferank.learning.learn import choose
from saferank.learning.logged_parts import logged_parts
from saferank.learning.start import logging_model
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees

QUERIES, DOCUMENTS = 300, 20
EXAMINATION = 1 / np.arange(1, 11) ** 0.7
RANKERS = {
    "the best, rankings hardly vary": (0.0, 8.0, 0.7),
    "the best, features tell all": (0.0, 8.0, 1.0),
    "nearly the best": (0.2, 2.5, 0.7),
    "fair": (0.5, 2.0, 0.7),
    "fair, rankings hardly vary": (1.0, 40.0, 0.7),
    "poor": (1.5, 1.0, 0.7),
}
"""Noise, sharpness of the Plackett-Luce policy, and how much the features tell (as a correlation)."""


@dataclass(frozen=True, eq=False)
class Shop:
    """A shop with its two parts of a log to learn from."""

    data: RankingData
    ranker: NDArray[np.float32]
    relevance: NDArray[np.float64]
    logs: tuple[LogStatistics, LogStatistics]

    def clicks(self, scores: NDArray[np.float32]) -> float:
        """True clicks per interaction of a policy."""
        issued = self.logs[0].merge(self.logs[1]).interactions[self.data.query_of_document]
        rho = exposure(scores, self.data.offsets, EXAMINATION)
        return float((rho * self.relevance) @ issued) / float(issued.sum() / DOCUMENTS)


def make_shop(seed: int, noise: float, sharpness: float, told: float, interactions: int) -> Shop:
    rng = np.random.default_rng(seed)
    offsets = np.arange(0, QUERIES * DOCUMENTS + 1, DOCUMENTS)
    features = rng.normal(size=(offsets[-1], 8)).astype(np.float32)
    value = told * (features[:, 0] + 0.7 * np.tanh(2 * features[:, 1]) + 0.5 * features[:, 2] * features[:, 3])
    value = value + np.sqrt(1 - told**2) * rng.normal(size=len(value))
    relevance = 1 / (1 + np.exp(1.5 - value))
    ranker = (sharpness * (value + noise * rng.normal(size=len(value)))).astype(np.float32)
    sizes = round(0.6 * interactions), round(0.2 * interactions)
    train, validation = (
        simulate(ranker, offsets, relevance, EXAMINATION, size, np.random.default_rng([seed, part]))
        for part, size in enumerate(sizes)
    )
    return Shop(RankingData(features, offsets), ranker, relevance, (train, validation))


def foreseen_and_true(shop: Shop, *, known: bool) -> tuple[float, float]:
    """Return the improvement over the current ranker, foreseen and true; 0 where nothing is learned or advised."""
    data = shop.data
    if known:
        data = RankingData(np.concatenate([data.features, shop.ranker[:, None]], axis=1), data.offsets)
    train, validation = logged_parts(data, *shop.logs, EXAMINATION, logging_scores=shop.ranker if known else None)
    start = Trees(data.features.shape[1], "column") if known else logging_model("gbdt", train, validation)
    assert isinstance(start, Trees)
    learned = deepcopy(start)
    foreseen = choose(learned, find_evidence(start, train, validation), train, validation, seed=0).chosen
    now = shop.clicks(shop.ranker)
    if foreseen is None:
        return 0.0, 0.0
    return foreseen.improvement / now, shop.clicks(score(learned, data.features)) / now - 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shops", type=int, default=4)
    parser.add_argument("--interactions", type=int, nargs="+", default=[3_000, 10_000, 30_000])
    options = parser.parse_args()
    console = Console()
    table = Table(title=f"Improvement in percent, {options.shops} shops each: foreseen / true (largest difference)")
    table.add_column("current ranker")
    for size in options.interactions:
        table.add_column(f"{size:,}\ninteractions", justify="right")
    cases = [(name, known) for known in (False, True) for name in RANKERS]
    good = True
    for name, known in track(cases, console=Console(stderr=True)):
        cells = []
        for size in options.interactions:
            shops = [make_shop(seed, *RANKERS[name], size) for seed in range(options.shops)]
            found = 100 * np.array([foreseen_and_true(shop, known=known) for shop in shops])
            (foreseen, true), off = found.mean(axis=0), found[:, 0] - found[:, 1]
            good &= bool(foreseen - true <= 5)
            cells.append(f"{foreseen:+.1f} / {true:+.1f} ({off[np.abs(off).argmax()]:+.1f})")
        table.add_row(name + (", scores known" if known else ""), *cells)
    console.print(table)
    console.print("Foreseen too high in the mean by at most 5 points: " + ("yes" if good else "NO"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
