"""Doubly robust estimation minus the width of the paper's bound."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import Constant
from saferank.engine.objectives.doubly_robust import doubly_robust
from saferank.engine.objectives.exposure_crm import FLOOR, exposure_crm
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.propensity.logged_trust import LoggedTrust
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
    trust: LoggedTrust | None = None,
) -> ExposureObjective:
    """Safe doubly robust learning (Gupta, Oosterhuis, de Rijke, CIKM 2024).

        U-hat_DR(rho) - kappa sqrt( c (Z/N) ((1-delta)/delta) d2 ),    kappa = 1 + max_k beta_k / alpha_k

    The estimate is that of `doubly_robust`, the risk that of `exposure_crm`. Without trust bias kappa is 1.
    """
    estimate = doubly_robust(log, relevance, logging_exposure, examination, clip=clip, trust=trust)
    risk = exposure_crm(log, logging_exposure, examination, delta=delta, constant=constant, floor=floor, trust=trust)
    return replace(estimate, risk_weight=risk.risk_weight)
