"""A given examination curve held against the log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.homogeneity import deviate
from saferank.engine.propensity.curve_fit import curvature
from saferank.engine.propensity.harvesting import harvest
from saferank.engine.propensity.interventions import find_interventions
from saferank.engine.types.log_statistics import LogStatistics

Status = Literal["agrees", "contradicted", "unchecked"]

CONTRADICTED = 3.09
"""Normal deviate of the joint test: a true curve is contradicted in one log in 1000."""
MARGIN = 0.1
"""Relative misfit of a rank that is let pass, however certain."""
CLEAR = 2.5
"""Standard errors by which at least one rank must be off."""
UNCLEAR_STEEPNESS = 1.5
"""Factor by which the last rank may be off, for a curve that is too steep or too flat throughout, before a log that
cannot tell counts as unable to check it (95% interval)."""
UNCLEAR_RANK = 2.0
"""The same for a rank by itself."""
FEW_QUERIES = 5
FEW_CLICKS = 3
"""Clicks at a rank that is said never to be looked at: fewer may be errors of the log."""


@dataclass(frozen=True, eq=False)
class ExaminationCheck:
    """Whether the log agrees with a curve, contradicts it, or cannot tell."""

    status: Status
    z: float
    """Normal deviate of the joint test of all ranks; 0 if nothing can be compared."""
    worst_rank: int | None
    """From 0: the rank that is off most (contradicted), or that is known least (unchecked)."""
    curve: NDArray[np.float64]
    """Harvested, relative to rank 1; NaN where the log does not tell."""
    error: NDArray[np.float64]
    """Standard error of its logarithm; infinite where the log does not tell."""
    steepness_error: float
    """Standard error of t if the curve is taken to be the given one times rank^(-t)."""
    documents: int
    """Documents that were shown at several ranks and clicked: what the check rests on."""

    @property
    def wide(self) -> bool:
        """Whether the log is too small, or varies too little, to tell curves apart."""
        steepness = 1.96 * self.steepness_error * math.log(len(self.curve)) if len(self.curve) > 1 else 0.0
        return steepness > math.log(UNCLEAR_STEEPNESS) or bool((1.96 * self.error > math.log(UNCLEAR_RANK)).any())


def examination_check(statistics: LogStatistics, given: NDArray[np.float64] | None = None) -> ExaminationCheck:
    """Compare a curve with the one harvested from documents that were shown at several ranks.

    The joint test is Wald's: with d = log given - log harvested and H the curvature of the likelihood,

        d' H d ~ chi-square with (ranks - 1) degrees of freedom,

    divided by the dispersion of the queries' gradients if that is above 1. It contradicts the curve if it is
    significant, and some rank is clearly off by more than the margin. Holds for position-based clicks and relevances
    that do not change; use statistics within periods where they do. Without a given curve it only tells whether the
    log could check one.
    """
    ranks = statistics.cutoff
    curve, error = np.full(ranks, np.nan), np.full(ranks, np.inf)
    curve[0], error[0] = 1.0, 0.0
    pairs = find_interventions(statistics)
    target = None if given is None else np.asarray(given, np.float64)
    if target is not None and (never := _clicked_though_never(statistics, target)) is not None:
        return ExaminationCheck("contradicted", math.inf, never, curve, error, math.inf, pairs.pairs)
    if len(pairs.ranks) < 2 or pairs.queries < FEW_QUERIES:
        worst = ranks - 1 if ranks > 1 else None
        status: Status = "unchecked" if ranks > 1 else "agrees"
        return ExaminationCheck(status, 0.0, worst, curve, error, math.inf if ranks > 1 else 0.0, pairs.pairs)
    fit = harvest(pairs)
    compared = pairs.ranks[1:]
    hold = curvature(fit.weight, fit.total)[1:, 1:]
    inverse = np.linalg.inv(hold)
    per_query = np.zeros((pairs.queries, len(compared)))
    np.add.at(per_query, pairs.query, fit.gradient[:, 1:])
    scatter = per_query.T @ per_query * pairs.queries / max(pairs.queries - 1, 1)
    dispersion = max(1.0, float(np.trace(inverse @ scatter)) / len(compared))
    curve[pairs.ranks] = np.exp(fit.log_curve)
    error[compared] = np.sqrt(dispersion * np.diag(inverse))
    along = np.log(compared + 1.0)
    steepness = math.sqrt(dispersion / float(along @ hold @ along))
    found = ExaminationCheck("unchecked", 0.0, None, curve, error, steepness, pairs.pairs)
    if target is None:
        return replace(found, status="unchecked" if found.wide else "agrees", worst_rank=int(np.argmax(error)))
    difference = np.log(np.maximum(target[compared], 1e-300) / target[0]) - fit.log_curve[1:]
    freedom = len(compared)
    square = float(difference @ hold @ difference) / dispersion
    z = deviate((square - freedom) / math.sqrt(2.0 * freedom), math.sqrt(8.0 / freedom))
    off = (np.abs(difference) > math.log1p(MARGIN)) & (np.abs(difference) > CLEAR * error[compared])
    if z > CONTRADICTED and off.any():
        worst = int(compared[np.argmax(np.where(off, np.abs(difference), 0.0))])
        return replace(found, status="contradicted", z=z, worst_rank=worst)
    # a rank that is given as 0, and where nothing was clicked, needs no estimate
    found = replace(found, z=z, error=np.where(target > 0, error, 0.0))
    if found.wide:
        return replace(found, worst_rank=int(np.argmax(found.error)))
    return replace(found, status="agrees")


def _clicked_though_never(statistics: LogStatistics, given: NDArray[np.float64]) -> int | None:
    """Return the first rank that is given as never looked at, and was clicked all the same."""
    never = np.flatnonzero((given <= 0) & (statistics.clicked.sum(axis=0) >= FEW_CLICKS))
    return int(never[0]) if len(never) else None
