"""Policies as the chance of each ranking, any distribution over them."""

from itertools import permutations

import numpy as np

from tests.oracles.enumeration import Policy


def random_policy(documents: int, cutoff: int, rng: np.random.Generator) -> Policy:
    """Any distribution over rankings, most of it on a few: not only Plackett-Luce ones make trouble."""
    rankings = list(permutations(range(documents), min(cutoff, documents)))
    chances = 0.01 / len(rankings) + 0.99 * rng.dirichlet(np.full(len(rankings), rng.choice([0.05, 0.3, 1.0])))
    return dict(zip(rankings, chances, strict=True))
