"""Ways to vary the ranking by score: what each shows, the exposure it moves, and which temperatures to consider."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saferank.engine.plackett_luce import exposure, sample_rankings
from saferank.engine.plackett_luce.sampling import NOTHING
from saferank.engine.ragged import place_in_query, query_of_document, ranks_by_score

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Kind = Literal["as logged", "by score", "temperature", "swap"]

LARGEST_GAP = 20.0
"""Score differences are capped here, in units of the temperature: the order changes with chance exp(-20) = 2e-9."""
LEAST_MOVED, MOST_MOVED = 0.01, 0.4
"""Share of the exposure that the lowest and the highest temperature considered move to other documents."""
TEMPERATURES = 9


@dataclass(frozen=True)
class Randomisation:
    """How rankings vary around the ranking by score, in which ties are in their given order.

    - temperature: rankings are drawn from the Plackett-Luce policy with scores / amount. Equivalently: sort by
      score - amount * log(-log(u)), with u uniform on (0, 1) for each document and each impression.
    - swap: neighbours among the shown ranks change places with chance `amount`. For each impression, a coin decides
      whether ranks (1, 2), (3, 4), ... or (2, 3), (4, 5), ... are the pairs; each pair is swapped independently. With
      chance 1/2 these are the FairPairs of Radlinski and Joachims (2006). No document from below the shown ranks
      enters the list.
    - by score: no randomness, as with swaps of chance 0.
    """

    kind: Kind
    amount: float = 0.0

    def exposure(self, scores: Floats, offsets: Integers, examination: Floats) -> Floats:
        """Return the exact exposure of each document.

        With swaps, rho at rank k = e_k + amount / 2 * ((e_(k-1) - e_k) + (e_(k+1) - e_k)), for neighbours that exist.
        """
        if self.kind == "temperature":
            heated = capped_gaps(scores / self.amount, offsets)
            return exposure(heated, offsets, examination, tolerance=1e-6).astype(np.float64)
        rank = ranks_by_score(scores, offsets)
        last = np.repeat(np.minimum(np.diff(offsets), len(examination)), np.diff(offsets))
        padded = np.append(examination, [0.0, 0.0])  # beyond the last rank nothing is examined
        at = np.minimum(rank, len(examination) + 1) - 1
        own = padded[at]
        above = np.where((rank > 1) & (rank <= last), padded[at - 1], own)
        below = np.where(rank < last, padded[at + 1], own)
        return np.asarray(own + self.amount / 2.0 * (above + below - 2.0 * own))

    def rankings(
        self, scores: Floats, offsets: Integers, cutoff: int, samples: int, rng: np.random.Generator
    ) -> Integers:
        """Draw (query, sample, rank) -> document, counted from the query's first; -1 where the list has ended."""
        if self.kind == "temperature":
            return sample_rankings(capped_gaps(scores / self.amount, offsets), offsets, cutoff, samples, rng)
        query, place, rank = query_of_document(offsets), place_in_query(offsets), ranks_by_score(scores, offsets)
        top, rows = np.full((len(offsets) - 1, cutoff), NOTHING, np.int64), rank <= cutoff
        top[query[rows], rank[rows] - 1] = place[rows]
        drawn = np.repeat(top[:, None, :], samples, axis=1)
        if self.kind == "swap":
            second = rng.random(drawn.shape[:2]) < 0.5
            for k in range(cutoff - 1):
                swapped = (second == k % 2) & (rng.random(second.shape) < self.amount) & (drawn[:, :, k + 1] != NOTHING)
                drawn[swapped, k : k + 2] = drawn[swapped, k : k + 2][:, ::-1]
        return drawn


BY_SCORE = Randomisation("by score")


def capped_gaps(scores: Floats, offsets: Integers) -> Floats:
    """Return scores in the same order, neighbours at most LARGEST_GAP apart: the quadrature's cost grows with range."""
    order = np.lexsort((-scores, query_of_document(offsets)))
    steps = np.minimum(-np.diff(scores[order], prepend=0.0), LARGEST_GAP)
    steps[offsets[:-1]] = 0.0
    fallen = np.cumsum(steps)
    capped = np.empty(len(scores))
    capped[order] = np.repeat(fallen[offsets[:-1]], np.diff(offsets)) - fallen
    return capped


def moved_exposure(exposure: Floats, reference: Floats, weight: Floats) -> float:
    """Share of the exposure that goes to other documents than in the reference; `weight` is each document's traffic."""
    total = max(float((reference * weight).sum()), float((exposure * weight).sum()), 1e-300)
    return float((np.abs(exposure - reference) * weight).sum()) / 2.0 / total


def temperature_grid(scores: Floats, offsets: Integers, examination: Floats, weight: Floats) -> tuple[float, ...]:
    """Return temperatures in geometric steps, of two digits each, from nearly no movement to a lot.

    Where even an infinite temperature moves less than MOST_MOVED of the exposure, the grid ends at nine tenths of what
    that moves; it is empty if that moves nothing, because each query has one document.
    """
    reference = BY_SCORE.exposure(scores, offsets, examination)

    def moved(temperature: float) -> float:
        heated = Randomisation("temperature", temperature)
        return moved_exposure(heated.exposure(scores, offsets, examination), reference, weight)

    lowest = np.minimum.reduceat(scores, offsets[:-1])
    score_range = float((np.maximum.reduceat(scores, offsets[:-1]) - lowest).max())
    unit = score_range if score_range > 0 else 1.0
    most = moved(1e6 * unit)
    if most <= 1e-9:
        return ()

    def temperature_that_moves(share: float) -> float:
        ends = np.log(1e-4 * unit), np.log(1e6 * unit)
        return float(np.exp(sum(bisect(*ends, lambda log: moved(float(np.exp(log))) >= share, 16)) / 2.0))

    high = temperature_that_moves(min(MOST_MOVED, 0.9 * most))
    low = min(temperature_that_moves(min(LEAST_MOVED, 0.1 * most)), high / 2.0)
    return tuple(dict.fromkeys(float(f"{value:.2g}") for value in np.geomspace(low, high, TEMPERATURES)))


def bisect(low: float, high: float, enough: Callable[[float], bool], steps: int) -> tuple[float, float]:
    """Return an amount that is not enough and one that is, close together, if `low` is not and `high` is."""
    for _ in range(steps):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high
