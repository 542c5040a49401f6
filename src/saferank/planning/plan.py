"""A plan: for each way to randomise, what it costs and how soon such a log certifies a gain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from saferank.planning.needed_interactions import POWER

GAINS = (0.02, 0.05, 0.10)
RECOMMENDED_GAIN = 0.05
CONFIDENCE = 0.95
"""Of what a way to randomise costs at most."""

WayKind = Literal["as logged", "by score", "temperature", "swap"]


@dataclass(frozen=True)
class Need:
    """What certifying one gain takes."""

    gain: float
    interactions: float
    """Held-out interactions; infinite if no number of them would do, or the gain is out of reach."""
    clip: float | None
    """Largest weight of a click at which so few suffice; None for no clip."""
    days_held_out: float | None
    """Days of the log's own traffic with the held-out share of the split; None if the log has no timestamps."""
    days_all: float | None
    """The same if the whole log is held out, for a candidate that was made elsewhere."""


@dataclass(frozen=True)
class Way:
    """One way to log: what it changes, what it costs, what it brings."""

    kind: WayKind
    amount: float | None
    """The temperature, or the chance of a swap."""
    moved: float
    """Share of the exposure that goes to other documents than in the ranking by score."""
    cost: float
    """Clicks per interaction lost against the log as it is; negative for a gain. The best estimate."""
    cost_at_most: float
    """Its upper confidence limit."""
    relative_cost: float
    relative_cost_at_most: float
    """As shares of the log's clicks."""
    needs: tuple[Need, ...]
    """One for each of the gains."""

    @property
    def name(self) -> str:
        """As a table shows it."""
        if self.amount is None:
            return self.kind
        return f"T = {self.amount:g}" if self.kind == "temperature" else f"swap {self.amount:.0%}"

    @property
    def random(self) -> bool:
        """Whether rankings are varied on purpose."""
        return self.amount is not None

    def need(self, gain: float) -> Need:
        """Return what certifying this gain takes."""
        return next(need for need in self.needs if need.gain == gain)


@dataclass(frozen=True)
class Plan:
    """All ways that were considered, and the one that is recommended."""

    source: str
    interactions: int
    queries: int
    click_rate: float
    """Clicks per interaction of the log: what costs and gains are relative to."""
    cutoff: int
    examination: tuple[float, ...]
    examination_from: str
    scores_from: str
    delta: float
    held_out_share: float
    per_day: float | None
    """Interactions per day; None if the log has no timestamps."""
    most_cost: float
    unreachable: tuple[float, ...]
    """Gains that no ranking of these candidates reaches, as far as the log can tell."""
    ways: tuple[Way, ...]
    notes: tuple[str, ...]
    power: float = POWER
    cost_confidence: float = CONFIDENCE

    @property
    def recommended(self) -> Way | None:
        """The random way within the accepted cost that certifies 5% soonest; None if there is none."""
        fit = [
            way
            for way in self.ways
            if way.random
            and way.relative_cost_at_most <= self.most_cost
            and math.isfinite(way.need(RECOMMENDED_GAIN).interactions)
        ]
        return min(fit, key=lambda way: (way.need(RECOMMENDED_GAIN).interactions, way.cost_at_most), default=None)


def recommendation(plan: Plan) -> str:
    """Return what to do, in a sentence or two."""
    if RECOMMENDED_GAIN in plan.unreachable:
        return (
            f"No plan for a gain of {RECOMMENDED_GAIN:.0%}: as far as this log can tell, no ranking of these candidates "
            "earns so many more clicks. Log more interactions, or add candidates."
        )
    way = plan.recommended
    if way is None:
        cheapest = min((way for way in plan.ways if way.random), key=lambda way: way.relative_cost_at_most)
        return (
            f"No way to randomise costs at most {percent(plan.most_cost)} of the clicks with {plan.cost_confidence:.0%} "
            f"confidence and certifies a gain of {RECOMMENDED_GAIN:.0%}. The cheapest, {what_to_do(cheapest)}, costs at "
            f"most {cheapest.relative_cost_at_most:.2%}: raise --most-cost, or log more."
        )
    need = way.need(RECOMMENDED_GAIN)
    cost = f"it costs at most {max(way.relative_cost_at_most, 0.0):.2%} of the clicks"
    if need.days_held_out is None or need.days_all is None:
        took = f"{whole(need.interactions)} held-out interactions"
        return f"{_sentence(what_to_do(way))}: {cost}, and {took} would certify a gain of {RECOMMENDED_GAIN:.0%}."
    return (
        f"{_sentence(what_to_do(way))}: {cost}, and {days(need.days_held_out)} of such a log would certify a gain of "
        f"{RECOMMENDED_GAIN:.0%} ({days(need.days_all)} for a candidate made elsewhere, with the whole log held out)."
    )


def what_to_do(way: Way) -> str:
    """Return the way as an instruction."""
    if way.kind == "temperature":
        return f"draw rankings with temperature {way.amount:g}"
    if way.kind == "swap":
        return f"swap neighbouring ranks with chance {way.amount:.0%}"
    return "go on as logged" if way.kind == "as logged" else "sort by score"


def days(value: float) -> str:
    """Return a number of days as one reads it.

    >>> days(0.3), days(12.2), days(float("inf"))
    ('less than 1 day', '13 days', 'no number of days')
    """
    if math.isinf(value):
        return "no number of days"
    return "less than 1 day" if value < 1 else f"{whole(value)} day{'s' if math.ceil(value) > 1 else ''}"


def whole(value: float) -> str:
    """Return a number rounded up, to two digits from 100 on: a plan is not more precise.

    >>> whole(12.2), whole(45678.0), whole(float("inf"))
    ('13', '46,000', 'never')
    """
    if math.isinf(value):
        return "never"
    if value < 100:
        return f"{math.ceil(value):,}"
    unit = 10 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit) * unit:,}"


def percent(share: float) -> str:
    """Return a share in percent without needless digits.

    >>> percent(0.01), percent(0.005)
    ('1%', '0.5%')
    """
    return f"{100 * share:g}%"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
