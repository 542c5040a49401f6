"""Three ways to certify with fewer interactions: cross-certification, Phan's bound, a finer limit of the weights.

Cross-certification: a log of N interactions of a shop whose truth is known is certified (exposure counted in what is
held out, delta = 0.05) in these ways, and the share of DEPLOY and the true gain of what is deployed are counted:

- one split: learn from the first share, choose the limit of the weights on the second, decide on the third (one-look).
- progressive: five folds, model k learns from the folds before k and is evaluated on fold k. What is deployed is a
  mixture of the models. By empirical Bernstein: exp(sum_t lambda X_t - psi(lambda) X_t^2 - lambda m_t) is a
  supermartingale, so the mixture with equal weights is certified. By stakes: with the bets lambda_t of one-look,
  prod_t (1 + lambda_t X_t) / (1 + lambda_t m_t) is a martingale, and log(1 + x) <= x; so if the capital
  prod_t (1 + lambda_t X_t) reaches 1/delta, then sum_t lambda_t m_t >= 0 with confidence 1 - delta: what is certified
  is the mixture in which model k has the weight of the bets that were made on it.
- cross-fitting: model k learns from all folds but k; terms pooled as if they were independent. No proof.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.engine.bounds import one_look
from saferank.engine.bounds.differences import Differences, extreme_sums
from saferank.engine.bounds.verdict_choices import WEIGHTS
from saferank.engine.jit import jit

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.shops import Ranker, Shop, World, make_shop, noisy

Floats = NDArray[np.float64]
DELTA, FOLDS, Z = 0.05, 5, 1.645
ENOUGH = 3.5
"""Standard errors from 0 at which a model is expected to be certified; then it can wait for more to learn from."""
OVERSHOOT, WEIGHT_OF_GUESS, MOST_STAKED = one_look.OVERSHOOT, one_look.WEIGHT_OF_GUESS, one_look.MOST_STAKED


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the interactions of a log."""

    shop: Shop
    query: NDArray[np.int64]
    rows: NDArray[np.int64]
    """Rows of `Shop.data` that were shown, of (interaction, rank)."""
    clicks: NDArray[np.bool_]

    def cut(self, shares: tuple[float, ...]) -> list[Part]:
        """Return consecutive parts with these shares of the interactions."""
        ends = np.round(np.cumsum([0.0, *shares]) * len(self.query)).astype(int)
        return [Part(self.shop, self.query[a:b], self.rows[a:b], self.clicks[a:b]) for a, b in pairwise(ends)]

    def counts(self) -> tuple[Floats, Floats]:
        """Examinations and clicks of each row."""
        size = self.shop.queries * self.shop.documents
        examined = np.bincount(self.rows.ravel(), np.tile(self.shop.examination, len(self.rows)), size)
        return examined.astype(np.float64), np.bincount(self.rows[self.clicks], minlength=size).astype(np.float64)

    def terms(self, exposure: Floats, limit: float) -> tuple[Floats, float]:
        """X of each interaction, and its lower limit."""
        examined, _ = self.counts()
        asked = np.bincount(self.query, minlength=self.shop.queries).repeat(self.shop.documents)
        ratio = np.divide(exposure * asked, examined, out=np.ones_like(examined), where=examined > 0)
        weights = np.minimum(ratio, limit) - 1.0
        offsets = np.arange(0, len(weights) + 1, self.shop.documents)
        low, _ = extreme_sums(weights, offsets, self.shop.cutoff)
        return (weights[self.rows] * self.clicks).sum(axis=1), min(low, -1e-9)

    def rehearsed(self, exposure: Floats, interactions: int) -> tuple[float, float, float]:
        """The limit of the weights that promises the highest bound; a term's variance and mean / deviation."""
        found = {limit: self.terms(exposure, limit)[0] for limit in WEIGHTS}
        best = max(found, key=lambda one: found[one].mean() - Z * found[one].std() / math.sqrt(interactions))
        variance = max(float(found[best].var()), 1e-6)
        return best, variance, float(found[best].mean()) / math.sqrt(variance)


def joined(parts: list[Part]) -> Part:
    query, rows, clicks = (np.concatenate([getattr(p, name) for p in parts]) for name in ("query", "rows", "clicks"))
    return Part(parts[0].shop, query, rows, clicks)


Learner = Callable[[Part], Floats]
"""From interactions to the exposure of each row."""


def by_clicks(part: Part) -> Floats:
    """Rank by clicks per examination, shrunk to the mean: a parameter per document."""
    examined, clicked = part.counts()
    return _exposure(part.shop, (clicked + clicked.sum() / examined.sum()) / (examined + 1.0))


