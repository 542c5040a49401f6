"""Clicks as if nothing were wrong with them."""

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.types.log_statistics import LogStatistics


def naive(log: LogStatistics, examination: NDArray[np.float64]) -> ExposureObjective:
    """Clicks without any correction, the paper's most basic baseline: exposure IPS with rho_0 = 1 everywhere.

        (1/N) sum_q sum_d rho(d) clicks_q(d)

    Biased towards what the logging policy placed high.
    """
    return ExposureObjective(log.offsets, log.clicks / max(log.total_interactions, 1), examination=examination)
