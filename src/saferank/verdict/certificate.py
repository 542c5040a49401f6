"""The verdict and what it rests on, kept in one JSON file."""

import json
import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator

from saferank.engine.errors import in_python
from saferank.files.atomic_write import whole_file
from saferank.files.json_format import FileFormat, finite


def _to_version_2(values: dict[str, Any]) -> dict[str, Any]:
    """Add what version 1 left out: it spent all of delta on one look, and took the examination as given."""
    unsaid = {"examination": {"kind": "not recorded", "curve": []}, "without_features": {}, "most_weight": None}
    covers = "the traffic of the held-out part"
    return {"spent": values["delta"], "look": 1, "strata": "query", "covers": covers} | unsaid | values


FORMAT = FileFormat("saferank-certificate", 2, "certify", "certify again", (_to_version_2,))
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
"""JSON has null for numbers that are not finite."""
CLEARLY_WORSE = 2.0
"""An estimate at least this many standard errors below 0 is not noise."""
MUCH_UNSUPPORTED = 0.1
"""Above this share of new exposure on documents that were not shown, it is the reason for MORE DATA."""


class Verdict(StrEnum):
    """What to do with the new policy, equal to its text; the exit code is for a pipeline."""

    DEPLOY = "DEPLOY"
    KEEP = "KEEP"
    MORE_DATA = "MORE DATA"

    @property
    def exit_code(self) -> int:
        """0: the new policy may go live; 3: keep the current one; 4: not known yet."""
        return {Verdict.DEPLOY: 0, Verdict.KEEP: 3, Verdict.MORE_DATA: 4}[self]


@dataclass(frozen=True)
class BoundRow:
    """The bounds of the improvement by one method, for comparison."""

    name: str
    lower: Number
    upper: Number
    guarantee: bool
    any_time: bool


@dataclass(frozen=True)
class SegmentRow:
    """The improvement in one segment; the intervals of all segments hold simultaneously."""

    segment: str
    interactions: int
    improvement: Number
    lower: Number
    upper: Number

    @property
    def name(self) -> str:
        """As a table shows it."""
        return self.segment or "(none)"

    @property
    def outcome(self) -> str:
        """Whether the segment gains or loses, or the interval leaves it undecided."""
        return "loses" if self.upper < 0 else "gains" if self.lower > 0 else "undecided"


@dataclass(frozen=True)
class CurveRow:
    """What the verdict would be with another examination curve."""

    curve: str
    last: float
    """Examination of the last rank, relative to the first."""
    improvement: Number
    lower: Number
    verdict: str


@dataclass(frozen=True)
class FlatterRow:
    """The same policy with its scores divided by a temperature: its rankings vary more, and it may go live too."""

    temperature: float
    improvement: Number
    lower: Number


@dataclass(frozen=True)
class Doubt:
    """A finding of `doctor` to keep in mind when reading the verdict."""

    code: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return in_python(f"{self.text} {self.remedy}".strip())


@dataclass(frozen=True)
class Needed:
    """How many interactions it would take to decide."""

    fewest: int
    most: int
    """Held-out interactions, if the improvement is half a standard error larger or smaller than estimated."""
    verdict: str
    """The verdict that they would give."""
    days: tuple[float, float] | None = None
    """Days of logging for `fewest` and `most`, with the traffic of the log."""


