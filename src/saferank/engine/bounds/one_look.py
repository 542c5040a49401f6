"""A lower bound for a single look: as narrow as Student's t, and valid for every number of interactions.

The bets of `betting` do not depend on what was won so far, so that they hold at every look. Someone who will look
once, after n interactions, can do better: to doubt that the mean is as low as m, one has to reach the capital 1/delta
at the end, and nothing more. If sums were normal, the best way to get there is known from finance (it replicates an
option that pays 1/delta if the sum is above its 1 - delta quantile, and nothing otherwise): with capital W and r
interactions left of variance v, stake on each unit of X - m

    W lambda = (1/delta) phi(z) / sqrt(r v),    Phi(z) = W delta.

That is a bet fixed before the next interaction is seen and never more than is at hand, so the capital is a
supermartingale whatever the distribution: if the mean is m or less, it reaches 1/delta with chance at most delta. Where
the sums are nearly normal, it does so about when Student's t would. (Bets that aim at a goal: Voracek and Orabona,
"STaR-Bets", 2025; the option is the Gaussian limit.)
"""

from __future__ import annotations

import hashlib
import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.bounds.betting import betting
from saferank.engine.bounds.differences import Differences
from saferank.engine.jit import jit

Floats = NDArray[np.float64]
MOST_TERMS = 1 << 22
"""Above this many terms `betting` is used: its width no longer matters then, and it is faster."""
OVERSHOOT = 1.1
"""The option pays this factor more than is needed, so that its price reaches the goal before the last term."""
WEIGHT_OF_GUESS = 50.0
"""Number of terms that the guess of the variance counts as."""
MOST_STAKED = 0.98
"""Share of the capital that one term may lose."""
BETS = 4096
"""How often the stake is updated."""
LOWEST = -40.0
"""Logarithm of the smallest share of the goal in the table of stakes."""
STEPS = 24
"""Bisection steps in the search for the bound."""


def one_look(differences: Differences, delta: float) -> float:
    """Return the least mean that is not ruled out at level delta, by bets that aim at a goal.

    Holds for independent terms with X >= low, at a single look.
    """
    if differences.terms == 0 or differences.low >= differences.mean:
        return differences.low
    if differences.terms > MOST_TERMS:
        return betting(differences, delta)
    terms = in_random_order(differences)
    error = differences.standard_error if differences.terms > 1 else 0.0
    top = differences.mean
    bottom = max(differences.low, top - max(1.5 * error, 1e-9))
    while bottom > differences.low and not rules_out(differences, terms, bottom, delta):
        bottom = max(differences.low, top - 2.0 * (top - bottom))
    for _ in range(STEPS):
        middle = 0.5 * (bottom + top)
        if not bottom < middle < top:
            break
        if middle > differences.low and rules_out(differences, terms, middle, delta):
            bottom = middle
        else:
            top = middle
    return bottom


def rules_out(differences: Differences, terms: tuple[Floats, Floats], mean: float, delta: float) -> bool:
    """Whether "the mean is at most `mean`" is ruled out at level delta; `terms` are those of `in_random_order`."""
    order, sizes = terms
    room = (mean - differences.low) * differences.largest_size
    stake = MOST_STAKED / room if room > 0.0 else math.inf
    every = max(1, len(order) // BETS)
    return bool(_reaches(order, sizes, mean, stake, differences.guess, 1.0 / delta, every, _stakes(), LOWEST))


def in_random_order(differences: Differences) -> tuple[Floats, Floats]:
    """Return the terms and their sizes in a random order.

    The terms come sorted, and the same order for all logs would always put the same order statistics first. So the
    seed is a digest of the terms and of the clicks that they come from: a log always gives the same bound, and
    different logs have unrelated orders.
    """
    counts = np.round(differences.counts).astype(np.int64)
    digest = hashlib.sha256(differences.salt.encode())
    digest.update(np.ascontiguousarray(differences.values).tobytes() + counts.tobytes())
    place = np.repeat(np.arange(len(differences.values)), counts)
    np.random.default_rng(int.from_bytes(digest.digest()[:16])).shuffle(place)
    sizes = np.ones(len(place)) if differences.sizes is None else differences.sizes[place]
    return differences.values[place], sizes


@cache
def _stakes(points: int = 8192) -> Floats:
    """phi(z) / Phi(z) with Phi(z) = u, at logarithms of u evenly spaced from LOWEST to 0."""
    from scipy.special import ndtri  # here, because the command line reads the names of the bounds

    u = np.exp(np.linspace(LOWEST, 0.0, points)[:-1])
    return np.append(np.exp(-(ndtri(u) ** 2) / 2.0) / math.sqrt(2.0 * math.pi) / u, 0.0)


@jit
def _reaches(
    order: Any, sizes: Any, mean: float, most: float, guess: float, goal: float, every: int, stakes: Any, lowest: float
) -> bool:
    """Whether the capital reaches the goal, the terms being taken in this order."""
    terms, log_goal = len(order), math.log(goal)
    log_pay = math.log(goal * OVERSHOOT)
    scale = (len(stakes) - 1) / -lowest
    log_capital, stake = 0.0, 0.0
    squares, seen = guess * WEIGHT_OF_GUESS, WEIGHT_OF_GUESS
    for t in range(terms):
        if t % every == 0:
            place = max((log_capital - log_pay - lowest) * scale, 0.0)
            left = min(int(place), len(stakes) - 2)
            share = stakes[left] + (place - left) * (stakes[left + 1] - stakes[left])
            stake = min(share / math.sqrt((terms - t) * max(squares / seen, 1e-300)), most)
        term = order[t] - mean * sizes[t]
        log_capital += math.log1p(stake * term)
        if log_capital >= log_goal:
            return True
        squares += term * term
        seen += 1.0
    return False
