"""The health of a log, for learning and for verdicts: its numbers and its findings."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.drift import Drift
from saferank.doctor.earlier_searches import EarlierSearches
from saferank.doctor.effective_size import EffectiveSize
from saferank.doctor.examination_check import ExaminationCheck
from saferank.doctor.feature_columns import FeatureColumns
from saferank.doctor.groups import Group
from saferank.doctor.hidden_context import HiddenContext
from saferank.doctor.high_or_missing import HighOrMissing
from saferank.doctor.hour_of_day import HourOfDay
from saferank.doctor.leaking_features import Leak
from saferank.doctor.list_ends import ListEnds
from saferank.doctor.list_kinds import ListKinds
from saferank.doctor.log_measures import Coverage, Randomness, Traffic
from saferank.doctor.moment import Moment
from saferank.doctor.pinned import Pinned
from saferank.doctor.position_based import PositionBased
from saferank.doctor.ranker_changes import RankerChanges
from saferank.doctor.repeated_impressions import RepeatedImpressions
from saferank.doctor.suspicious_clicks import SuspiciousClicks
from saferank.engine.errors import in_python
from saferank.engine.propensity.examination_estimate import ExaminationEstimate

Level = Literal["good", "caution", "bad"]
NO_VERDICT = "No verdict is possible from this log, because of the findings marked as blocking."


@dataclass(frozen=True)
class Finding:
    """One thing that the log can or cannot support, in plain words."""

    level: Level
    text: str
    remedy: str = ""
    """What to change, mostly in the logging, to support more."""
    code: str = field(kw_only=True)
    """Stable name of its subject, independent of the wording: `demand-drifts`, `bots`."""
    blocks: bool = field(default=False, kw_only=True)
    """Whether it rules out any verdict."""

    def __str__(self) -> str:
        return in_python(f"{self.level}: {self.text} {self.remedy}".strip())


def good(code: str, text: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding("good", text, code=code)


def caution(code: str, text: str, remedy: str) -> Finding:
    """Return a finding to keep in mind."""
    return Finding("caution", text, remedy, code=code)


def blocking(code: str, text: str, remedy: str) -> Finding:
    """Return a finding that keeps a verdict from being given."""
    return Finding("bad", text, remedy, code=code, blocks=True)


@dataclass(frozen=True, eq=False)
class Health:
    """What `diagnose` returns."""

    source: str
    cutoff: int
    period: tuple[str, str] | None
    """First and last timestamp, as text."""
    traffic: Traffic
    shown: NDArray[np.int64]
    """Rank -> documents shown there."""
    clicked: NDArray[np.int64]
    """Rank -> clicks there."""
    given: NDArray[np.float64] | None
    """Examination as the caller gave it."""
    harvested: ExaminationEstimate
    em: ExaminationEstimate | None
    """None if it was not asked for."""
    within_periods: bool
    """Whether examination was harvested within periods, because a document's relevance may differ between them."""
    check: ExaminationCheck
    """The given curve compared with the log; without one, whether the log could check one."""
    periods: tuple[tuple[str, str], ...]
    """First and last moment of each period; empty if the log has no timestamps."""
    demand: Drift
    ranker: Drift
    changes: RankerChanges
    """Of the ranker, as a verdict takes them into account."""
    hours: HourOfDay | None
    """None if the log does not have the hour of the day, or is not longer than two days (periods are then hours)."""
    moment: Moment
    """Whether rankings follow demand from hour to hour, within the stretches of time that a verdict compares."""
    groups: tuple[Group, ...]
    """Whether rankings and demand follow a column of the log, for each column that tells groups of users apart."""
    untested_groups: tuple[str, ...]
    """Columns that may tell groups of users apart, and were tested roughly, or not at all."""
    hidden_context: HiddenContext
    """Whether something that is not in the log decides what is shown and what is wanted."""
    position_based: PositionBased
    personalised: Drift
    """Whether rankings depend on the user."""
    earlier_searches: EarlierSearches
    """Whether clicks, or rankings, depend on earlier searches of the user."""
    list_kinds: ListKinds
    """Whether the lists of a query come in kinds, as filters or second pages make them."""
    high_or_missing: HighOrMissing
    """Whether documents are high in lists or not in them at all, as stock or rules make them."""
    pinned: Pinned
    """Whether results are pinned to a slot."""
    list_ends: ListEnds
    """Whether lists end because of what was clicked."""
    repeated: RepeatedImpressions
    """Whether impressions were logged twice."""
    suspicious: SuspiciousClicks
    randomness: Randomness
    coverage: Coverage | None
    """None without features."""
    columns: FeatureColumns | None
    """None if they were not looked at."""
    leaks: tuple[Leak, ...]
    """Features that know the held-out clicks; none without features."""
    effective: EffectiveSize | None
    """None if examination is neither given nor can be estimated."""
    unit: str | None
    """Column that names users or sessions, if it was named."""
    likely_unit: str | None
    """Column of the log that seems to name users or sessions, if no unit was named."""
    dropped: dict[str, int]
    """Bad rows that were left out, by kind."""
    findings: tuple[Finding, ...] = ()

    @property
    def click_rate(self) -> NDArray[np.float64]:
        """Rank -> clicks per document shown there; NaN where none was."""
        rate: NDArray[np.float64] = np.full(self.cutoff, np.nan)
        np.divide(self.clicked, self.shown, out=rate, where=self.shown > 0)
        return rate

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings that keep a verdict from being given."""
        return tuple(one for one in self.findings if one.blocks)

    @property
    def level(self) -> Level:
        """That of the worst finding."""
        levels: tuple[Level, ...] = ("bad", "caution", "good")
        return next((level for level in levels if any(one.level == level for one in self.findings)), "good")
