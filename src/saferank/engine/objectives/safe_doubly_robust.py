"""Doubly robust estimation minus the width of the paper's bound."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.doubly_robust import doubly_robust
from saferank.engine.objectives.exposure_crm import FLOOR, exposure_crm
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.risk import Constant
from saferank.engine.types.log_statistics import LogStatistics


def safe_doubly_robust(
    log: LogStatistics,
    relevance: NDArray[np.float64],
    logging_exposure: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    delta: float = 0.01,
    constant: Constant = "proven",
    clip: float = 0.0,
    floor: float = FLOOR,
) -> ExposureObjective:
    """Safe doubly robust learning (Gupta, Oosterhuis, de Rijke, CIKM 2024), without trust bias.

        U-hat_DR(rho) - sqrt( c (Z/N) ((1-delta)/delta) d2 )

    The estimate is that of `doubly_robust`, the risk that of `exposure_crm`. Without trust bias the factor that the
    authors put before the risk is 1.
    """
    estimate = doubly_robust(log, relevance, logging_exposure, examination, clip=clip)
    risk = exposure_crm(log, logging_exposure, examination, delta=delta, constant=constant, floor=floor)
    return replace(estimate, risk_weight=risk.risk_weight)
