"""Whether the log shows what the scores of the current ranker, which were given, predict."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.strata import StratumCounts
from saferank.engine.ragged import query_sums
from saferank.logs.periods import moment_text
from saferank.verdict.checks import Refused

Floats = NDArray[np.float64]
OTHER_RANKER = 6.0
"""Standard deviations by which what is shown may differ from what the known logging policy shows, in any cell."""
OTHER_SCORES = 4.0
"""The same, for means over all queries."""
LEAST_EXPECTED = 1.0
"""Cells with a smaller variance of their count are left out of the normal approximation."""
LEAST_CHANCE = 1e-6
"""Chances below count as this one: its logarithm is not to outweigh all others."""
SELDOM = 1e-2
"""Chance of being shown that both rankers have at least, when they are compared."""


def check_known_ranker(
    part: StratumCounts,
    placement: Floats,
    new_placement: Floats,
    offsets: NDArray[np.int64],
    periods: list[tuple[str, str]],
    source: object,
) -> None:
    """Raise if the log does not show what the policy with the given scores would show, overall or in one period.

    `placement` is that of the policy, and `new_placement` that of the new ranker, one row per document of all queries,
    which begin at `offsets`.
    """
    ratio = np.log((new_placement.sum(axis=1) + SELDOM) / (placement.sum(axis=1) + SELDOM))
    values = np.log(np.maximum(placement, LEAST_CHANCE)), np.broadcast_to(ratio[:, None], placement.shape)
    expected = [_Expected.of(value, placement, offsets) for value in values]
    deviations = _deviations(part, placement, expected, np.ones(part.strata, np.bool_))
    worst = ""
    several = np.unique(part.period)
    if len(several) > 1:
        each = [_deviations(part, placement, expected, part.period == period) for period in several]
        deviations = max(deviations, max(each) - math.sqrt(2.0 * math.log(len(each))))
        if periods:
            worst = f", most from {moment_text(periods[int(several[int(np.argmax(each))])][0])} on"
    if deviations > OTHER_RANKER:
        raise Refused(
            f"the held-out part does not show what the logging scores predict ({deviations:.0f} standard deviations "
            f"off{worst}): another ranker made this log, the ranker changed, or rules or a new scale changed its "
            "scores; certify on the part of the log made with these scores, or leave --logging-scores out.",
            code="other-ranker",
            file=source,
        )


@dataclass(frozen=True, eq=False)
class _Expected:
    """A value of each (document, rank), with its mean and variance at each (query, rank) if the scores are right."""

    value: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, value: Floats, placement: Floats, offsets: NDArray[np.int64]) -> Self:
        total, first, second = (query_sums(placement * value**power, offsets) for power in (0, 1, 2))
        total = np.maximum(total, LEAST_CHANCE)
        return cls(value, first / total, np.maximum(second / total - (first / total) ** 2, 0.0))

    def deviation(self, part: StratumCounts, shown: NDArray[np.int64], inside: NDArray[np.bool_]) -> float:
        """Return by how many standard deviations the mean over all queries is off, where it is farthest off.

        T_k = sum_i ( value(d_i, k) - mean ),    d_i: the document that interaction i shows at rank k

        At each rank, and over all ranks. A list shows no document twice, so its ranks do not add up to more variance
        than independent ones.
        """
        query = part.query[part.stratum[inside]]
        total = (shown * (self.value[part.pair[inside]] - self.mean[query])).sum(axis=0)
        variance = (shown * self.variance[query]).sum(axis=0)
        total, variance = np.append(total, total.sum()), np.append(variance, variance.sum())
        known = variance > LEAST_EXPECTED
        return float((np.abs(total[known]) / np.sqrt(variance[known])).max(initial=0.0))


def _deviations(part: StratumCounts, placement: Floats, expected: list[_Expected], strata: NDArray[np.bool_]) -> float:
    """Return by how many standard deviations the chosen strata are off, on the scale of OTHER_RANKER.

    Compared are the counts of each document and rank and, over all queries, how likely the documents are that are
    shown, and how much more often the new ranker shows them: what a verdict would get wrong. For these, no document has
    to be shown often, so scores that are too flat, too steep, out of date, or followed by a rule, are found in rare
    queries too. Documents without a score are left out.
    """
    inside = strata[part.stratum]
    if not inside.any():
        return 0.0
    shown = np.where(placement[part.pair[inside]] > 0, part.shown[inside], 0)
    means = max(one.deviation(part, shown, inside) for one in expected)
    return max(_by_cell(part, placement, inside), means * OTHER_RANKER / OTHER_SCORES)


def _by_cell(part: StratumCounts, placement: Floats, inside: NDArray[np.bool_]) -> float:
    """Return the chi-square over documents and ranks with enough expected counts, as a normal deviate."""
    chances, listed = placement[part.pair[inside]], part.listed[part.stratum[inside]]  # lists may end early
    wanted, variance = chances * listed, chances * (1.0 - chances) * listed
    cells = variance >= LEAST_EXPECTED
    if not cells.any():
        return 0.0
    excess = np.square(part.shown[inside][cells] - wanted[cells]) / variance[cells] - 1.0
    return float(excess.sum() / math.sqrt(float((2.0 + 1.0 / variance[cells]).sum())))
