"""The bounds of the improvement: lowest and highest over all curves that a verdict has to hold for."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.engine.bounds.registry import BOUNDS
from saferank.engine.bounds.verdict_choices import WEIGHTS
from saferank.verdict.comparison import Comparison
from saferank.verdict.curves import Curves

Floats = NDArray[np.float64]
DEFAULT_WEIGHT = 100.0
"""Where the validation part is too small to choose."""


@dataclass(frozen=True, eq=False)
class Judge:
    """The bounds of the improvement, lowest and highest over the curves that it has to hold for."""

    comparison: Comparison
    curves: Curves
    bound: str
    limits: tuple[float, float]
    """Largest weights, for the lower and for the upper bound."""
    guesses: tuple[float, ...] = (1.0, 1.0)
    """Variances of a term, for the two, from other interactions."""
    expected_lower: float = -math.inf
    """About where the lower bound will be; -inf if the validation part is too small to estimate that."""

    def lower(self, delta: float, bound: str | None = None) -> tuple[float, Floats]:
        """Return the lower bound, and the curve that it is lowest for."""
        curves = self._curves(delta, self.limits[0])
        found = [self._lower_at(curve, delta, bound) for curve in curves]
        worst = int(np.argmin(found))
        return found[worst], curves[worst]

    def upper(self, delta: float, bound: str | None = None) -> float:
        """Return the upper bound."""
        found = []
        for curve in self._curves(delta, self.limits[1]):
            negated = replace(self.comparison.differences(curve, self.limits[1]).negated(), guess=self.guesses[1])
            allowance = self.comparison.allowance(curve, self.limits[1])
            rest = self.comparison.rest(curve, self.limits[1]) + allowance
            found.append(rest - BOUNDS[bound or self.bound].lower(negated, self._rest(delta)))
        return max(found)

    def at(self, curve: Floats, delta: float) -> tuple[float, float]:
        """Return the estimate and its lower bound if this were the curve."""
        return self.comparison.mean(curve, self.limits[0]), self._lower_at(curve, delta, None)

    def of(self, chosen: NDArray[np.bool_]) -> Self:
        """Return the judge of some of the interactions."""
        return replace(self, comparison=self.comparison.of(chosen))

    def _lower_at(self, curve: Floats, delta: float, bound: str | None) -> float:
        differences = replace(self.comparison.differences(curve, self.limits[0]), guess=self.guesses[0])
        allowance = self.comparison.allowance(curve, self.limits[0])
        return BOUNDS[bound or self.bound].lower(differences, self._rest(delta)) - allowance

    def _curves(self, delta: float, limit: float) -> list[Floats]:
        share = max(self.curves.share(), 1e-9)
        return self.curves.around(lambda curve: self.comparison.mean(curve, limit), share * delta)

    def _rest(self, delta: float) -> float:
        return (1.0 - self.curves.share()) * delta


def prepare_judge(
    validation: Comparison,
    test: Comparison,
    curves: Curves,
    bound: str,
    delta: float,
    *,
    most_weight: float | None = None,
) -> Judge:
    """Return the judge of `test`, all that it depends on being fixed on the validation part.

    The limits of weights are those that give the narrowest bounds there, for as many interactions as `test` has.
    """
    there, interactions = (part.part.patterns.total_interactions for part in (validation, test))
    if there < 2:
        limit = most_weight or DEFAULT_WEIGHT
        return Judge(test, curves, bound, (limit, limit))
    z = NormalDist().inv_cdf(1.0 - delta) * math.sqrt(there / max(interactions, 1))
    lower, upper, variance = {}, {}, {}
    for limit in WEIGHTS if most_weight is None else (most_weight,):
        terms = validation.differences(curves.curve, limit)
        error = z * terms.standard_error if math.isfinite(terms.standard_error) else math.inf
        allowance = validation.allowance(curves.curve, limit)
        lower[limit] = terms.mean - error - allowance
        heavy = terms.high * terms.largest_size * math.log(1.0 / delta) / (3.0 * interactions)  # Bernstein's bound
        upper[limit] = terms.mean + validation.rest(curves.curve, limit) + error + heavy + allowance
        variance[limit] = terms.variance if terms.variance > 0 else 1.0
    limits = max(lower, key=lambda one: lower[one]), min(upper, key=lambda one: upper[one])
    return Judge(test, curves, bound, limits, tuple(variance[limit] for limit in limits), lower[limits[0]])
