"""What is wrong with a log, or doubtful: `doctor` is asked before there is any verdict."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.come_and_go import come_and_go
from saferank.doctor.diagnosis import diagnose
from saferank.doctor.drift import ranker_moved
from saferank.doctor.log_arrays import PeriodCounts, period_counts, shown_pairs
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict.certificate import Doubt
from saferank.verdict.checks import Refused

MAY_DRIFT = 2.0
"""Normal deviate of the test of drifting demand from which a ranker that changes is taken to follow demand: lower than
doctor's, because caution costs only width here."""
MOST_COME_AND_GO = 0.025
"""Share of what was shown on documents that come and go up to which they do not matter. Without any, rankers that were
trained anew and draw their rankings had at most 0.017."""
REPLICATES = 20
"""Of doctor's bootstrap, whose intervals the verdict does not use."""
ELSEWHERE = ("examination", "ranker-follows-demand")
"""Prefixes of the codes of findings that the verdict checks by itself: see `curves_for`."""
BY_HOUR = (
    "ranker-follows-hour",
    "ranker-by-hour",
    "hour-unchecked",
    "ranker-follows-group",
    "ranker-by-group",
    "hidden-context",
)
"""Codes of findings that do not matter if the logging policy is known."""
KINDS = "lists-in-kinds"
NOT_DOUBTS = (
    "effective-clicks", "never-shown", "rankings-vary", "repeated-queries", "missing-features", "unmatched-ids",
)  # fmt: skip
"""Codes of findings about what can be learned, which a verdict does not depend on."""


@dataclass(frozen=True, eq=False)
class LogDoubts:
    """What the verdict has to take into account."""

    doubts: tuple[Doubt, ...] = ()
    stretches: NDArray[np.int64] | None = None
    """Period -> number of the stretch of time that it belongs to, in each of which the ranker was the same; None if it
    never changed, or is known."""
    by_hour: bool = False
    """Whether rankings depend on the hour of the day, so that the bounds have to allow for demand that does too."""
    may_drift: bool = False
    """Whether demand seems to have changed too: then clicks of different stretches must not be compared."""
    come_and_go: bool = False
    """Whether documents were not there in some stretches: a new ranker could not have shown them then either."""


def log_doubts(
    log: AggregatedLog,
    features: RankingData | None = None,
    *,
    known: bool,
    random_per_unit: bool = False,
    trust_candidates: bool = False,
) -> LogDoubts:
    """Return what doctor finds; raise `Refused` if a finding stands in the way of any verdict.

    `features`: those that the new ranker has, if it has any. `known`: the logging policy is, and then it does not
    matter how demand changes. `random_per_unit`: rankings that depend on the user were drawn at random, not by taste.
    `trust_candidates`: any candidate could be shown in every impression, though lists come in kinds.
    """
    health = diagnose(log, features, em=False, replicates=REPLICATES)
    doubts = []
    ignored = {*(("personalised", KINDS) if random_per_unit else ()), *(BY_HOUR if known else ())}
    for finding in health.findings:
        if finding.code.startswith(ELSEWHERE) or finding.code in ignored:
            continue
        if finding.blocks and not (trust_candidates and finding.code == KINDS):
            raise Refused(f"{finding.text} {finding.remedy}".strip(), code=finding.code, file=log.source)
        if finding.level != "good" and finding.code not in NOT_DOUBTS:
            doubts.append(Doubt(finding.code, finding.text, finding.remedy))
    by_hour = not known and health.hours is not None and health.hours.ranker.significant
    if known or not health.ranker.significant:
        return LogDoubts(tuple(doubts), by_hour=by_hour)
    pairs = shown_pairs(log)
    counts = period_counts(log, pairs)
    stretches = steady_stretches(counts)
    may_drift = health.demand.z > MAY_DRIFT or health.within_periods
    share = come_and_go(counts, stretches)
    if share > MOST_COME_AND_GO:
        text = (
            f"{share:.0%} of what was shown goes to documents that were missing for a part of the log (new products, "
            "or out of stock). Where rankings vary enough, the verdict compares within stretches of time, and credits "
            "a new ranker only with documents that were there; what comes and goes within a stretch is not noticed."
        )
        doubts.append(Doubt("come-and-go", text, "Certify on a shorter log if many products are new."))
    return LogDoubts(tuple(doubts), stretches, by_hour, may_drift, share > MOST_COME_AND_GO)


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
