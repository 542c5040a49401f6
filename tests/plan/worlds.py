"""A small shop: a few queries, graded relevances, a ranker that is right more often than not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.plan.randomisation import Randomisation

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class World:
    offsets: NDArray[np.int64]
    scores: Floats
    relevance: Floats
    examination: Floats

    @property
    def share(self) -> Floats:
        return np.full(len(self.offsets) - 1, 1.0 / (len(self.offsets) - 1))

    @property
    def weight(self) -> Floats:
        return np.repeat(self.share, np.diff(self.offsets))

    def clicks(self, policy: Randomisation, times: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """(query and time, document): what is clicked, each query `times` times; queries are of equal length."""
        cutoff = len(self.examination)
        ranking = policy.rankings(self.scores, self.offsets, cutoff, times, rng)
        rows = self.offsets[:-1, None, None] + np.maximum(ranking, 0)
        chance = np.where(ranking >= 0, self.relevance[rows] * self.examination, 0.0)
        clicked = rng.random(chance.shape) < chance
        out = np.zeros((len(self.offsets) - 1, times, int(np.diff(self.offsets)[0])), np.bool_)
        query, time, rank = np.nonzero(clicked)
        out[query, time, ranking[query, time, rank]] = True
        return out


def make_world(queries: int = 30, documents: int = 8, cutoff: int = 4, seed: int = 0) -> World:
    rng = np.random.default_rng(seed)
    size = queries * documents
    relevance = rng.beta(1.0, 2.5, size)
    return World(
        offsets=np.arange(0, size + 1, documents),
        scores=2.0 * relevance + 0.5 * rng.normal(size=size),
        relevance=relevance,
        examination=1.0 / np.arange(1.0, cutoff + 1.0),
    )
