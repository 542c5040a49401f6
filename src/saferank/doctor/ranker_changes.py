"""How the ranker changed while the log was written, and what a verdict on such a log compares."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.come_and_go import come_and_go
from saferank.doctor.drift import FEW_REPEATED, Drift, demand_drift, ranker_moved
from saferank.doctor.hour_of_day import HourOfDay, hour_of_day
from saferank.doctor.log_arrays import PeriodCounts, period_counts, sampled_impressions
from saferank.doctor.moment import Moment, follows_moment
from saferank.doctor.possible_drift import PossibleDrift, possible_drift, possible_drift_by_hour
from saferank.doctor.strata import StratumCounts, counts_by_stratum
from saferank.engine.propensity.examination_estimate import FEW_QUERIES, ExaminationEstimate, estimate_examination
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog

Floats = NDArray[np.float64]
LEARNING_PARTS = ("train", "validation")
MAY_DRIFT = 2.0
"""Normal deviate of the test of drifting demand from which a ranker that changes is taken to follow demand: lower than
doctor's, because caution costs only width here."""
MAY_FOLLOW = 3.0
"""The same of the test of rankings that follow the moment."""
MOST_COME_AND_GO = 0.025
"""Share of what was shown on documents that come and go up to which they do not matter. Without any, rankers that were
trained anew and draw their rankings had at most 0.017."""


@dataclass(frozen=True, eq=False)
class RankerChanges:
    """What a verdict has to take into account."""

    stretches: NDArray[np.int64] | None = None
    """Period -> number of the stretch of time that it belongs to, in each of which the ranker was the same; None if it
    never changed, or is known."""
    by_hour: bool = False
    """Whether rankings depend on the hour of the day, so that the bounds have to allow for demand that does too."""
    may_drift: bool = False
    """Whether demand seems to have changed too: then clicks of different stretches must not be compared."""
    gone: float = 0.0
    """Share of what was shown on documents that come and go."""

    @property
    def none(self) -> bool:
        """Whether there is nothing to take into account."""
        return self.stretches is None and not self.by_hour

    @property
    def come_and_go(self) -> bool:
        """Whether documents were not there in some stretches: a new ranker could not have shown them then either."""
        return self.gone > MOST_COME_AND_GO


def ranker_changes(
    counts: PeriodCounts, demand: Drift, ranker: Drift, hours: HourOfDay | None, moment: Moment
) -> RankerChanges:
    """Return how the ranker changed, given the tests of the same log; `moment`: that of all stretches together."""
    by_hour = hours is not None and hours.ranker.significant
    if not ranker.significant:
        return RankerChanges(by_hour=by_hour)
    stretches = steady_stretches(counts)
    may_drift = demand.z > MAY_DRIFT or demand.repeated < FEW_REPEATED or moment.z > MAY_FOLLOW
    return RankerChanges(stretches, by_hour, may_drift, come_and_go(counts, stretches))


def changes_of(log: AggregatedLog, pairs: RankingData) -> RankerChanges:
    """Return how the ranker changed; `pairs` holds all that the log shows."""
    counts, sample = period_counts(log, pairs), sampled_impressions(log, pairs)
    hours, moment = hour_of_day(sample, pairs, log.cutoff), follows_moment(sample, pairs)
    return ranker_changes(counts, demand_drift(counts), ranker_moved(counts), hours, moment)


def steady_stretches(counts: PeriodCounts) -> NDArray[np.int64]:
    """Number the stretches of time, each of consecutive periods, in which the ranker did not change.

    The log is cut where it changed most, and each half again, until no change is significant.
    """
    starts: list[int] = [0]

    def cut(first: int, last: int) -> None:
        if last - first < 2:
            return
        inside = counts.of((counts.period >= first) & (counts.period < last))
        found = ranker_moved(replace(inside, period=inside.period - first, periods=last - first))
        if found.significant and found.boundary is not None:
            starts.append(first + found.boundary)
            cut(first, first + found.boundary)
            cut(first + found.boundary, last)

    cut(0, counts.periods)
    return np.searchsorted(np.sort(starts), np.arange(counts.periods), side="right") - 1


@dataclass(frozen=True, eq=False)
class Compared:
    """The interactions of a part of a log as a verdict compares them."""

    counts: StratumCounts
    drifts: tuple[PossibleDrift, ...]
    """What it allows for, of each pair."""


def compared(
    log: AggregatedLog,
    pairs: RankingData,
    examination: Floats,
    changes: RankerChanges,
    part: tuple[str, ...],
    *,
    times: float = 1.0,
) -> tuple[Compared, ...]:
    """Return what a verdict on `part` may compare: stretches of time apart, all together with an allowance, or both.

    Of both it takes the one with the higher expected lower bound. `pairs` and `times` are as for `possible_drifts`.
    """

    def by(strata: NDArray[np.int64] | None, allowed: RankerChanges) -> Compared:
        counts = counts_by_stratum(log, part, pairs, strata=strata)
        return Compared(counts, possible_drifts(log, pairs, examination, allowed, part, times=times))

    if changes.stretches is None:
        return (by(None, changes),)
    apart = by(changes.stretches, replace(changes, stretches=None))
    if changes.may_drift:
        return (apart,)
    learning = counts_by_stratum(log, LEARNING_PARTS, pairs, strata=changes.stretches)
    varies = learning.cells > 0  # within a stretch, rankings have to vary enough to estimate the curve
    if varies and log.cutoff > 1:
        varies = can_rest_on(estimate_examination(learning.statistics(), np.random.default_rng(0)))
    if varies and changes.come_and_go:
        return (apart,)
    together = by(None, changes)
    return (apart, together) if varies else (together,)


def can_rest_on(estimate: ExaminationEstimate) -> bool:
    """Whether a verdict can rest on an estimated curve: it is complete, and has a confidence set."""
    return estimate.complete and estimate.log_covariance is not None and estimate.queries >= FEW_QUERIES


def possible_drifts(
    log: AggregatedLog,
    pairs: RankingData,
    examination: Floats,
    changes: RankerChanges,
    part: tuple[str, ...] = ("certify",),
    *,
    times: float = 1.0,
) -> tuple[PossibleDrift, ...]:
    """Return what to allow for if all stretches are taken together, `part` being held out.

    `pairs` holds all that the log shows. `times`: how many times the pairs of clicks of `log` the verdict will have.
    """
    found = []
    if changes.stretches is not None:
        whole, held = (counts_by_stratum(log, parts, pairs, strata=changes.stretches) for parts in (PARTS, part))
        found.append(possible_drift(whole, held, examination, pairs.documents, times=times))
    if changes.by_hour:
        found.append(possible_drift_by_hour(log, pairs, examination, times=times))
    return tuple(found)
