"""A plan: for each way to randomise, what it costs and how soon such a log certifies a gain."""

import math
from dataclasses import dataclass

from saferank.engine.bounds.verdict_choices import POWER
from saferank.plan.exploration_cost import CONFIDENCE
from saferank.plan.randomisation import Kind
from saferank.verdict.certificate import two_digits

GAINS = (0.02, 0.05, 0.10)
RECOMMENDED_GAIN = 0.05
AS_GOOD = 1.25
"""A log that needs up to this many times the interactions counts as good as the recommended one: the numbers are not
more precise."""
MOST_DAYS = 3650.0
"""Ten years: anything longer counts as never."""


@dataclass(frozen=True)
class Need:
    """What certifying one gain takes."""

    gain: float
    interactions: float
    """Held-out interactions; infinite if no number of them is enough, or the gain is out of reach."""
    clip: float | None
    """Largest weight of a click at which so few are enough; None for no clip."""
    days_held_out: float | None
    """Days of the log's own traffic with the held-out share of the split; None if the log has no timestamps."""
    days_all: float | None
    """The same if the whole log is held out, for a ranker that was made elsewhere."""

    @property
    def taken(self) -> float:
        """Days with the held-out share; interactions if the log has no timestamps."""
        return self.interactions if self.days_held_out is None else self.days_held_out

    @property
    def feasible(self) -> bool:
        """Whether this much can be logged: a finite number of interactions, in at most ten years."""
        return math.isfinite(self.interactions) and (self.days_held_out is None or self.days_held_out <= MOST_DAYS)

    @property
    def in_words(self) -> str:
        """How much has to be logged: `13 days`, or without timestamps `46,000 held-out interactions`."""
        return f"{whole(self.taken)} held-out interactions" if self.days_held_out is None else days(self.taken)


@dataclass(frozen=True)
class Way:
    """One way to log: what it changes, what it costs, and how soon it certifies."""

    kind: Kind
    amount: float | None
    """The temperature, or the chance of a swap."""
    moved: float
    """Share of the exposure that goes to other documents than in the ranking by score."""
    cost: float
    """Clicks per interaction lost compared with the current log, best estimate; negative for a gain."""
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
    def instruction(self) -> str:
        """What to do, for the ways that vary rankings."""
        if self.kind == "temperature":
            return f"draw rankings with temperature {self.amount:g}"
        return f"swap neighbouring ranks with probability {self.amount:.0%}"

    @property
    def cells(self) -> list[str]:
        """Name, exposure moved, costs, what each gain takes, and the same in days with the whole log held out."""
        costs = (percent(cost, 2) for cost in (self.relative_cost, self.relative_cost_at_most))
        in_days = [need.days_all for need in self.needs if need.days_all is not None]
        most = MOST_DAYS if in_days else math.inf
        taken = [*(need.taken for need in self.needs), *in_days]
        times = ("> 10 years" if most < number < math.inf else whole(number) for number in taken)
        return [self.name, percent(self.moved, 1), *costs, *times]

    @property
    def random(self) -> bool:
        """Whether rankings are varied on purpose."""
        return self.amount is not None

    @property
    def goal(self) -> Need:
        """What certifying the recommended gain takes."""
        return next(need for need in self.needs if need.gain == RECOMMENDED_GAIN)


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
    """Gains that no ranking of these candidates reaches, as far as the log shows."""
    ways: tuple[Way, ...]
    notes: tuple[str, ...]
    power: float = POWER
    cost_confidence: float = CONFIDENCE

    @property
    def unit(self) -> str:
        """What the time until a gain is certified is counted in."""
        return "interactions" if self.per_day is None else "days"

    @property
    def able(self) -> list[Way]:
        """The random ways that certify 5% in a feasible time."""
        return [way for way in self.ways if way.random and way.goal.feasible]

    @property
    def recommended(self) -> Way | None:
        """The random way within the accepted cost that certifies 5% soonest; None if there is none."""
        affordable = [way for way in self.able if way.relative_cost_at_most <= self.most_cost]
        return min(affordable, key=lambda way: (way.goal.interactions, way.cost_at_most), default=None)

    @property
    def advised(self) -> Way | None:
        """What `recommendation` says: the log as it is, if no random way within the accepted cost is sooner."""
        logged = next(way for way in self.ways if way.kind == "as logged")
        sooner = self.recommended
        return logged if sooner is not None and logged.goal.interactions <= sooner.goal.interactions else sooner


