"""How well a policy's exposure agrees with what was shown: the start of a fit whose logging policy is not known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.objective import Array
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.ragged import flat_rows, offsets_of, query_sums
from saferank.engine.types.log_statistics import LogStatistics

LEAST = 1e-6
"""Exposure below which the logarithm is continued by its tangent, so that value and slope stay finite."""


@dataclass(frozen=True, eq=False)
class Imitation(ExposureObjective):
    """value = sum_d reward(d) log rho(d), log being continued by its tangent below LEAST."""

    def terms(self, x: Array, queries: Array) -> Array:
        """Return each given query's part of the value; there is no risk."""
        rows, offsets = flat_rows(self.offsets, queries), offsets_of(np.diff(self.offsets)[queries])
        log = np.log(np.maximum(x, LEAST, dtype=np.float64)) + np.minimum(x / LEAST - 1.0, 0.0)
        return np.stack([query_sums(self.reward[rows] * log, offsets), np.zeros(len(queries))])

    def slope(self, x: Array, sums: Array, queries: Array) -> Array:  # noqa: ARG002
        """Return d value / d rho."""
        slope: Array = self.reward[flat_rows(self.offsets, queries)] / np.maximum(x, LEAST)
        return slope


def imitation(
    log: LogStatistics, examination: NDArray[np.float64], *, logging_exposure: NDArray[np.float64] | None = None
) -> Imitation:
    """Minus the cross-entropy of the policy's exposure relative to the logging exposure, counted unless it is given.

        (1/N) sum_q N_q sum_d rho_0(d) log rho(d),    counted: rho_0(d) = sum_k examination[k] shown(d, k) / N_q

    All policies have the same sum of rho over a query's documents, so by Gibbs' inequality the value is highest where
    rho is in proportion to rho_0, and its expectation at the logging exposure. It needs the counts per rank only, not
    the single rankings.
    """
    if logging_exposure is None:
        logging_exposure = estimated_logging_exposure(log, examination)
    reward = log.interactions[log.query_of_document] / max(log.total_interactions, 1) * logging_exposure
    return Imitation(log.offsets, reward, examination=examination)