@dataclass(frozen=True, repr=False)
class Certificate:
    """Whether the policy may replace the one that made the log.

    Utilities are in clicks per interaction or, if the log has a reward, in its unit.
    """

    verdict: Verdict
    improvement: Number
    """The estimate of U(new) - U(logging)."""
    lower: Number
    upper: Number
    """Bounds of the improvement, each at level `spent`."""
    delta: float
    """Largest probability of a wrong DEPLOY, over all looks at this data."""
    spent: float
    """The part of delta that this look uses."""
    look: int
    """Number of this look at this data, from 1."""
    tolerance: float
    bound: str
    serve_as: str
    interactions: int
    click_rate: float
    """Clicks per interaction of the logging policy, in the held-out part."""
    logging_exposure: str
    """`known`, or `counted` in the held-out part."""
    strata: str
    """What exposure was counted by: `query`, or `query and period`."""
    examination: dict[str, Any]
    """`kind`, `curve`, and `worst`: the curve with the lowest bound."""
    effective_clicks: float
    """Kish's effective number of the weighted clicks."""
    unsupported_exposure: float
    """Share of the new policy's exposure on documents that the held-out part does not show."""
    without_features: dict[str, float]
    """Shares of the held-out part: `clicks` and `exposure` on documents that the new ranker cannot show, and
    `interactions` of queries that it does not rank."""
    covers: str
    """The traffic that the promise covers."""
    low: Number
    high: Number
    """Limits of one interaction's term."""
    most_weight: Number
    """Larger weights were lowered to this value, which was chosen on the validation part."""
    standard_error: Number = math.nan
    drift_allowance: float = 0.0
    """Clicks per interaction by which the bounds allow for drift of demand that the log cannot exclude."""
    independence: str | None = None
    """Why a ranker made elsewhere is independent of the held-out part: `trained-until`, because it saw nothing after
    the moment in `trained_until` and only later interactions are evaluated; or `stated` by its maker. None for a
    model."""
    trained_until: str | None = None
    needed: Needed | None = None
    """If the verdict is MORE DATA, and the estimate is not within the noise."""
    unit: str | None = None
    most_per_unit: int | None = None
    """Interactions that a unit counts with at most; all of them if None."""
    reward: str | None = None
    bounds: tuple[BoundRow, ...] = ()
    delta_dial: tuple[tuple[float, float], ...] = ()
    """(delta, lower bound) for other values of delta; they do not affect the verdict."""
    other_curves: tuple[CurveRow, ...] = ()
    segments: tuple[SegmentRow, ...] = ()
    traffic: tuple[SegmentRow, ...] = ()
    """The improvement in queries that occur in the training parts, and in new ones."""
    exploration: tuple[FlatterRow, ...] = ()
    """Flatter policies that the same look proves, if `explore` was set; the last one is the flattest."""
    doubts: tuple[Doubt, ...] = ()
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    inputs: dict[str, Any] = field(default_factory=dict)
    """Hashes, counts and splits of the model, the log and the features."""
    saferank: str = ""
    created: str = ""

    def __repr__(self) -> str:
        bounds = f"improvement={self.improvement:.5g}, lower={self.lower:.5g}, upper={self.upper:.5g}"
        return f"Certificate({self.verdict.value}, {bounds}, interactions={self.interactions})"

    @property
    def relative(self) -> tuple[float, float, float]:
        """Improvement, lower and upper bound as shares of the logging policy's click rate; NaN if that is 0.

        No ranker can lose more than all clicks, so the lower bound is at least -1.
        """
        scale = self.click_rate or math.nan
        return self.improvement / scale, max(self.lower / scale, -1.0), self.upper / scale

    @property
    def temperature(self) -> float:
        """The highest temperature that is proven; 1 is the unchanged policy."""
        return self.exploration[-1].temperature if self.exploration else 1.0

    @property
    def needed_interactions(self) -> int | None:
        """How many held-out interactions would probably decide: the middle of `needed`, None if it is unknown."""
        return None if self.needed is None else round(math.sqrt(self.needed.fewest * self.needed.most))

    @property
    def unchecked(self) -> bool:
        """Whether the verdict rests on an examination curve that the log could not check."""
        return bool(self.examination.get("unchecked"))

    def write(self, path: str | Path) -> None:
        """Write the JSON file, atomically."""
        values = FORMAT.marked(
            asdict(self) | {"verdict": self.verdict.value, "needed_interactions": self.needed_interactions}
        )
        with whole_file(Path(path)) as unfinished:
            unfinished.write_text(json.dumps(finite(values), indent=2, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read what `write` wrote."""
        return FORMAT.read_as(Path(path), cls)


def meaning(certificate: Certificate) -> str:
    """Return the verdict in one or two sentences."""
    sure = f"With {confidence(certificate.delta)} confidence, the new ranker"
    what = "clicks" if certificate.reward is None else certificate.reward
    at_least, fewer = ("as many", "fewer") if certificate.reward is None else ("as much", "less")
    less = f" minus {certificate.tolerance:g} per interaction" if certificate.tolerance else ""
    if certificate.most_per_unit is not None:
        less += f", if no {certificate.unit} counts with more than {certificate.most_per_unit:,} interactions"
    if certificate.lower == certificate.upper == 0.0:
        return "Nothing changes: the new ranker shows what the current one shows, as often at each rank."
    if certificate.verdict is Verdict.DEPLOY:
        return f"{sure} earns at least {at_least} {what} as the current one{less}."
    if certificate.verdict is Verdict.KEEP:
        return f"{sure} earns {fewer} {what} than the current one{less}."
    needed = certificate.needed
    without = certificate.lower + certificate.drift_allowance
    if needed is None and without >= -certificate.tolerance:
        return (
            "Not decided, because the ranker changed over the days or hours of the log: the bounds allow for drift of "
            f"demand, by {certificate.drift_allowance:.3g} {what} per interaction. Without that, the lower bound would "
            f"be about {without:+.3g}. Rankings drawn at random from the same scores need no such allowance."
        )
    if needed is None and certificate.unsupported_exposure > MUCH_UNSUPPORTED:
        return (
            f"Not decided. {certificate.unsupported_exposure:.0%} of what the new ranker shows never appears in the "
            "held-out part, so the log says nothing about it."
        )
    if needed is None and certificate.improvement < -CLEARLY_WORSE * certificate.standard_error:
        return (
            f"Not decided, but the new ranker looks worse: {certificate.relative[0]:+.1%} {what}. Only documents that "
            "this log hardly ever shows could make up for that, and more of the same log would not show them."
        )
    if needed is None:
        return f"Not decided. There is no sign of a difference in {what}: the estimate is within the noise."
    days = ""
    if needed.days is not None:
        days = f" ({_range(*(max(round(day), 1) for day in needed.days))} days of logging in all)"
    how_many = _range(two_digits(needed.fewest), two_digits(needed.most))
    return (
        f"Not decided. If the estimate is about right, {how_many} held-out interactions{days} "
        f"would probably be enough for {needed.verdict}; there are {certificate.interactions:,} now."
    )


def confidence(delta: float) -> str:
    """Return 1 - delta in percent, not rounded up to certainty.

    >>> confidence(0.05), confidence(0.001)
    ('95%', '99.9%')
    """
    digits = max(6, 2 - math.floor(math.log10(delta)))
    return f"{100.0 * (1.0 - delta):.{digits}g}%"


def _range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def two_digits(number: int) -> int:
    """Return the number rounded up to two digits, because a forecast is no more precise than that."""
    unit: int = 10 ** max(len(str(number)) - 2, 0)
    return -(-number // unit) * unit
