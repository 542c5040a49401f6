"""How well a policy explains what was shown: the start of every fit whose logging policy is not known."""

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
"""Exposure below which the logarithm is not followed any further."""


@dataclass(frozen=True, eq=False)
class Imitation(ExposureObjective):
    """value = sum_d reward(d) log rho(d)."""

    def terms(self, x: Array, queries: Array) -> Array:
        """Return each given query's part of the value; there is no risk."""
        rows, offsets = flat_rows(self.offsets, queries), offsets_of(np.diff(self.offsets)[queries])
        value = query_sums(self.reward[rows] * np.log(np.maximum(x, LEAST)), offsets)
        return np.stack([value, np.zeros(len(queries))])

    def slope(self, x: Array, sums: Array, queries: Array) -> Array:  # noqa: ARG002
        """Return d value / d rho."""
        slope: Array = self.reward[flat_rows(self.offsets, queries)] / np.maximum(x, LEAST)
        return slope


def imitation(log: LogStatistics, examination: NDArray[np.float64]) -> Imitation:
    """Cross-entropy of the exposure that the log counts, and the policy's own.

        (1/N) sum_q N_q sum_d counted(d) log rho(d)

    The sum of rho over a query's documents is fixed, so by Gibbs' inequality the expectation is highest at the logging
    exposure. Needs the counts per rank alone, and not the single rankings of a log.
    """
    issued = log.interactions[log.query_of_document] / max(log.total_interactions, 1)
    reward = issued * estimated_logging_exposure(log, examination)
    return Imitation(log.offsets, reward, examination=examination)
