"""How much demand may have drifted without the log showing it, and how that could bias an estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.drift import excess_pairs
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
    """Return what to allow for. `log`: all that was counted; `part`: what is held out; both by query and period.

    Given the clicks of all periods, the number of pairs of clicks in the same period has a variance of about twice
    its expectation.
    """
    cell, rank = np.nonzero(log.shown)
    place = np.unique(log.pair[cell] * log.shown.shape[1] + rank, return_inverse=True)[1]
    excess, expected = excess_pairs(place, log.shown[cell, rank], log.clicked[cell, rank])
    at_most = 1.0
    if expected > 0.0:
        at_most = min(math.sqrt(max(excess, 0.0) + Z * math.sqrt(2.0 / expected)), 1.0)
    return PossibleDrift(at_most, _variation(part, examination, pairs))


def _variation(part: HeldOut, examination: Floats, pairs: int) -> Floats:
    examined = part.shown @ examination
    first = np.bincount(part.pair, examined, pairs)
    second = np.bincount(part.pair, np.square(examined) / np.maximum(part.interactions[part.stratum], 1), pairs)
    issued = np.bincount(part.query, part.interactions, int(part.query.max(initial=0)) + 1)
    total = np.zeros(pairs)
    total[part.pair] = issued[part.query[part.stratum]]
    square = np.divide(total * second, np.square(first), out=np.ones(pairs), where=first > 0) - 1.0
    return np.sqrt(np.maximum(square, 0.0))
