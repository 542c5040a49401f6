"""Temperatures worth considering for given scores, whatever their scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from saferank.plan.randomisation import ByScore, Temperature

Floats = NDArray[np.float64]

LEAST_MOVED, MOST_MOVED = 0.01, 0.4
"""Share of the exposure that goes to other documents than in the ranking by score, at both ends of the grid."""


def moved_exposure(exposure: Floats, reference: Floats, weight: Floats) -> float:
    """Share of the exposure that goes to other documents than in the reference; `weight` is each document's traffic."""
    total = max(float((reference * weight).sum()), float((exposure * weight).sum()), 1e-300)
    return float((np.abs(exposure - reference) * weight).sum()) / 2.0 / total


def temperature_grid(
    scores: Floats, offsets: NDArray[np.int64], examination: Floats, weight: Floats, *, steps: int = 9
) -> tuple[float, ...]:
    """Return temperatures in geometric steps, of two digits each, from nearly none to a lot of movement.

    Where even an infinite temperature moves less than MOST_MOVED of the exposure, the grid ends at nine tenths of what
    that moves; it is empty if it moves nothing: each query has one document.
    """
    reference = ByScore().exposure(scores, offsets, examination)

    def moved(temperature: float) -> float:
        return moved_exposure(Temperature(temperature).exposure(scores, offsets, examination), reference, weight)

    lowest = np.minimum.reduceat(scores, offsets[:-1])
    score_range = float((np.maximum.reduceat(scores, offsets[:-1]) - lowest).max())
    unit = score_range if score_range > 0 else 1.0
    most = moved(1e6 * unit)
    if most <= 1e-9:
        return ()
    high = _solve(moved, min(MOST_MOVED, 0.9 * most), unit)
    low = min(_solve(moved, min(LEAST_MOVED, 0.1 * most), unit), high / 2.0)
    return tuple(dict.fromkeys(float(f"{value:.2g}") for value in np.geomspace(low, high, steps)))


def _solve(moved: Callable[[float], float], wanted: float, unit: float) -> float:
    """Return the temperature that moves so much, by bisection of its logarithm; tied scores move at any temperature."""
    low, high = np.log(1e-4 * unit), np.log(1e6 * unit)
    for _ in range(16):
        middle = (low + high) / 2.0
        low, high = (low, middle) if moved(float(np.exp(middle))) >= wanted else (middle, high)
    return float(np.exp((low + high) / 2.0))
