"""Whether the searches of a user depend on earlier ones: on what was shown then, or on what was clicked.

A verdict weights every search by itself. If users do not click again on what they have seen, or the ranker hides what
they have clicked, a new ranker changes what later searches are worth, and weights of single clicks miss that.
"""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions, compact
from saferank.engine.ragged import query_of_document
from saferank.engine.types.ranking_data import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SIGNIFICANT = 4.0
"""Normal deviate from which it is believed."""
LEAST_EFFECT = 0.01
"""Share of all clicks, or of what is shown to users who come back, that has to change for it to matter."""
NOTHING = 1e-9
MOST_BEFORE = 3
"""Larger numbers of earlier searches count as this one."""


@dataclass(frozen=True)
class Dependence:
    """A test of whether one thing goes with another, and how much it changes."""

    z: float = 0.0
    """Normal deviate: below 0 if it makes the other rarer."""
    effect: float = 0.0
    """See `EarlierSearches`."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance, and enough to matter."""
        return abs(self.z) > SIGNIFICANT and abs(self.effect) > LEAST_EFFECT


@dataclass(frozen=True)
class EarlierSearches:
    """Two tests on users who issue a query again."""

    clicks: Dependence = field(default_factory=Dependence)
    """Of clicks on what was shown before. The effect is a share of all clicks."""
    rankings: Dependence = field(default_factory=Dependence)
    """Of rankings on what was clicked before. The effect is the change of a clicked document's exposure, relative to
    what it would be, times the share of searches after which the user searches again."""
    checked: bool = False
    """Whether users searched again, with their times known, and were shown other lists then."""


def earlier_searches(sample: SampledImpressions | None, pairs: RankingData, *, by_period: bool) -> EarlierSearches:
    """Test both on the sample: units, as users, that issued a query more than once.

    Clicks: of the same document at the same rank, among users who searched equally often before, those on documents
    that were shown higher up before, on average, are compared with the others. The ranker does not know what a user
    likes, so how high a document was shown says nothing about it. Rankings: of the same document at the same rank, the
    exposure (1 / rank) in the user's next search is compared after a click and without one.

        T = sum_i (y_i - mean y) (h_i - mean h),     z = T / sqrt( sum_u T_u^2 )

    over rows i and users u, with means over the same document and rank and, `by_period`, over the same periods of both
    searches: whether users come back at once or later may depend on their clicks, and the ranker may have changed
    meanwhile. The searches of a user are in the sample together.
    """
    if sample is None or sample.unit is None or sample.moment is None:
        return EarlierSearches()
    searches = _Searches.of(sample, pairs, by_period=by_period)
    impression = query_of_document(sample.offsets)
    rows = np.flatnonzero(searches.count[impression] > 1)
    if len(rows) == 0:
        return EarlierSearches()
    document, rank, of, click = sample.document[rows], sample.rank[rows], impression[rows], sample.click[rows]
    before, unit = searches.before[of], searches.unit[of]
    same = np.lexsort((before, document, searches.group[of]))
    exposure = 1.0 / (1.0 + rank[same].astype(np.float64))
    history, following = np.empty(len(rows)), np.empty(len(rows))
    history[same], following[same] = _around(searches.group[of][same], document[same], before[same], exposure)
    history /= np.maximum(before, 1)
    place = compact((document * (int(rank.max()) + 1) + rank) * searches.periods + searches.period[of])
    later, again = before > 0, before + 1 < searches.count[of]
    cell = (place * (MOST_BEFORE + 1) + np.minimum(before, MOST_BEFORE)) * searches.periods + searches.previous[of]
    z, slope, varies = _slope(cell[later], click[later], history[later], unit[later])
    return EarlierSearches(
        clicks=Dependence(z, slope * float(history[later].sum()) / max(float(sample.click.sum()), 1.0)),
        rankings=_after_clicks(
            place * searches.periods + searches.next[of], click, following, unit, again,
            often=float((searches.before + 1 < searches.count).mean()),
        ),
        checked=varies,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Searches:
    """The impressions of a sample, as searches of users."""

    unit: Integers
    group: Integers
    """The same for searches of a user for a query."""
    count: Integers
    """Searches of the group."""
    before: Integers
    """Those of them that came before."""
    period: Integers
    previous: Integers
    """Period of the search before, and 0 without one."""
    next: Integers
    periods: int

    @classmethod
    def of(cls, sample: SampledImpressions, pairs: RankingData, *, by_period: bool) -> Self:
        assert sample.unit is not None
        assert sample.moment is not None
        first = sample.offsets[:-1]
        unit = np.unique(sample.unit[first], return_inverse=True)[1]
        group = np.unique(unit * pairs.queries + pairs.query_of_document[sample.document[first]], return_inverse=True)[
            1
        ]
        order, sizes = np.lexsort((sample.moment[first], group)), np.bincount(group)
        before = np.empty(len(group), np.int64)
        before[order] = np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group[order]]
        period = sample.period[first] if by_period else np.zeros(len(group), np.int64)
        previous, following = np.zeros_like(period), np.zeros_like(period)
        one, other = order[:-1], order[1:]
        previous[other] = np.where(group[one] == group[other], period[one], 0)
        following[one] = np.where(group[one] == group[other], period[other], 0)
        return cls(unit, group, sizes[group], before, period, previous, following, int(period.max(initial=0)) + 1)


def _around(group: Integers, document: Integers, place: Integers, exposure: Floats) -> tuple[Floats, Floats]:
    """Return the exposure of the same document in all earlier searches of the user, and in the next one.

    Rows are sorted by group (the searches of a user for a query), document and place among these searches.
    """
    begins = np.ones(len(group), np.bool_)
    begins[1:] = (np.diff(group) != 0) | (np.diff(document) != 0)
    total = np.cumsum(exposure) - exposure
    history = total - total[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    following = np.zeros(len(group))
    following[:-1] = np.where(~begins[1:] & (np.diff(place) == 1), exposure[1:], 0.0)
    return history, following


def _after_clicks(
    cell: Integers, click: Floats, following: Floats, unit: Integers, again: NDArray[np.bool_], *, often: float
) -> Dependence:
    """Return whether the exposure in the next search depends on the click, where there is a next one."""
    z, slope, _ = _slope(cell[again], following[again], click[again], unit[again])
    clicked = again & (click > 0)
    mean = float(following[clicked].mean()) if clicked.any() else 0.0
    return Dependence(z, often * slope / max(mean - slope, abs(slope), NOTHING))


def _slope(cell: Integers, y: Floats, h: Floats, unit: Integers) -> tuple[float, float, bool]:
    """Return the sum of products within cells as a normal deviate of independent units, and the slope of y on h.

    And whether h varies within cells at all.
    """
    cell = np.unique(cell, return_inverse=True)[1]
    count = np.maximum(np.bincount(cell), 1)
    y, h = (values - (np.bincount(cell, values) / count)[cell] for values in (y, h))
    y, h = (np.where(np.abs(values) > NOTHING, values, 0.0) for values in (y, h))
    error = math.sqrt(float(np.square(np.bincount(unit, y * h)).sum()))
    total, square = float((y * h).sum()), float((h * h).sum())
    return (total / error if error > 0 else 0.0), (total / square if square > 0 else 0.0), square > 0
