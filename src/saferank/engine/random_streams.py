"""Random numbers inside compiled loops: one small generator per stream, its state an array of one uint64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.jit import jit

Array = NDArray[Any]

# As typed constants: a signed one beside a uint64 makes Numba compute in float64.
STEP = np.uint64(0x9E3779B97F4A7C15)
"""From one state of the generator to the next."""
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _12, _27, _30, _31 = (np.uint64(shift) for shift in (11, 12, 27, 30, 31))

_FEW = 10.0
"""Below this expected count a binomial number is found by inversion; above it the rejection method holds."""


@jit
def mix(z: Any) -> Any:
    """Return 64 random bits for a state of the generator (splitmix64, Steele et al. 2014)."""
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@jit
def fraction(z: Any) -> float:
    """Return a uniform number in [0, 1) for a state: times n, and rounded down, it is an index below n."""
    return float(np.int64(mix(z) >> _11)) * 2.0**-53


@jit
def next_random(state: Array) -> float:
    """Advance the generator and return a uniform number in (0, 1): its logarithm is finite, and not 0."""
    state[0] += STEP
    return (float(np.int64(mix(state[0]) >> _12)) + 0.5) * 2.0**-52


@jit
def binomial(state: Array, n: int, p: float) -> int:
    """Draw the number of successes in n trials of chance p: exact, in a time that does not grow with n.

    Inversion for few expected successes, else transformed rejection (BTRS, Hörmann 1993) with Stirling's series
    for the factorials; good to n = 10^15, where rounding would begin to show in the acceptance test.
    """
    if n <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    if p > 0.5:
        return n - _successes(state, n, 1.0 - p)
    return _successes(state, n, p)


@jit
def _successes(state: Array, n: int, p: float) -> int:
    if n * p < _FEW:
        return _by_inversion(state, n, p)
    return _by_rejection(state, n, p)


@jit
def _by_inversion(state: Array, n: int, p: float) -> int:
    odds = p / (1.0 - p)
    none = math.exp(n * math.log1p(-p))
    while True:
        left = next_random(state)
        chance = none
        k = 0
        while left > chance:
            left -= chance
            k += 1
            if k > n or k > 200:  # only rounding leads here (at 10 expected, 200 has chance 1e-170): once more
                break
            chance *= (n - k + 1) * odds / k
        else:
            return k


@jit
def _by_rejection(state: Array, n: int, p: float) -> int:
    trials = float(n)
    odds = p / (1.0 - p)
    deviation = math.sqrt(trials * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = trials * p + 0.5
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((trials + 1.0) * p)
    while True:
        u = next_random(state) - 0.5
        v = next_random(state)
        edge = 0.5 - abs(u)
        k = math.floor((2.0 * a / edge + b) * u + centre)
        if k < 0.0 or k > trials:
            continue
        if edge >= 0.07 and v <= 0.92 - 4.2 / b:
            return int(k)
        log_ratio = (
            (mode + 0.5) * math.log((mode + 1.0) / (odds * (trials - mode + 1.0)))
            + (trials + 1.0) * math.log((trials - mode + 1.0) / (trials - k + 1.0))
            + (k + 0.5) * math.log(odds * (trials - k + 1.0) / (k + 1.0))
            + _stirling(mode)
            + _stirling(trials - mode)
            - _stirling(k)
            - _stirling(trials - k)
        )
        if math.log(v * alpha / (a / (edge * edge) + b)) <= log_ratio:
            return int(k)


@jit
def _stirling(k: float) -> float:
    """log k! - [ log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1) ]."""
    if k < 10.0:
        return math.lgamma(k + 1.0) - (0.9189385332046727 + (k + 0.5) * math.log(k + 1.0) - (k + 1.0))
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
