"""Plackett-Luce by brute force: every ranking of a few documents, one after another, in float64.

A document with score -inf has weight 0 and is never placed: lists then end before it.
"""

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Policy = dict[tuple[int, ...], float]
"""The chance of each ranking."""


def ranking_probabilities(scores: Sequence[float] | NDArray[np.float64], cutoff: int) -> Policy:
    """Probability of each ranking of the first min(cutoff, documents with a finite score) ranks."""
    placeable = [document for document, score in enumerate(scores) if score != -math.inf]
    if not placeable:
        return {(): 1.0}
    probabilities = {}
    for ranking in permutations(placeable, min(cutoff, len(placeable))):
        probability = 1.0
        remaining = set(placeable)
        for document in ranking:
            highest = max(scores[other] for other in remaining)
            total = math.fsum(math.exp(scores[other] - highest) for other in remaining)
            probability *= math.exp(scores[document] - highest) / total
            remaining.remove(document)
        probabilities[ranking] = probability
    return probabilities


def placement(scores: Sequence[float], cutoff: int) -> NDArray[np.float64]:
    """P(rank(d) = k): one row a document, one column a rank, the top rank first."""
    result = np.zeros((len(scores), cutoff))
    for ranking, probability in ranking_probabilities(scores, cutoff).items():
        for rank, document in enumerate(ranking):
            result[document, rank] += probability
    return result


def exposure(scores: Sequence[float], examination: Sequence[float]) -> NDArray[np.float64]:
    """Expected examination of each document."""
    return exposure_under(ranking_probabilities(scores, len(examination)), examination, len(scores))


def exposure_under(
    policy: Policy, examination: Sequence[float] | NDArray[np.float64], documents: int
) -> NDArray[np.float64]:
    """Expected examination of each document, by the chances of the rankings."""
    result = np.zeros(documents)
    for ranking, probability in policy.items():
        for rank, document in enumerate(ranking):
            result[document] += probability * examination[rank]
    return result
