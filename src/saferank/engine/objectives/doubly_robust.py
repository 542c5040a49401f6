"""A regression of relevance, corrected by the clicks that it did not predict: doubly robust estimation."""

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.direct_method import checked_relevance
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.propensity.logged_trust import LoggedTrust, relevant_part
from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.types.log_statistics import LogStatistics


def doubly_robust(
    log: LogStatistics,
    relevance: NDArray[np.float64],
    logging_exposure: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    clip: float = 0.0,
    trust: LoggedTrust | None = None,
) -> ExposureObjective:
    """Doubly robust estimate (Oosterhuis, TOIS 2023), R a regression of relevance.

        reward(d) = (N_q/N) ( R(d) + (clicks(d) - R(d) examined(d)) / (N_q max(rho_0(d), clip)) )

    examined(d) = sum_k examination[k] shown(d, k). Position-based clicks make it unbiased if rho_0 is the true logging
    exposure, positive wherever rho is, and clip = 0, whatever R is; or if R is the true relevance, whatever rho_0 and
    clip are. In either case R must not depend on the clicks that correct it: cross-fit it. R = 0 gives exposure IPS.
    A document whose max(rho_0, clip) is 0 has no correction: its reward is that of the direct method. With trust bias,
    clicks, rho_0, and alpha in place of examination in examined(d), are those of `relevant_part`.
    """
    predicted = checked_relevance(log, relevance)
    clicks, rho_0, alpha = relevant_part(log, logging_exposure, examination, trust)
    propensity = np.maximum(rho_0, clip)
    residual = clicks - predicted * examined(log, alpha)
    # Nothing to correct by is not divided: a propensity close to 0 would make 0 / 0 of it.
    correction = np.divide(residual, propensity, out=np.zeros(log.documents), where=(residual != 0) & (propensity > 0))
    reward = log.interactions[log.query_of_document] * predicted + correction
    return ExposureObjective(log.offsets, reward / max(log.total_interactions, 1), examination=examination)
