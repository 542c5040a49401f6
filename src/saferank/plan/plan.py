"""A plan: for each way to randomise, what it costs and how soon such a log certifies a gain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from saferank.plan.needed_interactions import POWER

GAINS = (0.02, 0.05, 0.10)
RECOMMENDED_GAIN = 0.05
AS_GOOD = 1.25
"""A log that needs so many times as much is as good as the recommended one: such numbers are not more precise."""
CONFIDENCE = 0.95
"""Of what a way to randomise costs at most."""

MOST_DAYS = 3650.0
"""Ten years: what takes longer is as good as never."""

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

    @property
    def taken(self) -> float:
        """Days with the held-out share; interactions if the log has no timestamps."""
        return self.interactions if self.days_held_out is None else self.days_held_out

    @property
    def feasible(self) -> bool:
        """Whether so much can be logged: a finite number of interactions, in ten years at most."""
        return math.isfinite(self.interactions) and (self.days_held_out is None or self.days_held_out <= MOST_DAYS)


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
            if way.random and way.relative_cost_at_most <= self.most_cost and way.need(RECOMMENDED_GAIN).feasible
        ]
        return min(fit, key=lambda way: (way.need(RECOMMENDED_GAIN).interactions, way.cost_at_most), default=None)


def recommendation(plan: Plan) -> str:
    """Return what to do, in a sentence or two."""
    if RECOMMENDED_GAIN in plan.unreachable:
        return (
            f"No plan for a gain of {RECOMMENDED_GAIN:.0%}: as far as this log can tell, no ranking of these "
            "candidates earns so many more clicks. Log more interactions, or add candidates."
        )
    way = plan.recommended
    if way is None:
        return _too_costly(plan)
    need, cost = way.need(RECOMMENDED_GAIN), max(way.relative_cost_at_most, 0.0)
    logged = next(one for one in plan.ways if one.kind == "as logged").need(RECOMMENDED_GAIN)
    if need.days_held_out is None or need.days_all is None:
        took, elsewhere = f"{whole(need.interactions)} held-out interactions", ""
        as_now = f"{whole(logged.interactions)} interactions"
    else:
        took, as_now = days(need.days_held_out), days(logged.days_held_out or 0.0)
        elsewhere = f" ({days(need.days_all)} for a candidate made elsewhere, with the whole log held out)"
    does_too = f" The log as it is varies enough: it takes {as_now} without any change."
    return (
        f"{_sentence(what_to_do(way))}: it costs at most {cost:.2%} of the clicks, and {took} of such a log would "
        f"certify a gain of {RECOMMENDED_GAIN:.0%}{elsewhere}."
    ) + (does_too if logged.interactions <= AS_GOOD * need.interactions else "")


def _too_costly(plan: Plan) -> str:
    able = [way for way in plan.ways if way.random and way.need(RECOMMENDED_GAIN).feasible]
    goal = f"a gain of {RECOMMENDED_GAIN:.0%}"
    if not able:
        return f"No way to randomise that was considered would certify {goal}."
    cheapest = min(able, key=lambda way: way.relative_cost_at_most)
    need = cheapest.need(RECOMMENDED_GAIN)
    took = f"{whole(need.interactions)} interactions" if need.days_held_out is None else days(need.days_held_out)
    return (
        f"No way to randomise certifies {goal} and costs at most {percent(plan.most_cost)} of the clicks. The cheapest "
        f"that certifies it: {what_to_do(cheapest)}, which takes {took} and costs at most "
        f"{cheapest.relative_cost_at_most:.2%} (estimate {cheapest.relative_cost:.2%}). Raise --most-cost to accept it."
    )


def what_to_do(way: Way) -> str:
    """Return the way as an instruction."""
    if way.kind == "temperature":
        return f"draw rankings with temperature {way.amount:g}"
    if way.kind == "swap":
        return f"swap neighbouring ranks with chance {way.amount:.0%}"
    return "go on as logged" if way.kind == "as logged" else "sort by score"


def assumptions(plan: Plan) -> tuple[str, ...]:
    """Return what the numbers rest on."""
    curve = ", ".join(f"{value:.2g}" for value in plan.examination)
    return (
        f"Scores: {plan.scores_from}. Examination: {plan.examination_from} ({curve}); users are taken to be "
        "position-based.",
        "To certify: a policy that is truly so much better, and moves as much as learned policies do, is proven "
        f"better than the ranker of this log with {1 - plan.delta:.0%} confidence, {plan.power:.0%} of the time, at a "
        "single look (normal approximation: a guide to within a factor of a few, not a promise).",
        *(
            f"A gain of {gain:.0%}: as far as the log can tell, no ranking of these candidates reaches it."
            for gain in plan.unreachable
        ),
        "Rankings that never vary leave the examination curve unchecked and are not recommended. Swaps show nothing "
        f"from beyond rank {plan.cutoff}: they certify only policies that bring in little from there.",
    )


def takes(need: Need) -> str:
    """Return days (or interactions) as a table shows them: rounded up, at most two digits."""
    if need.days_held_out is not None and MOST_DAYS < need.days_held_out < math.inf:
        return "> 10 years"
    return whole(need.taken)


def days(value: float) -> str:
    """Return a number of days as one reads it.

    >>> days(0.3), days(12.2), days(1234.0)
    ('less than 1 day', '13 days', '1,300 days')
    """
    return "less than 1 day" if value < 1 else f"{whole(value)} day{'s' if value > 1 else ''}"


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


def percent(share: float, digits: int | None = None) -> str:
    """Return a share in percent, with so many digits, or no needless ones.

    >>> percent(0.01), percent(0.005), percent(-1e-9, 2)
    ('1%', '0.5%', '0.00%')
    """
    if digits is None:
        return f"{100 * share:g}%"
    return f"{round(100 * share, digits) + 0.0:.{digits}f}%"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
