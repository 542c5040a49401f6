"""What is wrong with a log, or doubtful: `doctor` is asked before there is any verdict."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import Health
from saferank.doctor.high_or_missing import SIGNIFICANT, missing_share
from saferank.doctor.log_arrays import sampled_impressions, shown_pairs
from saferank.doctor.ranker_changes import RankerChanges
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict.certificate import Doubt
from saferank.verdict.checks import Refused

Floats = NDArray[np.float64]
REPLICATES = 20
"""Of doctor's bootstrap, whose intervals the verdict does not use."""
ELSEWHERE = ("examination", "ranker-follows-demand")
"""Prefixes of the codes of findings that the verdict checks by itself: see `curves_for`."""
BY_HOUR = (
    "ranker-follows-hour",
    "ranker-follows-moment",
    "ranker-by-hour",
    "hour-unchecked",
    "ranker-follows-group",
    "ranker-by-group",
    "hidden-context",
)
"""Codes of findings that do not matter if the logging policy is known."""
LIMITS = ("lists-in-kinds", "high-or-missing", "missing-by-group", "pinned")
"""Codes of findings that something other than the ranker limits what can be shown, or where."""
NOT_DOUBTS = (
    "effective-clicks", "never-shown", "rankings-vary", "repeated-queries", "missing-features", "unmatched-ids",
)  # fmt: skip
"""Codes of findings about what can be learned, which a verdict does not depend on."""


@dataclass(frozen=True, eq=False)
class LogDoubts:
    """What the verdict has to take into account."""

    doubts: tuple[Doubt, ...] = ()
    changes: RankerChanges = RankerChanges()  # noqa: RUF009 (frozen)
    """Of the ranker that made the log; none if it is known."""
    left_out: Floats | None = None
    """Share of the lists that each pair of the log is missing from, where something leaves it out; None if nowhere."""


def log_doubts(
    log: AggregatedLog,
    features: RankingData | None = None,
    *,
    known: bool,
    random_per_unit: bool = False,
    trust_candidates: bool = False,
    given: bool = False,
) -> LogDoubts:
    """Return what doctor finds; raise `Refused` if a finding stands in the way of any verdict.

    `features`: those that the new ranker has, if it has any. `known`: the logging policy is, and then it does not
    matter how demand changes. `random_per_unit`: rankings that depend on the user were drawn at random, not by taste.
    `trust_candidates`: any candidate could be shown in every impression, though it looks otherwise. `given`: the
    examination curve is, and then a position without rows does not matter.
    """
    health = diagnose(log, features, em=False, replicates=REPLICATES)
    doubts = []
    ignored = {*(("personalised", *LIMITS) if random_per_unit else ()), *(BY_HOUR if known else ())}
    ignored |= {"position-without-rows"} if given else set()
    for finding in health.findings:
        if finding.code.startswith(ELSEWHERE) or finding.code in ignored:
            continue
        if finding.blocks and not (trust_candidates and finding.code in LIMITS):
            raise Refused(f"{finding.text} {finding.remedy}".strip(), code=finding.code, file=log.source)
        if finding.level != "good" and finding.code not in NOT_DOUBTS:
            doubts.append(Doubt(finding.code, finding.text, finding.remedy))
    left_out = None if trust_candidates or random_per_unit else _left_out(log, health)
    if known:
        return LogDoubts(tuple(doubts), left_out=left_out)
    if health.changes.come_and_go:
        text = (
            f"{health.changes.gone:.0%} of what was shown goes to documents that were missing for a part of the log "
            "(new products, or out of stock). Where rankings vary enough, the verdict compares within stretches of "
            "time, and credits a new ranker only with documents that were there; what comes and goes within a stretch "
            "is not noticed."
        )
        doubts.append(Doubt("come-and-go", text, "Certify on a shorter log if many products are new."))
    return LogDoubts(tuple(doubts), health.changes, left_out)


def _left_out(log: AggregatedLog, health: Health) -> Floats | None:
    """Return the share of the lists that each pair is missing from, if something seems to leave documents out."""
    found = [group.missing.of_pairs for group in health.groups if group.missing.of_pairs.any()]
    if health.high_or_missing.z > SIGNIFICANT:
        pairs = shown_pairs(log)
        found.append(missing_share(sampled_impressions(log, pairs), pairs, by_period=health.ranker.significant))
    return np.max(found, axis=0) if found else None
