"""A better policy as teams find them: much is moved, and only some of it is gained."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from saferank.plan.randomisation import ByScore
from saferank.plan.temperature_grid import moved_exposure

Floats = NDArray[np.float64]

TYPICAL_MOVED = 0.25
"""Share of the exposure that a new model moves without gaining by it: a cautious choice. Five policies learned from
simulated logs, which moved 0.19 to 0.28 of the exposure, needed 0.2 to 0.9 times the interactions that 0.25 gives, and
1.0 to 2.7 times those that 0.2 gives; for policies that move only what pays, about a tenth would do."""
LARGEST_PUSH = 1e4
BISECTIONS = 14


def better_exposures(
    scores: Floats,
    relevance: Floats,
    offsets: NDArray[np.int64],
    examination: Floats,
    weight: Floats,
    now: Floats,
    gains: Sequence[float],
    rng: np.random.Generator,
    *,
    typical_moved: float = TYPICAL_MOVED,
) -> list[Floats | None]:
    """Return for each gain the exposure of a policy with (1 + gain) times the utility of `now`, None if out of reach.

        sort by  score + b * noise + a * relevance  (each standardised within the query),
        utility = sum_d weight(d) relevance(d) rho(d),    weight = the traffic of the document's query

    b is such that noise alone moves `typical_moved` of the exposure away from the ranking by score; then a is the least
    that reaches the gain. Utility never falls with a: the ranking maximises u + a v, where v = sum of standardised
    relevance times examination, so v rises with a. A mixture of the last two policies (or with `now`, if noise alone is
    better) meets the gain exactly.
    """
    known, wanted = (_standardised(values, offsets) for values in (scores, relevance))
    noise = rng.normal(size=len(scores))
    by_score = ByScore().exposure(known, offsets, examination)
    value = weight * relevance

    def ranked(blend: Floats) -> Floats:
        return ByScore().exposure(blend, offsets, examination)

    def moves_enough(amount: float) -> bool:
        return moved_exposure(ranked(known + amount * noise), by_score, weight) >= typical_moved

    start = known + _least(moves_enough)[1] * noise
    found: list[Floats | None] = []
    for gain in gains:
        target = (1.0 + gain) * float((value * now).sum())

        def reaches(push: float, target: float = target) -> bool:
            return float((value * ranked(start + push * wanted)).sum()) >= target

        if not reaches(LARGEST_PUSH):
            found.append(None)
            continue
        low, high = _least(reaches)
        short = ranked(start + low * wanted) if low < high else now
        found.append(_mixture(short, ranked(start + high * wanted), value, target))
    return found


def _least(enough: Callable[[float], bool]) -> tuple[float, float]:
    """Return an amount that is not enough and one that is, close together; the largest one if none is."""
    low, high = 0.0, 0.1
    if enough(low):
        return low, low
    while high < LARGEST_PUSH and not enough(high):
        low, high = high, 4.0 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high


def _mixture(short: Floats, enough: Floats, value: Floats, target: float) -> Floats:
    less, more = float((value * short).sum()), float((value * enough).sum())
    share = (target - less) / (more - less) if more > less else 1.0
    return (1.0 - share) * short + share * enough


def _standardised(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    lengths = np.diff(offsets)
    centred = values - np.repeat(np.add.reduceat(values, offsets[:-1]) / lengths, lengths)
    deviation = np.repeat(np.sqrt(np.add.reduceat(centred**2, offsets[:-1]) / lengths), lengths)
    scaled: Floats = np.divide(centred, deviation, out=np.zeros(len(values)), where=deviation > 1e-12)
    return scaled
