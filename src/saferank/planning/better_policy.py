"""A better policy as teams find them: the production ranking, pushed some way towards relevance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from saferank.planning.randomisation import ByScore

Floats = NDArray[np.float64]

PUSHES = (0.0, *np.geomspace(0.02, 50.0, 16).tolist(), math.inf)
BISECTIONS = 10
NOISE = 0.5


def noisy_direction(relevance: Floats, offsets: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Return relevance plus noise of NOISE times its deviation within the query: a correlation of 0.9 with the truth.

    A model that knew relevance exactly would reach a gain with the fewest changes, and would be the easiest to certify.
    """
    lengths = np.diff(offsets)
    mean = np.add.reduceat(relevance, offsets[:-1]) / lengths
    spread = np.sqrt(np.add.reduceat((relevance - np.repeat(mean, lengths)) ** 2, offsets[:-1]) / lengths)
    return relevance + NOISE * np.repeat(spread, lengths) * rng.normal(size=len(relevance))


def better_exposures(
    scores: Floats,
    direction: Floats,
    offsets: NDArray[np.int64],
    examination: Floats,
    value: Floats,
    now: Floats,
    gains: Sequence[float],
) -> list[Floats | None]:
    """Return for each gain the exposure of a policy whose utility is (1 + gain) times that of `now`, None if there is none.

        sort by  score + push * direction  (both standardised within the query),    utility = sum_d value(d) rho(d)

    with the smallest push that reaches the gain. The last step is a mixture of two such policies, so that the gain is
    met exactly; `now` takes part in it if the ranking by score alone earns more.
    """
    known, wanted = (_standardised(values, offsets) for values in (scores, direction))

    def pushed(push: float) -> Floats:
        blend = wanted if math.isinf(push) else known + push * wanted
        return ByScore().exposure(blend, offsets, examination)

    before = float(value @ now)
    path = [pushed(push) for push in PUSHES]
    utilities = [float(value @ exposure) for exposure in path]
    found: list[Floats | None] = []
    for gain in gains:
        target = (1.0 + gain) * before
        first = next((place for place, utility in enumerate(utilities) if utility >= target), None)
        if first is None:
            found.append(None)
            continue
        short, enough = (now if first == 0 else path[first - 1]), path[first]
        if first > 0 and math.isfinite(PUSHES[first]):
            low, high = PUSHES[first - 1], PUSHES[first]
            for _ in range(BISECTIONS):
                middle = (low + high) / 2.0
                trial = pushed(middle)
                if float(value @ trial) >= target:
                    high, enough = middle, trial
                else:
                    low, short = middle, trial
        found.append(_mixture(short, enough, value, target))
    return found


def _mixture(short: Floats, enough: Floats, value: Floats, target: float) -> Floats:
    less, more = float(value @ short), float(value @ enough)
    share = (target - less) / (more - less) if more > less else 1.0
    return (1.0 - share) * short + share * enough


def _standardised(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    lengths = np.diff(offsets)
    centred = values - np.repeat(np.add.reduceat(values, offsets[:-1]) / lengths, lengths)
    spread = np.repeat(np.sqrt(np.add.reduceat(centred**2, offsets[:-1]) / lengths), lengths)
    return np.divide(centred, spread, out=np.zeros(len(values)), where=spread > 1e-12)
