"""Expected clicks under a regression of relevance: the direct method."""

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.types.log_statistics import LogStatistics


def direct_method(
    log: LogStatistics, relevance: NDArray[np.float64], examination: NDArray[np.float64]
) -> ExposureObjective:
    """Clicks that a regression R of relevance predicts, each query with its share of the log.

        (1/N) sum_q N_q sum_d rho(d) R(d)

    It uses the log only through N_q and R, so it has little variance, and all the bias that R has. R should be
    cross-fitted: predicted for each query by a regression that did not see the clicks on that query.
    """
    reward = log.interactions[log.query_of_document] * checked_relevance(log, relevance)
    return ExposureObjective(log.offsets, reward / max(log.total_interactions, 1), examination=examination)


def checked_relevance(log: LogStatistics, relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the predicted relevance as float64, or raise unless it is one finite number per document."""
    predicted = np.asarray(relevance, np.float64)
    if predicted.shape != (log.documents,):
        raise UsageError(f"relevance of shape {predicted.shape} for a log of {log.documents} documents.")
    bad = np.flatnonzero(~np.isfinite(predicted))
    if len(bad):
        raise UsageError(f"relevance[{bad[0]}] is {predicted[bad[0]]}, but must be a finite number.")
    return predicted