def recommendation(plan: Plan) -> str:
    """Return what to do, in a sentence or two."""
    goal = f"a gain of {RECOMMENDED_GAIN:.0%}"
    if RECOMMENDED_GAIN in plan.unreachable:
        return (
            f"No plan for {goal}: as far as this log shows, no ranking of these candidates earns that many more "
            "clicks. Log more interactions, or add candidates."
        )
    logged, way = next(one for one in plan.ways if one.kind == "as logged").goal, plan.recommended
    if plan.advised is not way:
        return f"Keep logging as now: rankings vary enough, and {logged.in_words} of this log would certify {goal}."
    if not plan.able:
        return f"None of the ways to randomise considered here would certify {goal}."
    if way is None:
        cheapest = min(plan.able, key=lambda way: way.relative_cost_at_most)
        return (
            f"No way to randomise certifies {goal} at a cost of at most {percent(plan.most_cost)} of the clicks. The "
            f"cheapest way that certifies it is to {cheapest.instruction}, which takes "
            f"{cheapest.goal.in_words} and costs at most {cheapest.relative_cost_at_most:.2%} "
            f"(estimate {cheapest.relative_cost:.2%}). Raise --most-cost to accept it."
            + (f" Without any change, it takes {logged.in_words}." if logged.feasible else "")
        )
    need = way.goal
    text = (
        f"{way.instruction[0].upper()}{way.instruction[1:]}. This costs at most "
        f"{max(way.relative_cost_at_most, 0.0):.2%} of the clicks, and {need.in_words} of such a log would certify "
        f"{goal}"
    )
    if need.days_all is not None:
        text += f" ({days(need.days_all)} for a ranker made elsewhere, with the whole log held out)"
    if logged.interactions <= AS_GOOD * need.interactions:
        return f"{text}. But rankings vary enough as they are: without any change, it takes {logged.in_words}."
    return f"{text}."


def assumptions(plan: Plan) -> tuple[str, ...]:
    """Return what the numbers rest on."""
    curve = ", ".join(f"{value:.2g}" for value in plan.examination)
    return (
        f"Scores: {plan.scores_from}. Examination: {plan.examination_from} ({curve}). Clicks are assumed to be "
        "position-based.",
        "To certify a gain means: a policy that is truly that much better, and moves as much exposure as learned "
        f"policies do, is proven better than the current ranker with {1 - plan.delta:.0%} confidence, in "
        f"{plan.power:.0%} of such logs, at the first look. This is a normal approximation, right to within a factor "
        "of a few, not a promise.",
        *(f"As far as the log shows, no ranking of these candidates gains {gain:.0%}." for gain in plan.unreachable),
        "The plan counts clicks of independent interactions: a verdict by users (--unit) or rewards (--reward) may "
        "need far more.",
        "Rankings that never vary leave the examination curve unchecked and are not recommended. Swaps show nothing "
        f"from below rank {plan.cutoff}, so they certify only policies that bring in little from there.",
    )


def days(value: float) -> str:
    """Return a number of days in words: `less than 1 day`, `13 days`, `1,300 days`."""
    return "less than 1 day" if value < 1 else f"{whole(value)} day{'s' if value > 1 else ''}"


def whole(value: float) -> str:
    """Return a number rounded up, to two digits from 100 on: `13`, `46,000`; `never` if it is infinite."""
    return "never" if math.isinf(value) else f"{two_digits(math.ceil(value)):,}"


def percent(share: float, digits: int | None = None) -> str:
    """Return a share in percent, with so many digits, or as few as it has: `0.5%`; never `-0.00%`."""
    if digits is None:
        return f"{100 * share:g}%"
    return f"{round(100 * share, digits) + 0.0:.{digits}f}%"
