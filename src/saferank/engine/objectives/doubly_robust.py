"""A regression of relevance, corrected by the clicks that it did not predict: doubly robust estimation."""

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.direct_method import checked_relevance
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.types.log_statistics import LogStatistics


def doubly_robust(
    log: LogStatistics,
    relevance: NDArray[np.float64],
    logging_exposure: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    clip: float = 0.0,
) -> ExposureObjective:
    """Doubly robust estimate for position-based clicks (Oosterhuis 2023, without trust bias), R a regression.

        reward(d) = (N_q/N) ( R(d) + (clicks(d) - R(d) examined(d)) / (N_q max(rho_0(d), clip)) )

    examined(d) = sum_k examination[k] shown(d, k). Position-based clicks make it unbiased if rho_0 is the true logging
    exposure, positive wherever rho is, and clip = 0, whatever R is; or if R is the true relevance, whatever rho_0 and
    clip are. In either case R must not depend on the clicks that correct it: cross-fit it. R = 0 gives exposure IPS.
    A document whose max(rho_0, clip) is 0 has no correction: its reward is that of the direct method.
    """
    predicted = checked_relevance(log, relevance)
    propensity = np.maximum(logging_exposure, clip)
    residual = log.clicks - predicted * examined(log, examination)
    # Nothing to correct by is not divided: a propensity close to 0 would make 0 / 0 of it.
    correction = np.divide(residual, propensity, out=np.zeros(log.documents), where=(residual != 0) & (propensity > 0))
    reward = log.interactions[log.query_of_document] * predicted + correction
    return ExposureObjective(log.offsets, reward / max(log.total_interactions, 1), examination=examination)
