"""The examination curves that a verdict has to hold for."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.examination_check import examination_check
from saferank.doctor.ranker_changes import can_rest_on
from saferank.engine.bounds.verdict_choices import RANGE
from saferank.engine.propensity.examination_estimate import estimate_examination
from saferank.engine.types.log_statistics import LogStatistics
from saferank.verdict.checks import Refused

Floats = NDArray[np.float64]
CURVE_SHARE = 0.2
"""Share of delta that is spent on the curve where it is estimated."""
OTHER_POWERS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Powers of the curve for which the certificate reports what the verdict would be."""
IMPOSSIBLE = 5.0
"""Standard errors by which click-through at a rank must exceed its examination before the curve is impossible."""
STEP = 1e-3
"""In log examination, for the derivative of the estimate."""

REMEDY = (
    "Rankings have to vary within the day: draw some of them at random (`saferank plan` shows how many). If you know "
    "the curve, give it with --examination and --trust-examination."
)
UNKNOWN = (
    "the log does not show how often each rank is examined: too few documents or queries have clicks at several ranks."
)
FOLLOWS_DEMAND = (
    "demand changes over time and the ranker follows it, so clicks of different days cannot be compared, and within a "
    "day rankings hardly vary. The log does not show how often each rank is examined."
)
ONE_RANK = "one rank only"
ESTIMATED, CONFIRMS = "estimated", "estimated, and the given one agrees"
AGREES, UNCHECKED = "given, and the log agrees", "given, and the log cannot check it"


@dataclass(frozen=True, eq=False)
class Curves:
    """A curve, and how wrong it may be."""

    kind: str
    curve: Floats
    """1 at rank 1."""
    covariance: Floats | None = None
    """Of the logarithm of `curve`; None if it is not estimated."""
    others: tuple[Floats, ...] = ()
    """Further curves that the verdict has to hold for."""

    def share(self) -> float:
        """Share of delta that goes to the curve."""
        return 0.0 if self.covariance is None else CURVE_SHARE

    def with_powers(self, power: float) -> Self:
        """Return the curves with two more to hold for: this one so much flatter, and so much steeper."""
        return replace(self, others=(*self.others, self.curve ** (1.0 - power), self.curve ** (1.0 + power)))

    def around(self, improvement: Callable[[Floats], float], delta: float) -> list[Floats]:
        """Return the curves to hold for: the curve, `others`, and the two ends of the confidence set at level delta.

        The set is the ellipsoid of all curves at level delta (the new ranker may have been learned from the same
        counts, so no direction is fixed beforehand). Its ends are the curves that move the improvement most:

            log curve -+ r C g / sqrt(g' C g),    g = d improvement / d log curve,    r^2 the 1 - delta quantile of
                                                  chi-square with as many degrees of freedom as ranks less one
        """
        curves = [self.curve, *self.others]
        if self.covariance is None:
            return curves
        logs = np.log(self.curve)
        slope = np.zeros(len(logs))
        for rank in range(1, len(logs)):
            moved = np.zeros(len(logs))
            moved[rank] = STEP
            slope[rank] = (improvement(np.exp(logs + moved)) - improvement(np.exp(logs - moved))) / (2.0 * STEP)
        direction = self.covariance @ slope
        length = math.sqrt(max(float(slope @ direction), 0.0))
        if length == 0.0:
            return curves
        step = _radius(len(logs) - 1, delta) * direction / length
        return [*curves, np.exp(logs - step), np.exp(logs + step)]


def _radius(freedom: int, delta: float) -> float:
    """Root of the 1 - delta quantile of chi-square, by the cube root of Wilson and Hilferty (1931)."""
    part = 2.0 / (9.0 * freedom)
    return math.sqrt(freedom * max(1.0 - part - NormalDist().inv_cdf(delta) * math.sqrt(part), 0.0) ** 3)


def _check_possible(counts: LogStatistics, curve: Floats, source: object) -> None:
    """Raise if more is clicked at a rank than the curve says is looked at, which no relevance explains."""
    shown, clicked = counts.shown.sum(axis=0), counts.clicked.sum(axis=0)
    rate = clicked / np.maximum(shown, 1)
    over = rate - curve - IMPOSSIBLE * np.sqrt(np.maximum(rate * (1.0 - rate), 0.0) / np.maximum(shown, 1))
    if over.max() > 0.0:
        rank = int(over.argmax())
        raise Refused(
            f"the examination curve is impossible: users click {rate[rank]:.1%} of what is shown at rank {rank + 1}, "
            f"but would examine only {curve[rank]:.1%} of it. Correct the curve.",
            code="examination-contradicted",
            file=source,
        )


def curves_for(
    counts: LogStatistics,
    given: Floats | None,
    *,
    trust: bool = False,
    within: bool = False,
    fixed: bool = False,
    strict: bool = False,
    source: object = None,
) -> Curves:
    """Return what the verdict has to hold for, from counts that are not held out and the curve that was given, if any.

    Raises `Refused` if the log contradicts the given curve, and if the curve can neither be estimated from the log nor
    is trusted. A curve that the log agrees with is one more beside the confidence set of the estimate; only where the
    log is not enough for that, a range around the given curve takes its place. `within`: the counts' queries are
    queries within stretches of time. `fixed`: the curve must not depend on the log, which may grow between looks.
    `strict`: an estimate too wide to check a curve by does not count.
    """
    if counts.cutoff == 1:
        return Curves(ONE_RANK, np.ones(1))
    estimate = estimate_examination(counts, np.random.default_rng(0))
    known = can_rest_on(estimate)
    if strict:
        known = known and examination_check(counts, None).status != "unchecked"
    unknown = FOLLOWS_DEMAND if within else UNKNOWN
    if given is None:
        if not known:
            code = "ranker-follows-demand" if within else "examination-unknown"
            raise Refused(f"{unknown} {REMEDY}", code=code, file=source)
        return Curves(ESTIMATED, estimate.curve, estimate.log_covariance)
    if not (given > 0).all():
        message = "a rank with examination 0 cannot be certified; give a smaller --cutoff."
        raise Refused(message, code="examination-zero")
    relative = given / given[0]
    others = tuple(relative ** (1.0 + sign * RANGE) for sign in (-1.0, 1.0))
    _check_possible(counts, relative, source)
    check = examination_check(counts, relative)
    if check.status == "contradicted":
        raise Refused(
            f"the log contradicts the examination curve: {check.contradiction(relative)}. Either the curve is wrong, "
            "or rankings depend on the user, the region or the hour, which biases the estimate. Find out which.",
            code="examination-contradicted",
            file=source,
        )
    if fixed and check.status == "agrees":
        return Curves(AGREES, relative, None, others)
    if known and check.status == "agrees":
        return Curves(CONFIRMS, estimate.curve, estimate.log_covariance, (relative,))
    if not trust:
        raise Refused(
            f"{unknown} So it cannot check the given curve, and a wrong curve can make a worse ranker look better. "
            f"{REMEDY}",
            code="ranker-follows-demand" if within else "examination-unchecked",
            file=source,
        )
    return Curves(UNCHECKED, relative, None, others)
