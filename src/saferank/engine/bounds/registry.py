"""Lower confidence bounds of the improvement, one-sided at level delta, each with what it rests on.

All take `Differences`: distinct values with counts, so that their cost is that of the distinct values. None of them
depends on the order in which the interactions came. An upper bound is minus a lower bound of `-X`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from saferank.engine.bounds.betting import betting
from saferank.engine.bounds.differences import Differences
from saferank.engine.bounds.one_look import one_look
from saferank.engine.click_models.examination import Constant
from saferank.engine.delta import checked_delta
from saferank.engine.errors import UsageError

CLIPS = 8
"""Levels at which the empirical Bernstein bound tries to clip X from above, each half the one before."""


def divergence_bound(differences: Differences, delta: float, constant: Constant = "proven") -> float:
    """Cantelli's inequality with the variance bounded by the divergence of the two policies' exposure.

        mean - sqrt( V/N (1 - delta)/delta ),    V = c (1/N) sum_q N_q sum_d (rho(d) - rho_0(d))^2 / rho_0(d)

    Holds for the queries as they were issued, position-based clicks that are independent given the ranking, and a
    known rho_0, with c = min(K, 1 + Z): "proven". The paper's c = 1 (Gupta et al., SIGIR 2023, Theorem 1) can fail.
    """
    if differences.interactions == 0:
        return differences.low
    variance = differences.second_moment[constant] / differences.interactions
    return max(differences.low, differences.mean - math.sqrt(variance * (1.0 - delta) / delta))


def empirical_bernstein(differences: Differences, delta: float) -> float:
    """Maurer and Pontil (COLT 2009, Theorem 4) for X clipped from above, the best of some levels.

        mean_b - sqrt( 2 V_b ln(2/d) / N ) - 7 (b - low) ln(2/d) / (3 (N - 1)),    d = delta / levels

    with mean_b and V_b those of min(X, b), whose mean is not above that of X. Holds for independent interactions
    with X >= low; no upper limit of X is needed, because the levels b are fixed by `high` and not by the data.
    """
    n = differences.interactions
    if n < 2:
        return differences.low
    log = math.log(2.0 * CLIPS / delta)
    best = differences.low
    for level in range(CLIPS):
        top = differences.low + (differences.high - differences.low) * 0.5**level
        clipped = np.minimum(differences.values, top)
        mean = float(clipped @ differences.counts) / n
        variance = float(np.square(clipped - mean) @ differences.counts) / (n - 1)
        width = math.sqrt(2.0 * variance * log / n) + 7.0 * (top - differences.low) * log / (3.0 * (n - 1))
        best = max(best, mean - width)
    return best


def student_t(differences: Differences, delta: float) -> float:
    """mean - t sqrt(V/N), t the 1 - delta quantile of Student's distribution with N - 1 degrees of freedom.

    Asymptotic: right for many interactions, with no promise for how many. Heavy weights need most.
    """
    from scipy.special import stdtrit  # here, because the command line reads the names of the bounds

    n = differences.terms
    if n < 2:
        return differences.low
    width = float(stdtrit(n - 1, 1.0 - delta)) * differences.standard_error
    return max(differences.low, differences.mean - width)


@dataclass(frozen=True)
class Bound:
    """A way to bound the improvement from below, and what it rests on."""

    name: str
    lower: Callable[[Differences, float], float]
    guarantee: bool
    """Whether it holds at level delta for every number of interactions, under its assumptions."""
    any_time: bool
    """Whether it holds at all looks together, so that one may look every day and stop when it pleases."""
    assumptions: tuple[str, ...]
    units: bool = True
    """Whether it can take terms of several interactions each."""


INDEPENDENT = "interactions are independent, and their queries come as they will after deployment"
POSITION_BASED = "clicks are position-based: P(click) = examination of the rank times relevance of the document"
NORMAL = "so many interactions that their mean is normal"
THEOREM_1 = "the constant of the paper's Theorem 1"
MIX = "the promise is about the queries as they were issued in the held-out part"

CLICKS = (INDEPENDENT, POSITION_BASED)
PAPER = partial(divergence_bound, constant="paper")
BOUNDS = {
    bound.name: bound
    for bound in (
        Bound("one-look", one_look, True, False, CLICKS),
        Bound("betting", betting, True, True, CLICKS),
        Bound("empirical-bernstein", empirical_bernstein, True, False, CLICKS, False),
        Bound("divergence", divergence_bound, True, False, (MIX, POSITION_BASED), False),
        Bound("divergence-paper", PAPER, False, False, (MIX, POSITION_BASED, THEOREM_1), False),
        Bound("student-t", student_t, False, False, (*CLICKS, NORMAL)),
    )
}
"""By name; `divergence-paper` and `student-t` are for comparison and promise nothing."""


def check_bound(bound: str, delta: float) -> None:
    """Raise if there is no such bound, or if delta is out of range."""
    if bound not in BOUNDS:
        raise UsageError(f"bound '{bound}' is unknown; choose one of: {', '.join(BOUNDS)}.")
    checked_delta(delta)
