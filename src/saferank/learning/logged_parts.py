"""The parts of a log that a policy is learned from, with what the logging policy showed."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.doctor.ranker_changes import LEARNING_PARTS, Compared, changes_of, compared
from saferank.engine.bounds.verdict_choices import RANGE
from saferank.engine.errors import DataError
from saferank.engine.objectives.risk import Risk
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.list_lengths import ListLengths
from saferank.learning.methods import LoggedPart
from saferank.logs.aggregated_log import AggregatedLog

USED_PARTS = LEARNING_PARTS


def logged_parts(
    data: RankingData,
    train: LogStatistics,
    validation: LogStatistics,
    examination: NDArray[np.float64],
    risk: Risk = Risk(),  # noqa: B008 (frozen)
    logging_scores: NDArray[np.float32] | None = None,
) -> tuple[LoggedPart, LoggedPart]:
    """Return both parts of a log with the logging exposure of both together.

    They are of the same queries, and one policy showed the documents, so where its scores are not known its exposure
    is counted from both: more data, and no document that one part shows counts as never shown in the other.
    """
    for name, log in zip(USED_PARTS, (train, validation), strict=True):
        if log.total_interactions == 0:
            raise DataError(f"part '{name}' of the log has no interaction with these queries; log more of them.")
        if log.clicks.sum() == 0:
            raise DataError(f"part '{name}' of the log has no click on these documents; there is nothing to learn.")
    examination = np.asarray(examination, np.float64)
    curves = examination, examination ** (1.0 - RANGE)
    both = train.merge(validation)
    if logging_scores is None:
        logging_exposure, flatter = (estimated_logging_exposure(both, curve) for curve in curves)
    else:
        lengths = ListLengths.of(both)
        logging_exposure, flatter = (lengths.exposure(logging_scores, curve) for curve in curves)
    first, second = (
        LoggedPart(
            data,
            log,
            examination,
            logging_exposure,
            risk=risk,
            flatter_exposure=flatter,
            known=logging_scores is not None,
            verdict_interactions=validation.total_interactions,
        )
        for log in (train, validation)
    )
    return first, second


def judged_parts(log: AggregatedLog, data: RankingData, examination: NDArray[np.float64]) -> tuple[Compared, ...]:
    """Return what a verdict may compare, if the ranker changed, as seen in the parts that are learned from.

    The validation part stands in for the held-out one. Parts that are drawn at random share their days, so that pairs
    of clicks of a day grow with the square of the interactions; those of further days or queries are added.
    """
    used = log.of(USED_PARTS, data)
    changes = changes_of(used, data)
    if changes.none:
        return ()
    every, learned_from = (pc.sum(one.patterns["interactions"]).as_py() for one in (log, used))
    apart = (log.manifest.get("split") or {}).get("by") in ("time", "until", "query")
    times = (every / learned_from) ** (1 if apart else 2)
    return compared(used, data, examination, changes, ("validation",), times=times)
