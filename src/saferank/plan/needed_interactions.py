"""How many interactions of a log certify a policy that is truly better."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.possible_drift import PossibleDrift
from saferank.engine.bounds.verdict_choices import POWER
from saferank.engine.click_models.examination import total_examination
from saferank.engine.ragged import query_sums, within_queries
from saferank.plan.randomisation import BY_SCORE, bisect, moved_exposure

Floats = NDArray[np.float64]
CLIPS = (1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 50.0, 100.0, 1000.0, math.inf)
"""Largest weights considered; a clip that is chosen on validation clicks finds about the best of them."""
NEVER = 1e12
"""Interactions from which on the answer is that no log is long enough."""
TYPICAL_MOVED = 0.25
"""Share of the exposure that a new model moves without gaining from it: a cautious choice. Five policies learned from
simulated logs, which moved 0.19 to 0.28 of the exposure, needed 0.2 to 0.9 times the interactions that 0.25 gives, and
1.0 to 2.7 times those that 0.2 gives; for policies that move only what pays, about a tenth would do."""
LARGEST_PUSH = 1e4
BISECTIONS = 14


@dataclass(frozen=True, eq=False)
class Traffic:
    """A share of the interactions for each query, relevances, and the rankings that one way of logging shows."""

    offsets: NDArray[np.int64]
    share: Floats
    """Of each query; they add up to 1."""
    relevance: Floats
    examination: Floats
    logging_exposure: Floats
    rankings: NDArray[np.int64] | None = None
    """(query, sample, rank) -> document, -1 for none, drawn from the logging policy; None if it cannot be drawn from:
    clicks of one impression are then taken to be uncorrelated."""
    drifts: tuple[PossibleDrift, ...] = ()
    """What a verdict on such a log allows for, of each document."""

    def mean(self, weights: Floats) -> float:
        """E[X] of X = sum_d weight(d) c(d), c the clicks of an interaction."""
        return float(self._per_query(weights * self.relevance * self.logging_exposure) @ self.share)

    def allowance(self, ratio: Floats) -> float:
        """Return what the verdict subtracts from E[X] where clicks have the weights ratio - 1."""
        earned = ratio * self.relevance * self.logging_exposure * np.repeat(self.share, np.diff(self.offsets))
        return sum(drift.allowance(earned) for drift in self.drifts)

    def second_moment(self, weights: Floats, *, drawn: bool = True) -> float:
        """E[X^2] = sum_d w(d)^2 P(c(d)) + sum over pairs of w(d) w(d') P(c(d), c(d')).

        The first sum is exact. The second is the mean over the drawn rankings, where clicks are independent given the
        ranking (without `drawn`: as if clicks were uncorrelated, which is quicker). The result is kept within what is
        proven for each query, E[X]^2 <= E[X^2] <= min(K, 1 + Z max relevance) * first sum.
        """
        rate = self.relevance * self.logging_exposure
        single, mean = self._per_query(weights**2 * rate), self._per_query(weights * rate)
        if drawn and self.rankings is not None:
            rows = self.offsets[:-1, None, None] + np.maximum(self.rankings, 0)
            expected = np.where(self.rankings >= 0, (weights * self.relevance)[rows] * self.examination, 0.0)
            pairs = (expected.sum(axis=2) ** 2 - (expected**2).sum(axis=2)).mean(axis=1)
        else:
            pairs = mean**2 - self._per_query((weights * rate) ** 2)
        return float(np.clip(single + pairs, mean**2, self._constant * single) @ self.share)

    @cached_property
    def _constant(self) -> Floats:
        lengths = np.diff(self.offsets)
        largest = np.maximum.reduceat(self.relevance, self.offsets[:-1])
        shown = np.minimum(lengths, len(self.examination))
        return np.minimum(shown, 1.0 + total_examination(self.examination, lengths) * largest)

    def _per_query(self, values: Floats) -> Floats:
        return query_sums(values, self.offsets)


def needed_interactions(
    exposure: Floats | None, traffic: Traffic, shortfall: float, delta: float
) -> tuple[float, float]:
    """Return how many interactions certify, with chance POWER, that a policy beats the current ranker; and the clip.

        X = sum_d (min(rho(d) / rho_log(d), W) - 1) c(d),    N = (z_(1 - delta) + z_0.8)^2 Var X / (E X - shortfall)^2

    the least over clips W; infinite if no number is enough, or there is no such policy. E X is at most U(policy) -
    U(log). `shortfall` = U(now) - U(log) is what randomness costs: the policy has to beat the ranker as it is now, not
    the randomised one; where the randomised one is better, the policy has to beat that. From E X the allowance for
    drift is subtracted, as if it did not shrink as the log grows: it does so slowly. A document that is not logged has
    the weight -1. Asymptotic: a bound that holds for any N, or at every look, needs more.
    """
    if exposure is None:
        return math.inf, math.inf
    logged = traffic.logging_exposure
    ratio = np.divide(exposure, logged, out=np.zeros(len(exposure)), where=logged > 0)
    least = max(shortfall, 0.0)
    factor = (NormalDist().inv_cdf(1.0 - delta) + NormalDist().inv_cdf(POWER)) ** 2

    def needed(clip: float, *, drawn: bool) -> float:
        weights = np.minimum(ratio, clip) - 1.0
        mean = traffic.mean(weights)
        proven = mean - traffic.allowance(weights + 1.0)
        if proven <= least:
            return math.inf
        return factor * max(traffic.second_moment(weights, drawn=drawn) - mean**2, 0.0) / (proven - least) ** 2

    clip = min(CLIPS, key=lambda clip: needed(clip, drawn=False))
    number = needed(clip, drawn=True)
    return (number, clip) if number < NEVER else (math.inf, math.inf)


def better_exposures(
    scores: Floats,
    relevance: Floats,
    offsets: NDArray[np.int64],
    examination: Floats,
    weight: Floats,
    now: Floats,
    gains: Sequence[float],
    rng: np.random.Generator,
) -> list[Floats | None]:
    """Return for each gain the exposure of a policy with (1 + gain) times the utility of `now`, None if out of reach.

        sort by  score + b * noise + a * relevance  (each standardised within the query),
        utility = sum_d weight(d) relevance(d) rho(d),    weight = the traffic of the document's query

    Such policies move a lot of exposure, and gain from some of it, like those that are learned. b is such that noise
    alone moves TYPICAL_MOVED of the exposure away from the ranking by score; then a is the least that reaches the
    gain. Utility never falls with a: the ranking maximises u + a v, where v = sum of standardised relevance times
    examination, so v rises with a. A mixture of the last two policies (or with `now`, if noise alone is better) meets
    the gain exactly.
    """
    known, wanted = (_standardised(values, offsets) for values in (scores, relevance))
    noise = rng.normal(size=len(scores))
    value = weight * relevance

    def ranked(blend: Floats) -> Floats:
        return BY_SCORE.exposure(blend, offsets, examination)

    def moves_enough(amount: float) -> bool:
        return moved_exposure(ranked(known + amount * noise), by_score, weight) >= TYPICAL_MOVED

    by_score = ranked(known)
    start = known + _least(moves_enough)[1] * noise
    found: list[Floats | None] = []
    for gain in gains:
        target = (1.0 + gain) * float((value * now).sum())

        def reaches(push: float, target: float = target) -> bool:
            return float((value * ranked(start + push * wanted)).sum()) >= target

        if not reaches(LARGEST_PUSH):
            found.append(None)
            continue
        low, high = _least(reaches)
        short, enough = ranked(start + low * wanted) if low < high else now, ranked(start + high * wanted)
        less, more = float((value * short).sum()), float((value * enough).sum())
        share = (target - less) / (more - less) if more > less else 1.0
        found.append((1.0 - share) * short + share * enough)
    return found


def _least(enough: Callable[[float], bool]) -> tuple[float, float]:
    """Return an amount that is not enough and one that is, close together; the largest one if none is."""
    low, high = 0.0, 0.1
    if enough(low):
        return low, low
    while high < LARGEST_PUSH and not enough(high):
        low, high = high, 4.0 * high
    return bisect(low, high, enough, BISECTIONS)


def _standardised(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    lengths = np.diff(offsets)
    centred = within_queries(values, offsets)
    deviation = np.repeat(np.sqrt(query_sums(centred**2, offsets) / lengths), lengths)
    scaled: Floats = np.divide(centred, deviation, out=np.zeros(len(values)), where=deviation > 1e-12)
    return scaled
