"""Policies as the chance of each ranking, any distribution over them."""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Policy = dict[tuple[int, ...], float]
"""The chance of each ranking."""


def exposure_under(policy: Policy, examination: NDArray[np.float64], documents: int) -> NDArray[np.float64]:
    rho = np.zeros(documents)
    for ranking, probability in policy.items():
        for rank, document in enumerate(ranking):
            rho[document] += probability * examination[rank]
    return rho


def random_policy(documents: int, cutoff: int, rng: np.random.Generator) -> Policy:
    """Any distribution over rankings, most of it on a few: not only Plackett-Luce ones make trouble."""
    rankings = list(permutations(range(documents), min(cutoff, documents)))
    chances = 0.01 / len(rankings) + 0.99 * rng.dirichlet(np.full(len(rankings), rng.choice([0.05, 0.3, 1.0])))
    return dict(zip(rankings, chances, strict=True))
