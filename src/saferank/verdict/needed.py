"""How much more data would decide, where the held-out part does not yet."""

import math
from statistics import NormalDist

from saferank.engine.bounds.verdict_choices import POWER
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.periods import DAY, seconds_of, span_of
from saferank.verdict.certificate import Needed, Verdict
from saferank.verdict.judge import Judge


def needed_to_decide(judge: Judge, lower: float, upper: float, tolerance: float, log: AggregatedLog) -> Needed | None:
    """Return how many interactions would decide, as widths fall like 1/sqrt(N).

    None if the estimate is within a standard error of what has to be proven.
    """
    curve = judge.curves.curve
    below, above = (judge.comparison.differences(curve, limit) for limit in judge.limits)
    fixed = [judge.comparison.allowance(curve, limit) for limit in judge.limits]  # does not shrink as the log grows
    tolerance = tolerance - fixed[0]
    lower, upper = lower + fixed[0], upper - fixed[1]
    highest = above.mean + judge.comparison.rest(curve, judge.limits[1]) + fixed[0] + fixed[1]
    if below.mean + tolerance > below.standard_error:
        margin, width, error, verdict = below.mean + tolerance, below.mean - lower, below.standard_error, Verdict.DEPLOY
    elif -(highest + tolerance) > above.standard_error:
        margin, width, error, verdict = -(highest + tolerance), upper - highest, above.standard_error, Verdict.KEEP
    else:
        return None
    interactions = below.interactions
    wanted = width + NormalDist().inv_cdf(POWER) * error
    fewest, most = (
        max(math.ceil(interactions * (wanted / (margin + sign * error)) ** 2), interactions + 1) for sign in (0.5, -0.5)
    )
    per_day = _held_out_per_day(log, interactions)
    days = None if per_day is None else (fewest / per_day, most / per_day)
    return Needed(fewest, most, verdict.value, days)


def _held_out_per_day(log: AggregatedLog, interactions: int) -> float | None:
    span, split = span_of(log.manifest.get("period")), log.manifest.get("split") or {}
    if span is None:
        return None
    first, last = span
    if split.get("by") == "until":
        first = max(first, seconds_of(split["until"]) or first)
    seconds = last - first
    if split.get("by") == "time":
        seconds *= float(split["shares"][-1])
    return interactions / (seconds / DAY) if seconds > 0 else None
