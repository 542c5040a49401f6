"""Which interactions are compared, and by which curves: all of a query together, or those of each stretch of time."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.ranker_changes import LEARNING_PARTS, possible_drifts
from saferank.doctor.strata import counts_by_stratum
from saferank.engine.bounds.registry import BOUNDS
from saferank.engine.errors import DataError
from saferank.engine.types.log_statistics import LogStatistics, stacked
from saferank.verdict.checks import Refused
from saferank.verdict.comparison import Rankers
from saferank.verdict.curves import curves_for
from saferank.verdict.judge import DEFAULT_WEIGHT, Judge, prepare_judge
from saferank.verdict.log_doubts import LogDoubts
from saferank.verdict.settings import CertifySettings

Floats = NDArray[np.float64]


def best_judge(
    rankers: Rankers,
    settings: CertifySettings,
    doubts: LogDoubts,
    examination: Floats | None,
    past: Sequence[LogStatistics] = (),
) -> tuple[Judge, bool, NDArray[np.int64]]:
    """Return the judge that expects the higher lower bound, whether it compares by period, and the training queries.

    If the ranker never changed, or is known, all interactions of a query are taken together. If it changed, they are
    separated by the stretches of time in which it did not; or, where neither a drift of demand was found nor documents
    that come and go, taken together with an allowance for what may have been missed. There is a further allowance if it
    follows the hour of the day. `past` logs, each of a ranker that did not change, add to what the examination of the
    ranks is estimated from, unless stretches are separated.
    """
    log, pairs, changes = rankers.log, rankers.pairs, doubts.changes
    any_time = BOUNDS[settings.bound].any_time
    # with an any-time bound the log may grow between looks, and the limit must not depend on it
    limit = (settings.most_weight or DEFAULT_WEIGHT) if any_time else settings.most_weight

    def judge(strata: NDArray[np.int64] | None, *, allow: bool = False) -> tuple[Judge, bool, NDArray[np.int64]]:
        by_period = strata is not None
        learning = counts_by_stratum(log, LEARNING_PARTS, pairs, strata=strata)
        if learning.cells == 0:
            message = "the parts 'train' and 'validation', from which examination is estimated, are empty."
            raise DataError(f"{message} Choose another split, such as 20/20/60.", file=log.source)
        counts = stacked([learning.statistics(), *([] if by_period else past)])
        curves = curves_for(
            counts, examination, trust=settings.trust_examination, within=by_period, fixed=any_time,
            strict=by_period and changes.may_drift, source=log.source,
        )  # fmt: skip
        validation, test = (
            rankers.compare(name, strata, settings.clip, settings.most_per_unit or math.inf)
            for name in ("validation", "certify")
        )
        if test.part.patterns.total_interactions == 0:
            message = "the part 'certify' of the log has no interactions; log more, or choose another split."
            raise DataError(message, file=log.source)
        allowed = changes if allow else replace(changes, stretches=None)
        drifts = possible_drifts(log, pairs, curves.curve, allowed)
        validation, test = (replace(one, drifts=drifts) for one in (validation, test))
        for drift in drifts:
            curves = curves.with_powers(drift.at_most)
        delta = settings.delta * settings.spent
        found = prepare_judge(validation, test, curves, settings.bound, delta, most_weight=limit)
        return found, by_period, np.unique(learning.query)

    if changes.stretches is None:
        return judge(None)
    if changes.may_drift:
        return judge(changes.stretches)
    together = judge(None, allow=True)
    try:
        apart = judge(changes.stretches)
    except Refused:  # within a stretch, rankings do not vary enough to estimate the curve
        return together
    if changes.come_and_go:
        return apart
    return max(apart, together, key=lambda one: one[0].expected_lower)
