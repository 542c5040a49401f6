"""A given examination curve compared with the log."""

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
"""Relative difference at a rank that is accepted, however certain."""
CLEAR = 2.5
"""Standard errors by which at least one rank must be off."""
UNCLEAR_STEEPNESS = 1.5
"""Factor by which the last rank of a curve that is too steep or too flat may be off, within a 95% interval, so that the
log still counts as able to check it."""
UNCLEAR_RANK = 2.0
"""The same for a rank by itself."""
FEW_QUERIES = 5
FEW_CLICKS = 3
"""Clicks at a rank that is given as never examined: fewer may be errors of the log."""


@dataclass(frozen=True, eq=False)
class ExaminationCheck:
    """Whether the log agrees with a curve, contradicts it, or cannot check it."""

    status: Status
    z: float
    """Normal deviate of the joint test of all ranks; 0 if nothing can be compared."""
    worst_rank: int | None
    """From 0: the rank that is furthest off (contradicted), or known least precisely (unchecked)."""
    curve: NDArray[np.float64]
    """Harvested, relative to rank 1; NaN where it cannot be estimated."""
    error: NDArray[np.float64]
    """Standard error of its logarithm; infinite where it cannot be estimated."""
    steepness_error: float
    """Standard error of t if the curve is taken to be the given one times rank^(-t)."""
    documents: int
    """Documents that were shown at several ranks and clicked: what the check rests on."""

    def contradiction(self, given: NDArray[np.float64]) -> str:
        """Return in words what the log says of the rank at which a contradicted curve is furthest off."""
        rank = self.worst_rank or 0
        text = f"rank {rank + 1} is given as {given[rank] / given[0]:.2f}"
        if not np.isfinite(self.curve[rank]):
            return f"{text}, but was clicked"
        low, high = self.curve[rank] * np.exp([-1.96 * self.error[rank], 1.96 * self.error[rank]])
        return f"{text} of rank 1, but estimated as {self.curve[rank]:.2f} ({low:.2f} to {high:.2f})"

    @property
    def wide(self) -> bool:
        """Whether the log is too small, or varies too little, to distinguish curves."""
        steepness = 1.96 * self.steepness_error * math.log(len(self.curve)) if len(self.curve) > 1 else 0.0
        return steepness > math.log(UNCLEAR_STEEPNESS) or bool((1.96 * self.error > math.log(UNCLEAR_RANK)).any())


def examination_check(statistics: LogStatistics, given: NDArray[np.float64] | None = None) -> ExaminationCheck:
    """Compare a curve with the one harvested from documents that were shown at several ranks.

    The joint test is Wald's: with d = log given - log harvested and H the curvature of the likelihood,

        d' H d ~ chi-square with (ranks - 1) degrees of freedom,

    divided by the dispersion of the queries' gradients if that is above 1. It contradicts the curve if it is
    significant, and some rank is clearly off by more than the margin. Holds for position-based clicks and relevances
    that do not change; use statistics within periods where they do. Without a given curve, the status says whether
    the log could check one.
    """
    ranks = statistics.cutoff
    curve, error = np.full(ranks, np.nan), np.full(ranks, np.inf)
    curve[0], error[0] = 1.0, 0.0
    pairs = find_interventions(statistics)
    found = ExaminationCheck("unchecked", 0.0, ranks - 1, curve, error, math.inf, pairs.pairs)
    if given is not None:
        never = np.flatnonzero((given <= 0) & (statistics.clicked.sum(axis=0) >= FEW_CLICKS))
        if len(never):
            return replace(found, status="contradicted", z=math.inf, worst_rank=int(never[0]))
    if ranks == 1:
        return replace(found, status="agrees", worst_rank=None, steepness_error=0.0)
    if len(pairs.ranks) < 2 or pairs.queries < FEW_QUERIES:
        return found
    fit = harvest(pairs)
    compared = pairs.ranks[1:]
    information = curvature(fit.weight, fit.total)[1:, 1:]
    inverse = np.linalg.inv(information)
    per_query = np.zeros((pairs.queries, len(compared)))
    np.add.at(per_query, pairs.query, fit.gradient[:, 1:])
    scatter = per_query.T @ per_query * pairs.queries / max(pairs.queries - 1, 1)
    dispersion = max(1.0, float(np.trace(inverse @ scatter)) / len(compared))
    curve[pairs.ranks] = np.exp(fit.log_curve)
    error[compared] = np.sqrt(dispersion * np.diag(inverse))
    along = np.log(compared + 1.0)
    found = replace(found, steepness_error=math.sqrt(dispersion / float(along @ information @ along)))
    if given is None:
        return replace(found, status="unchecked" if found.wide else "agrees", worst_rank=int(np.argmax(error)))
    difference = np.log(np.maximum(given[compared], 1e-300) / given[0]) - fit.log_curve[1:]
    freedom = len(compared)
    square = float(difference @ information @ difference) / dispersion
    z = deviate((square - freedom) / math.sqrt(2.0 * freedom), math.sqrt(8.0 / freedom))
    off = (np.abs(difference) > math.log1p(MARGIN)) & (np.abs(difference) > CLEAR * error[compared])
    if z > CONTRADICTED and off.any():
        worst = int(compared[np.argmax(np.where(off, np.abs(difference), 0.0))])
        return replace(found, status="contradicted", z=z, worst_rank=worst)
    # a rank that is given as 0, and where nothing was clicked, needs no estimate
    found = replace(found, z=z, error=np.where(given > 0, error, 0.0))
    if found.wide:
        return replace(found, worst_rank=int(np.argmax(found.error)))
    return replace(found, status="agrees", worst_rank=None)
