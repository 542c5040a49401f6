"""The true relevance instead of clicks: the highest that can be hoped for."""

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.exposure_objective import ExposureObjective


def skyline(
    relevance: NDArray[np.float64], offsets: NDArray[np.int64], examination: NDArray[np.float64]
) -> ExposureObjective:
    """Expected clicks themselves, every query with the same weight: (1/Q) sum_q sum_d rho(d) relevance(d)."""
    reward = np.asarray(relevance, dtype=np.float64) / (len(offsets) - 1)
    return ExposureObjective(offsets, reward, examination=examination)