def by_features(features: Floats) -> Learner:
    """Rank by a linear function of features, fitted to clicks per examination by weighted least squares."""

    def learn(part: Part) -> Floats:
        examined, clicked = part.counts()
        design = np.column_stack([np.ones(len(features)), features])
        gram = design.T @ (design * examined[:, None]) + np.eye(design.shape[1])
        return _exposure(part.shop, features @ np.linalg.solve(gram, design.T @ clicked)[1:])

    return learn


def _exposure(shop: Shop, scores: Floats) -> Floats:
    return Ranker(scores.reshape(shop.queries, shop.documents)).exposure(shop.examination)


# Ways to certify: each returns the exposure of what is deployed, or None


def above_zero(terms: Floats, low: float, guess: float) -> bool:
    values, counts = np.unique(terms, return_counts=True)
    differences = Differences(values, counts, low, float(values[-1]), guess=guess)
    return one_look.rules_out(differences, one_look.in_random_order(differences), 0.0, DELTA)


def one_split(log: Part, learn: Learner, shares: tuple[float, ...]) -> Floats | None:
    train, validation, held_out = log.cut(shares)
    exposure = learn(train)
    limit, guess, _ = validation.rehearsed(exposure, len(held_out.query))
    return exposure if above_zero(*held_out.terms(exposure, limit), guess) else None


def progressive(log: Part, learn: Learner, by: str, *, patient: bool = False) -> Floats | None:
    """All that is chosen about a fold (limit of the weights, whether to wait) is chosen before it is seen."""
    folds = log.cut((1.0 / FOLDS,) * FOLDS)
    half, other = folds[0].cut((0.5, 0.5))
    seen = other.rehearsed(learn(half), len(log.query))
    first = 1
    while patient and first < FOLDS - 1:
        left = sum(len(fold.query) for fold in folds[first + 1 :])
        if 0.0 < seen[2] * math.sqrt(left) < ENOUGH:
            break
        seen = folds[first].rehearsed(learn(joined(folds[:first])), left)
        first += 1
    if by == "one model":
        exposure = learn(joined(folds[:first]))
        return exposure if above_zero(*joined(folds[first:]).terms(exposure, seen[0]), seen[1]) else None
    total, guess = sum(len(fold.query) for fold in folds[first:]), seen[1]
    models, terms, lows = [], [], []
    for k in range(first, FOLDS):
        models.append(learn(joined(folds[:k])))
        each, least = folds[k].terms(models[-1], seen[0])
        terms.append(each)
        lows.append(np.full(len(each), least))
        seen = folds[k].rehearsed(models[-1], total)
    x, low, fold = np.concatenate(terms), np.concatenate(lows), np.repeat(np.arange(len(terms)), list(map(len, terms)))
    if by == "stakes":
        weights = _stakes(x, low, fold, guess, math.log(1.0 / DELTA), one_look._stakes(), one_look.LOWEST, len(terms))
    else:
        bet = min(math.sqrt(2.0 * math.log(1.0 / DELTA) / (total * guess)), 0.9 / log.shop.cutoff)
        psi = (-np.log1p(bet * low) + bet * low) / low**2
        weights = np.bincount(fold) * float(bet * x.sum() - psi @ x**2 >= math.log(1.0 / DELTA))
    return np.average(models, axis=0, weights=weights) if weights.sum() > 0 else None


@jit
def _stakes(x: Any, low: Any, fold: Any, guess: float, goal: float, table: Any, lowest: float, folds: int) -> Any:
    """The sum of the bets on each fold if the capital reaches the goal, else zeros: the bets of `one_look`."""
    made = np.zeros(folds)
    scale, pay = (len(table) - 1) / -lowest, goal + math.log(OVERSHOOT)
    capital, squares, seen = 0.0, guess * WEIGHT_OF_GUESS, WEIGHT_OF_GUESS
    for t in range(len(x)):
        place = max((capital - pay - lowest) * scale, 0.0)
        left = min(int(place), len(table) - 2)
        share = table[left] + (place - left) * (table[left + 1] - table[left])
        bet = min(share / math.sqrt((len(x) - t) * squares / seen), MOST_STAKED / -low[t])
        made[fold[t]] += bet
        capital += math.log1p(bet * x[t])
        if capital >= goal:
            return made
        squares += x[t] * x[t]
        seen += 1.0
    return np.zeros(folds)


def cross_fitted(log: Part, learn: Learner) -> Floats | None:
    folds = log.cut((1.0 / FOLDS,) * FOLDS)
    models = [learn(joined(folds[:k] + folds[k + 1 :])) for k in range(FOLDS)]
    limits = [fold.rehearsed(model, len(log.query)) for fold, model in zip(folds, models, strict=True)]
    found = [folds[k].terms(models[k], limits[k - 1][0]) for k in range(FOLDS)]
    terms, low = np.concatenate([each for each, _ in found]), min(low for _, low in found)
    return np.mean(models, axis=0) if above_zero(terms, low, float(np.mean([v for _, v, _ in limits]))) else None


