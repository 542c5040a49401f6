"""A confidence sequence by betting: valid at every look, with no upper limit on the weights.

To doubt that the mean is as low as m, bet on X being above it. With X >= low, a bettor who always risks the fraction
f of the capital multiplies it by 1 + f (X - m) / (m - low), which is never negative, and if the mean is m or less the
capital is not expected to grow. Ville's inequality: it ever reaches 1/delta with chance at most delta. So every m at
which it does is too low, at whatever time one looks. (Waudby-Smith and Ramdas, JRSS B 2024.)

The fraction need not be guessed: the capital is shared out over many fractions beforehand. Each share's capital is a
product over interactions, so it depends on their counts alone and not on their order.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from saferank.engine.bounds.differences import Differences

Floats = NDArray[np.float64]
FRACTIONS = np.geomspace(1e-6, 0.98, 64)
"""Fractions over which the capital is shared out evenly; fixed before any data is seen."""
NEGLIGIBLE = 20.0
"""A share whose capital is below the largest by this factor, in natural logarithms, is left out: that only lowers."""
ACCURACY = 1e-5
"""Of the bound, relative to its distance from the mean; the bound errs to the low side."""
BLOCK = 1 << 12
"""Values that are processed together."""
SPACING = 0.01
"""Of the grid of `condense`, in the inverse hyperbolic sine of a value."""


def betting(differences: Differences, delta: float) -> float:
    """Return the least mean that the bets do not rule out at level delta.

    Holds at all looks at a growing log together, for independent interactions with X >= low: nothing else is asked
    of X.
    """
    low, mean = differences.low, differences.mean
    if differences.interactions == 0 or low >= mean:
        return low
    differences, fractions = condense(differences), FRACTIONS
    goal = math.log(1.0 / delta)
    # The root lies between low, where the capital is infinite, and the mean, where no bet has won: log(1 + x) <= x.
    # Regula falsi with halving (Illinois), so that both ends close in on it.
    bottom, top, above, below = low, mean, math.inf, -goal
    error = differences.standard_error if differences.terms > 1 else 0.0
    guess = mean - max(3.0 * error, 1e-6 * (mean - low))
    for _ in range(200):
        if not bottom < guess < top:
            guess = 0.5 * (bottom + top)
        if not bottom < guess < top:  # no number lies between
            break
        shares = log_capitals(differences, guess, fractions)
        largest = float(shares.max())
        capital = largest if math.isinf(largest) else largest + math.log(float(np.exp(shares - largest).sum()))
        if abs(capital - goal) <= 3.0:  # near the bound no other shares can matter; leaving some out only lowers it
            fractions = fractions[shares >= largest - NEGLIGIBLE]
        if capital >= goal:
            bottom, above, below = guess, capital - goal, 0.5 * below
        else:
            top, below, above = guess, capital - goal, 0.5 * above
        if top - bottom <= ACCURACY * (mean - bottom):
            break
        guess = mean - 3.0 * (mean - top) if math.isinf(above) else bottom + (top - bottom) * above / (above - below)
    return bottom


def log_capitals(differences: Differences, mean: float, fractions: Floats) -> Floats:
    """Return the logarithm of what each fraction's share of the capital has become against "the mean is `mean`"."""
    counts = differences.counts.astype(np.float64)  # a product of floats is many times as fast as one with integers
    with np.errstate(divide="ignore", over="ignore"):
        each: Floats = np.log(np.full(len(fractions), 1.0 / len(FRACTIONS)))
        for start in range(0, len(differences.values), BLOCK):
            part = slice(start, start + BLOCK)
            expected = mean if differences.sizes is None else mean * differences.sizes[part]
            gain = (differences.values[part] - expected) / ((mean - differences.low) * differences.largest_size)
            each += counts[part] @ np.log1p(np.multiply.outer(gain, fractions))
    return each


def condense(differences: Differences, *, most: int = 1 << 13) -> Differences:
    """Return few values in place of many, on which no bet wins more than on the given ones.

    Each count is split over the two neighbouring points of a grid with the same mean: as log(1 + f x) is concave, that
    can only lower the logarithm of the capital, by about SPACING^2/8 of its growth.
    """
    if len(differences.values) <= most or differences.sizes is not None:
        return differences
    centre, scale = differences.mean, math.sqrt(differences.variance)
    place = np.floor(np.arcsinh((differences.values - centre) / scale) / SPACING).astype(np.int64)
    first = int(place.min())
    grid = np.maximum(centre + scale * np.sinh(SPACING * np.arange(first, int(place.max()) + 2)), differences.low)
    left, right = grid[place - first], grid[place - first + 1]
    upper = np.clip((differences.values - left) / (right - left), 0.0, 1.0) * differences.counts
    counts = np.bincount(place - first, differences.counts - upper, len(grid))
    counts += np.bincount(place - first + 1, upper, len(grid))
    return replace(differences, values=grid, counts=counts)
