"""What is wrong, or doubtful, about a log: asked of `doctor` before there is any verdict."""

from __future__ import annotations

from dataclasses import dataclass

from saferank.certification.certificate import Doubt
from saferank.data.aggregated_log import AggregatedLog


@dataclass(frozen=True)
class LogDoubts:
    """What the verdict has to take care of."""

    doubts: tuple[Doubt, ...] = ()
    by_period: bool = False
    """Whether logging exposure has to be counted within periods, because the ranker changed."""
    within_periods: bool = False
    """Whether examination has to be estimated within periods, because demand changed and the ranker followed."""


def log_doubts(log: AggregatedLog, *, known: bool, trust: bool) -> LogDoubts:
    """Return what doctor finds; raise `Refused` if a finding stands in the way of any verdict."""
    return LogDoubts()
