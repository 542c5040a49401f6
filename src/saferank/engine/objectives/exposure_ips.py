"""Inverse propensity scoring with the exposure of each document as its propensity."""

import math

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.propensity.logged_trust import LoggedTrust, relevant_part
from saferank.engine.types.log_statistics import LogStatistics


def training_clip(interactions: int) -> float:
    """tau = min(10 / sqrt(N), 1): propensities are clipped up to it in training (paper, section 6)."""
    return min(10.0 / math.sqrt(max(interactions, 1)), 1.0)


def exposure_ips(
    log: LogStatistics,
    logging_exposure: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    clip: float = 0.0,
    trust: LoggedTrust | None = None,
) -> ExposureObjective:
    """Exposure-based IPS (Gupta et al., SIGIR 2023, Eq. for U-hat; Oosterhuis & de Rijke 2021).

        (1/N) sum_q sum_d rho(d) clicks_q(d) / max(rho_0(d), clip)

    Unbiased for position-based clicks if clip = 0 and rho_0(d) > 0 wherever rho(d) > 0. Clipping up lowers it. With
    trust bias, clicks and rho_0 are those of `relevant_part` (the affine correction of Vardasbi et al., CIKM 2020).
    """
    clicks, rho_0, _ = relevant_part(log, logging_exposure, examination, trust)
    propensity = np.maximum(rho_0, clip)
    reward = np.divide(clicks, propensity, out=np.zeros(log.documents), where=(clicks != 0) & (propensity > 0))
    return ExposureObjective(log.offsets, reward / max(log.total_interactions, 1), examination=examination)
