"""What is wrong, or doubtful, about a log: asked of `doctor` before there is any verdict."""

from __future__ import annotations

from dataclasses import dataclass

from saferank.certification.certificate import Doubt
from saferank.certification.checks import Refused
from saferank.data.aggregated_log import AggregatedLog
from saferank.doctor.diagnosis import diagnose

MAY_DRIFT = 2.0
"""Normal deviate of the test of drifting demand from which a ranker that changes is taken to follow demand: lower than
doctor's, because caution costs only width here."""
REPLICATES = 20
"""Of doctor's bootstrap, whose intervals the verdict does not use."""
ELSEWHERE = ("examination", "ranker-follows-demand")
"""Beginnings of the codes of findings that the verdict looks into by itself: see `curves_for`."""
NOT_DOUBTS = ("effective-clicks", "never-shown", "rankings-vary", "repeated-queries", "missing-features")
"""Codes of findings about what can be learned, which a verdict does not depend on."""


@dataclass(frozen=True)
class LogDoubts:
    """What the verdict has to take care of."""

    doubts: tuple[Doubt, ...] = ()
    by_period: bool = False
    """Whether the ranker changed and demand may have too: clicks of different periods must not be compared, neither
    for the logging exposure nor for the examination of ranks."""


def log_doubts(log: AggregatedLog, *, known: bool) -> LogDoubts:
    """Return what doctor finds; raise `Refused` if a finding stands in the way of any verdict.

    `known`: the logging policy is, and then it does not matter how demand changes.
    """
    health = diagnose(log, em=False, replicates=REPLICATES)
    doubts = []
    for finding in health.findings:
        if finding.code.startswith(ELSEWHERE):
            continue
        if finding.blocks:
            raise Refused(f"{finding.text} {finding.remedy}".strip(), code=finding.code, file=log.source)
        if finding.level != "good" and finding.code not in NOT_DOUBTS:
            doubts.append(Doubt(finding.code, finding.text, finding.remedy))
    moved = health.ranker.significant and (health.demand.z > MAY_DRIFT or health.within_periods)
    return LogDoubts(tuple(doubts), by_period=moved and not known)
