"""Proximal ranking policy optimisation: nothing pulls a document beyond a given change of its exposure."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.objective import Array
from saferank.engine.ragged import flat_rows


@dataclass(frozen=True, eq=False)
class Proximal(ExposureObjective):
    """value = sum_d reward(d) limited(d).

    limited = min(rho, most reference) where reward >= 0, and max(rho, least reference) where it is negative.
    """

    _: KW_ONLY
    reference: NDArray[np.float64]
    """Exposure of each document under the policy to stay close to."""
    least: float
    most: float

    def terms(self, x: Array, queries: Array) -> Array:
        """Return each given query's part of the value; there is no risk."""
        return super().terms(self._limited(x, queries), queries)

    def slope(self, x: Array, sums: Array, queries: Array) -> Array:
        """Return d value / d rho: 0 beyond the limit."""
        slope: Array = np.where(self._limited(x, queries) == x, super().slope(x, sums, queries), 0.0)
        return slope

    def _limited(self, x: Array, queries: Array) -> Array:
        rows = flat_rows(self.offsets, queries)
        reference, liked = self.reference[rows], self.reward[rows] >= 0
        limited: Array = np.where(liked, np.minimum(x, self.most * reference), np.maximum(x, self.least * reference))
        return limited


def prpo(estimate: ExposureObjective, logging_exposure: NDArray[np.float64], *, most: float) -> Proximal:
    """Proximal ranking policy optimisation (PRPO; Gupta, Oosterhuis, de Rijke, CIKM 2024).

        sum_d reward(d) rho_0(d) limited(rho(d) / rho_0(d))

    The rewards are those of `estimate`, linear in rho: the authors take doubly robust ones. A document that they favour
    gains nothing by more than `most` times its logging exposure, one that they disfavour nothing by less than 1 / most
    times it. So no click model, however wrong, and no adversary makes it worth while to go further. What was never
    shown stays where it is.
    """
    if not estimate.linear:
        raise UsageError("PRPO needs an estimate that is linear in exposure and has no risk term.")
    if not 1.0 <= most < math.inf:
        raise UsageError(f"most is the largest ratio of exposures that is rewarded, 1 or more; got {most}.")
    return Proximal(
        estimate.offsets,
        estimate.reward,
        examination=estimate.examination,
        accuracy=estimate.accuracy,
        reference=np.asarray(logging_exposure, np.float64),
        least=1.0 / most,
        most=most,
    )


def growing_limit(interactions: int) -> float:
    """1 + sqrt(N) / 100: the largest ratio of exposures by the size of the log; 1.1 at N = 100, 11 at 10^6."""
    return 1.0 + math.sqrt(interactions) / 100.0