WAYS: dict[str, Callable[[Part, Learner], Floats | None]] = {
    "one split, 60/20/20": lambda log, learn: one_split(log, learn, (0.6, 0.2, 0.2)),
    "one split, 40/10/50": lambda log, learn: one_split(log, learn, (0.4, 0.1, 0.5)),
    "one split, 20/10/70": lambda log, learn: one_split(log, learn, (0.2, 0.1, 0.7)),
    "progressive, empirical Bernstein": lambda log, learn: progressive(log, learn, "Bernstein"),
    "progressive, by stakes": lambda log, learn: progressive(log, learn, "stakes"),
    "the same, patient": lambda log, learn: progressive(log, learn, "stakes", patient=True),
    "patient split, one model": lambda log, learn: progressive(log, learn, "one model", patient=True),
    "cross-fitting (no proof)": cross_fitted,
}


def make_world(kind: str, rng: np.random.Generator) -> World:
    """Production that is `poor` or `fair`; `best`: by relevance itself; `tie`: no ranker is better than another."""
    shop = make_shop(rng)
    if kind == "tie":  # all documents of a query are equally relevant, and shown equally often
        shop = replace(shop, relevance=np.repeat(shop.relevance[..., :1], shop.documents, axis=2))
        return World(shop, Ranker(np.zeros((shop.queries, shop.documents)), sampled=True))
    noise, scale = {"poor": (1.0, 1.0), "fair": (0.5, 1.5), "best": (0.0, 3.0)}[kind]
    return World(shop, noisy(shop, rng, noise=noise, scale=scale))


CASES = (
    ("poor", "clicks", (2000, 4000, 8000, 16_000)),
    ("poor", "features", (500, 1000, 2000)),
    ("fair", "clicks", (8000, 16_000)),
    ("fair", "features", (1000, 2000, 4000)),
    ("best", "features", (4000,)),
    ("tie", "clicks", (2000, 8000, 16_000)),
    ("tie", "features", (2000, 8000)),
)


def gains(kind: str, learner: str, n: int, number: int) -> list[float | None]:
    """Draw one log, and return for each way the true gain of what is deployed, relative to production."""
    world = make_world(kind, np.random.default_rng([2, number % 20]))
    learn: Learner = by_clicks
    if learner == "features":
        learn = by_features(world.shop.features(np.random.default_rng([3, number % 20])).features.astype(np.float64))
    rng = np.random.default_rng([4, number, n])
    drawn, order = world.draw(n, rng), rng.permutation(n)
    log = Part(world.shop, drawn.query[order], drawn.rows[order], drawn.clicks[order])
    deployed = [way(log, learn) for way in WAYS.values()]
    return [None if one is None else world.shop.utility(one) / world.logging_utility - 1.0 for one in deployed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200, help="logs of each row; of a tie, five times as many")
    parser.add_argument("--only", choices=sorted({kind for kind, _, _ in CASES}), help="one kind of production")
    options = parser.parse_args()
    logs = options.logs
    table = Table(title=f"Share of DEPLOY, and true gain of what is deployed; delta = {DELTA}, {logs} logs per row")
    for name in ("production", "learns from", "N", *WAYS):
        table.add_column(name, justify="left" if name in ("production", "learns from") else "right")
    false = np.zeros(len(WAYS))
    drawn = 0
    for kind, learner, sizes in CASES:
        for n in sizes if options.only in (None, kind) else ():
            found = [gains(kind, learner, n, number) for number in range(logs * (5 if kind == "tie" else 1))]
            cells = []
            for place in range(len(WAYS)):
                there = np.array([one[place] for one in found if one[place] is not None], np.float64)
                share = f"{len(there) / len(found):.3f}"
                cells.append(share if kind == "tie" or not len(there) else f"{share} {there.mean():+.1%}")
                false[place] += (there < -1e-9).sum() * (kind != "tie")
            drawn += len(found) * (kind != "tie")
            table.add_row(kind, learner, f"{n:,}", *cells)
            print(kind, learner, n, *cells, file=sys.stderr, flush=True)
    if drawn:
        table.add_row("all but tie", "", "false DEPLOY", *(f"{count / drawn:.4f}" for count in false))
    console = Console(width=None if sys.stdout.isatty() else 190)
    console.print(table)
    error = 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / (5 * logs))
    console.print(
        f"In a tie, DEPLOY is an error of the bound; up to {DELTA + error:.3f} is within three standard errors."
    )


if __name__ == "__main__":
    main()
