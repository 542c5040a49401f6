"""Rankings drawn from a Plackett-Luce policy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.jit import jit
from saferank.engine.ragged import check_offsets, check_scores, over_queries
from saferank.engine.random_streams import next_random

Array = NDArray[Any]
NOTHING = -1
"""Stands in a ranking at the ranks for which no document is left."""


def sample_rankings(
    scores: ArrayLike, offsets: ArrayLike, cutoff: int, samples: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rankings: (query, sample, rank) -> document, counted from the query's first; -1 where nothing is left.

    Gumbel top-K: the order of s_d + Gumbel noise is Plackett-Luce (here as its equal, the order of exponential
    arrival times). Each query draws from a stream of its own, so the result does not depend on the threads.
    """
    scores, offsets = check_scores(scores), check_offsets(offsets)
    queries = len(offsets) - 1
    out = np.full((queries, samples, cutoff), NOTHING, np.int64)
    seeds = rng.integers(0, 2**64, size=queries, dtype=np.uint64)

    def run(rows: slice, local: Array) -> None:
        first = int(np.searchsorted(offsets, rows.start, side="right")) - 1
        last = first + len(local) - 1
        _sample(scores[rows].astype(np.float64), local, seeds[first:last], out[first:last])

    over_queries(run, scores, offsets, work=samples)
    return out


@jit
def _sample(scores: Array, offsets: Array, seeds: Array, out: Array) -> None:
    samples, cutoff = out.shape[1], out.shape[2]
    state = np.empty(1, np.uint64)
    arrival = np.empty(cutoff)  # log arrival times, -(s_d + Gumbel), of the documents in the ranking so far
    for q in range(len(offsets) - 1):
        s = scores[offsets[q] : offsets[q + 1]]
        largest = np.max(s)
        weights = np.exp(s - largest)
        order = np.argsort(-s)  # the likeliest first: they fill the ranking, and few of the others get in
        state[0] = seeds[q]
        for i in range(samples):
            ranking = out[q, i]
            arrival[:] = np.inf
            latest = np.inf  # arrival time of the last of them, in units of the largest weight
            for d in order:
                uniform = next_random(state)
                # -log u >= 1 - u: nearly every document is turned away before a logarithm is taken.
                if s[d] == -np.inf or 1.0 - uniform >= weights[d] * latest:
                    continue
                time = math.log(-math.log(uniform)) - s[d]
                if time < arrival[cutoff - 1]:
                    place = cutoff - 1
                    while place > 0 and arrival[place - 1] > time:
                        arrival[place] = arrival[place - 1]
                        ranking[place] = ranking[place - 1]
                        place -= 1
                    arrival[place] = time
                    ranking[place] = d
                    latest = math.exp(arrival[cutoff - 1] + largest)
