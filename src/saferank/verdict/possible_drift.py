"""How much demand may have drifted without the log showing it, and what that could do to an estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.verdict.held_out import HeldOut

Floats = NDArray[np.float64]
Z = 1.645
"""Standard errors above the estimate of drift: with 95% confidence it is not larger."""


@dataclass(frozen=True, eq=False)
class PossibleDrift:
    """What to allow for where the ranker changed over time and no drift of demand was found.

    Clicks on d are counted over all periods. If its relevance R_t varies, and the ranker shows d more in the periods
    in which it is wanted, relevance is overestimated by

        Cov_t(R_t, x_t) / mean x   <=   mean R * at_most * variation(d)      (Cauchy-Schwarz)

    with x_t the exposure of d in period t.
    """

    at_most: float
    """Standard deviation of relevance over periods, relative to its mean, that cannot be excluded."""
    variation: Floats
    """Of each pair: standard deviation of its exposure over periods, relative to its mean."""


def possible_drift(log: HeldOut, part: HeldOut, examination: Floats, pairs: int) -> PossibleDrift:
    """Return what to allow for. `log`: all that was counted; `part`: what is held out; both by query and period."""
    return PossibleDrift(_at_most(log), _variation(part, examination, pairs))


def _at_most(log: HeldOut) -> float:
    """Bound the relative deviation of click-through over periods, from pairs of clicks at the same place.

    If nothing changes, two clicks on a document at a rank fall into the same period as often as two times of showing
    it do: E[c (c - 1)] = n (n - 1) rate^2 in each period. A deviation s makes that 1 + s^2 times as much. Given the
    clicks of all periods, the sum has a variance of about 2 sum (n rate)^2.
    """
    cell, rank = np.nonzero(log.shown)
    n, c = log.shown[cell, rank].astype(np.float64), log.clicked[cell, rank].astype(np.float64)
    place = np.unique(log.pair[cell] * log.shown.shape[1] + rank, return_inverse=True)[1]
    all_n, all_c = np.bincount(place, n), np.bincount(place, c)
    other_n, other_c = all_n**2 - np.bincount(place, n * n), all_c**2 - np.bincount(place, c * c)
    same_n, same_c = np.bincount(place, n * (n - 1.0)), np.bincount(place, c * (c - 1.0))
    tells = (other_n > 0) & (same_n > 0)
    expected = float((same_n[tells] * other_c[tells] / other_n[tells]).sum())
    if expected <= 0.0:
        return 1.0
    excess = float(same_c[tells].sum()) / expected - 1.0
    return min(math.sqrt(max(excess, 0.0) + Z * math.sqrt(2.0 / expected)), 1.0)


def _variation(part: HeldOut, examination: Floats, pairs: int) -> Floats:
    examined = part.shown @ examination
    first = np.bincount(part.pair, examined, pairs)
    second = np.bincount(part.pair, np.square(examined) / np.maximum(part.interactions[part.stratum], 1), pairs)
    issued = np.bincount(part.query, part.interactions, int(part.query.max(initial=0)) + 1)
    total = np.zeros(pairs)
    total[part.pair] = issued[part.query[part.stratum]]
    square = np.divide(total * second, np.square(first), out=np.ones(pairs), where=first > 0) - 1.0
    return np.sqrt(np.maximum(square, 0.0))
