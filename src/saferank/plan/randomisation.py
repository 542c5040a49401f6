"""Ways to show something else now and then than the ranking by score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import examination_of_ranks
from saferank.engine.plackett_luce import exposure, sample_rankings
from saferank.engine.plackett_luce.sampling import NOTHING
from saferank.engine.ragged import ranks_by_score

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]
Kind = Literal["by score", "temperature", "swap"]

LARGEST_GAP = 20.0
"""Score differences beyond it are cut, in units of the temperature: the order changes with chance exp(-20) = 2e-9."""


class Randomisation(Protocol):
    """A ranking policy made from the production ranker's scores."""

    @property
    def kind(self) -> Kind:
        """How rankings are varied."""

    @property
    def amount(self) -> float:
        """How much: the temperature, or the chance of a swap; 0 for none."""

    def exposure(self, scores: Floats, offsets: Offsets, examination: Floats) -> Floats:
        """Return the expected examination of each document, exactly."""

    def rankings(
        self, scores: Floats, offsets: Offsets, cutoff: int, samples: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw rankings: (query, sample, rank) -> document, counted from the query's first; -1 where none is left."""


@dataclass(frozen=True)
class ByScore:
    """No randomness: the documents of a query by descending score, ties in the order in which they stand."""

    kind: Kind = "by score"
    amount: float = 0.0

    def exposure(self, scores: Floats, offsets: Offsets, examination: Floats) -> Floats:
        """Return the examination of each document's rank."""
        return examination_of_ranks(ranks_by_score(scores, offsets), examination)

    def rankings(
        self, scores: Floats, offsets: Offsets, cutoff: int, samples: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the one ranking, `samples` times."""
        del rng
        return np.repeat(_top(scores, offsets, cutoff)[:, None, :], samples, axis=1)


@dataclass(frozen=True)
class Temperature:
    """Rankings drawn from the Plackett-Luce policy with scores / temperature.

    Equivalently: sort by score - temperature * log(-log(u)), with u uniform on (0, 1) for each document and each
    impression. Documents whose scores differ by much less than the temperature change places freely.
    """

    amount: float
    kind: Kind = "temperature"

    def exposure(self, scores: Floats, offsets: Offsets, examination: Floats) -> Floats:
        """Return the exact Plackett-Luce exposure."""
        heated = capped_gaps(scores / self.amount, offsets)
        return exposure(heated, offsets, examination, tolerance=1e-6).astype(np.float64)

    def rankings(
        self, scores: Floats, offsets: Offsets, cutoff: int, samples: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw Plackett-Luce rankings."""
        return sample_rankings(capped_gaps(scores / self.amount, offsets), offsets, cutoff, samples, rng)


@dataclass(frozen=True)
class NeighbourSwaps:
    """The ranking by score, in which neighbours among the shown ranks change places with chance `amount`.

    A coin decides for each impression whether ranks (1, 2), (3, 4), ... or (2, 3), (4, 5), ... are the pairs; each pair
    is swapped by itself. With chance 1/2 these are the FairPairs of Radlinski and Joachims (2006). Nothing from
    beyond the shown ranks gets in.
    """

    amount: float
    kind: Kind = "swap"

    def exposure(self, scores: Floats, offsets: Offsets, examination: Floats) -> Floats:
        """rho at rank k = e_k + amount / 2 * ((e_(k-1) - e_k) + (e_(k+1) - e_k)), for the neighbours that exist."""
        lengths = np.minimum(np.diff(offsets), len(examination))
        rank = ranks_by_score(scores, offsets)
        last = np.repeat(lengths, np.diff(offsets))
        own = examination_of_ranks(rank, examination)
        above = np.where((rank > 1) & (rank <= last), examination_of_ranks(np.maximum(rank - 1, 1), examination), own)
        below = np.where(rank < last, examination_of_ranks(rank + 1, examination), own)
        return own + self.amount / 2.0 * (above + below - 2.0 * own)

    def rankings(
        self, scores: Floats, offsets: Offsets, cutoff: int, samples: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw which pairs there are, and which of them are swapped."""
        drawn = ByScore().rankings(scores, offsets, cutoff, samples, rng)
        second = rng.random(drawn.shape[:2]) < 0.5
        for rank in range(cutoff - 1):
            upper, lower = drawn[:, :, rank].copy(), drawn[:, :, rank + 1].copy()
            swapped = (second == rank % 2) & (rng.random(upper.shape) < self.amount) & (lower != NOTHING)
            drawn[:, :, rank] = np.where(swapped, lower, upper)
            drawn[:, :, rank + 1] = np.where(swapped, upper, lower)
        return drawn


def capped_gaps(scores: Floats, offsets: Offsets) -> Floats:
    """Return scores in the same order, neighbours at most LARGEST_GAP apart: the quadrature's cost grows with range."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-scores, query))
    ranked = scores[order]
    steps = np.zeros(len(scores))
    steps[1:] = np.minimum(ranked[:-1] - ranked[1:], LARGEST_GAP)
    steps[offsets[:-1]] = 0.0
    fallen = np.cumsum(steps)
    capped = np.empty(len(scores))
    capped[order] = np.repeat(fallen[offsets[:-1]], np.diff(offsets)) - fallen
    return capped


def _top(scores: Floats, offsets: Offsets, cutoff: int) -> NDArray[np.int64]:
    """(query, rank) -> document, counted from the query's first; -1 where the list has ended."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    rank = ranks_by_score(scores, offsets)
    top = np.full((len(offsets) - 1, cutoff), NOTHING, np.int64)
    rows = np.flatnonzero(rank <= cutoff)
    top[query[rows], rank[rows] - 1] = rows - offsets[query[rows]]
    return top
