"""Small worlds whose every outcome is enumerated: logs of any size are then one multinomial draw."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from saferank.engine.bounds.differences import Differences, extreme_sums, paired_differences, second_moments
from saferank.engine.types.click_patterns import ClickPatterns
from tests.oracles.enumeration import Policy, exposure_under, ranking_probabilities

Array = NDArray[np.float64]
DELTA = 0.05
LOGS = 1_000


def known_differences(
    patterns: ClickPatterns, offsets: NDArray[np.int64], exposure: Array, logging_exposure: Array, examination: Array
) -> Differences:
    """The paired differences where both exposures are known; a document that was never shown has the weight -1."""
    ratio = np.divide(exposure, logging_exposure, out=np.zeros(len(exposure)), where=logging_exposure > 0)
    per_query = np.bincount(patterns.query, patterns.interactions, len(offsets) - 1).astype(np.float64)
    low, high = extreme_sums(ratio - 1.0, offsets, len(examination))
    moments = second_moments(ratio - 1.0, logging_exposure, offsets, examination, per_query)
    return paired_differences(patterns, ratio - 1.0, low=low, high=high, second_moment=moments)


@dataclass(frozen=True, eq=False)
class World:
    """One query; `chances[o]` is the chance that an interaction has the clicked set `clicked[o]`."""

    name: str
    clicked: tuple[tuple[int, ...], ...]
    chances: Array
    exposure: Array
    logging_exposure: Array
    examination: Array
    relevance: Array

    @property
    def improvement(self) -> float:
        """U(new) - U(logging)."""
        return float((self.exposure - self.logging_exposure) @ self.relevance)

    @property
    def logging_utility(self) -> float:
        return float(self.logging_exposure @ self.relevance)

    def draws(self, interactions: int, logs: int, seed: int = 0) -> list[Differences]:
        """The differences of so many logs."""
        values, chances = self.chances_of_values()
        counts = np.random.default_rng(seed).multinomial(interactions, chances, size=logs)
        return [replace(self.outcomes(), values=values[one > 0], counts=one[one > 0]) for one in counts]

    @property
    def variance(self) -> float:
        """Of X."""
        values, chances = self.chances_of_values()
        return float(chances @ np.square(values - self.improvement))

    def patterns(self, counts: NDArray[np.int64]) -> ClickPatterns:
        seen = np.flatnonzero(counts)
        documents = [self.clicked[outcome] for outcome in seen]
        return ClickPatterns(
            query=np.zeros(len(seen), np.int64),
            offsets=np.concatenate([[0], np.cumsum([len(of) for of in documents], dtype=np.int64)]),
            documents=np.array([d for of in documents for d in of], np.int64),
            interactions=counts[seen],
        )

    def differences(self, patterns: ClickPatterns) -> Differences:
        offsets = np.array([0, len(self.exposure)])
        return known_differences(patterns, offsets, self.exposure, self.logging_exposure, self.examination)

    @cache  # noqa: B019 (a handful of worlds)
    def outcomes(self) -> Differences:
        """One interaction of each outcome: the values that X can have. Their chances: `chances_of_values`."""
        return self.differences(self.patterns(np.ones(len(self.clicked), np.int64)))

    @cache  # noqa: B019
    def chances_of_values(self) -> tuple[Array, Array]:
        """The distribution of X."""
        weights = self.exposure / np.where(self.logging_exposure > 0, self.logging_exposure, np.inf) - 1.0
        each = np.array([sum(weights[d] for d in of) for of in self.clicked])
        values, place = np.unique(each.round(12), return_inverse=True)
        return values, np.bincount(place.ravel(), self.chances).astype(np.float64)


def make_world(name: str, logging: Policy, new: Policy, examination: Array, relevance: Array) -> World:
    """Enumerate what is shown and clicked under the logging policy."""
    total: dict[tuple[int, ...], float] = {}
    for ranking, chance in logging.items():
        clickable = [examination[rank] * relevance[document] for rank, document in enumerate(ranking)]
        for clicks in product((0, 1), repeat=len(ranking)):
            odds = chance
            for click, p in zip(clicks, clickable, strict=True):
                odds *= p if click else 1.0 - p
            if odds > 0:
                key = tuple(sorted(d for d, click in zip(ranking, clicks, strict=True) if click))
                total[key] = total.get(key, 0.0) + odds
    rho_0, rho = (exposure_under(policy, examination, len(relevance)) for policy in (logging, new))
    chances = np.array(list(total.values()))
    return World(name, tuple(total), chances / chances.sum(), rho, rho_0, examination, relevance)


def without_improvement(relevance: Array, change: Array) -> Array:
    """Move relevance by as little as possible so that `change` in exposure brings nothing."""
    return np.asarray(relevance - change * (change @ relevance) / (change @ change))


def paper_world() -> World:
    """Five of six documents by Plackett-Luce, examination 1/k^2, relevance near 0.2 to 0.3."""
    rng = np.random.default_rng(1)
    examination = np.arange(1, 6, dtype=np.float64) ** -2.0
    logging, new = (ranking_probabilities(scores, 5) for scores in (rng.normal(size=6), 1.5 * rng.normal(size=6)))
    change = exposure_under(new, examination, 6) - exposure_under(logging, examination, 6)
    relevance = without_improvement(0.2 + 0.025 * rng.integers(0, 5, 6).astype(np.float64), change)
    return make_world("paper", logging, new, examination, relevance)


def dcg_world() -> World:
    """Ten ranks with DCG weights; the logging policy has five rankings, the new one three of them."""
    rng = np.random.default_rng(2)
    examination = 1.0 / np.log2(np.arange(2.0, 12.0))
    rankings = [tuple(int(d) for d in rng.permutation(10)) for _ in range(5)]
    logging = dict(zip(rankings, rng.dirichlet(np.ones(5)), strict=True))
    new = dict(zip(rankings[:3], (0.5, 0.3, 0.2), strict=True))
    change = exposure_under(new, examination, 10) - exposure_under(logging, examination, 10)
    some = np.arange(10) < 6  # six of the documents can be clicked: few outcomes, so that thousands of logs are quick
    relevance = np.where(some, without_improvement(np.where(some, rng.uniform(0.2, 0.5, 10), 0.0), change * some), 0.0)
    return make_world("DCG, K = 10", logging, new, examination, relevance)


def correlated_world(ranks: int = 10, chance: float = 0.09) -> World:
    """The counterexample: the new policy always shows a set that the logging policy shows rarely, all of it clicked."""
    first, second = tuple(range(ranks)), tuple(range(ranks, 2 * ranks))
    examination, relevance = np.ones(ranks), np.ones(2 * ranks)
    logging: Policy = {first: chance, second: 1.0 - chance}
    return make_world("correlated", logging, {first: 1.0}, examination, relevance)


def heavy_world() -> World:
    """One rank; the new policy shows half the time what the logging policy shows one time in a thousand."""
    logging: Policy = {(0,): 0.001, (1,): 0.999}
    new: Policy = {(0,): 0.5, (1,): 0.5}
    return make_world("heavy weights", logging, new, np.ones(1), np.full(2, 0.25))


def harmful_world() -> World:
    """The paper's setting with a new policy that loses a few percent."""
    world = paper_world()
    return make_world_with(world, np.array([0.28, 0.26, 0.24, 0.22, 0.2, 0.2]))


def make_world_with(world: World, relevance: Array) -> World:
    """The policies of the paper's world; documents whose exposure falls are the more relevant ones."""
    rng = np.random.default_rng(1)
    logging, new = (ranking_probabilities(scores, 5) for scores in (rng.normal(size=6), 1.5 * rng.normal(size=6)))
    order = np.argsort(world.exposure - world.logging_exposure)
    given = np.empty(6)
    given[order] = relevance
    return make_world("harmful", logging, new, world.examination, given)


WORLDS = [paper_world(), dcg_world(), correlated_world(), heavy_world(), harmful_world()]
NAMES = [world.name for world in WORLDS]


def allowed(logs: int) -> float:
    """At most this share of the logs may fail: delta plus three standard errors."""
    return DELTA + 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / logs)
