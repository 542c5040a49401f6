"""Whether the searches of a user depend on earlier ones: on what was shown then, or on what was clicked.

A verdict weights every search by itself. If users do not click again on what they have seen, or the ranker hides what
they have clicked, a new ranker changes what later searches are worth, and weights of single clicks miss that.
"""

import math
from dataclasses import dataclass, field

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
"""Users who searched so often or more are compared with each other."""


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


def earlier_searches(sample: SampledImpressions | None, pairs: RankingData, *, by_period: bool) -> EarlierSearches:
    """Test both on the sample: units, as users, that issued a query more than once.

    Clicks: of the same document at the same rank, among users who searched equally often before, those on documents
    that were shown higher up before are compared with the others. The ranker does not know what a user likes, so that
    how high a document was shown says nothing about it. Rankings: of the same document at the same rank, the exposure
    (1 / rank) in the user's next search is compared after a click and without one.

        T = sum_i (y_i - mean y) (h_i - mean h),     z = T / sqrt( sum_u T_u^2 )

    over rows i and users u, with means over the same document and rank (and period, `by_period`).
    """
    if sample is None or sample.unit is None or sample.moment is None:
        return EarlierSearches()
    first = sample.offsets[:-1]
    query = pairs.query_of_document[sample.document[first]]
    unit = np.unique(sample.unit[first], return_inverse=True)[1]
    group = np.unique(unit * pairs.queries + query, return_inverse=True)[1]
    order = np.lexsort((sample.moment[first], group))
    sizes = np.bincount(group)
    before, searches = np.empty(len(group), np.int64), sizes[group]
    before[order] = np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group[order]]
    impression = query_of_document(sample.offsets)
    rows = np.flatnonzero(searches[impression] > 1)
    if len(rows) == 0:
        return EarlierSearches()
    document, rank, of, click = sample.document[rows], sample.rank[rows], impression[rows], sample.click[rows]
    exposure = 1.0 / (1.0 + rank.astype(np.float64))
    period = sample.period[rows] if by_period else np.zeros_like(rows)
    same = np.lexsort((before[of], document, group[of]))
    history, following = _around(group[of][same], document[same], before[of][same], exposure[same])
    history, following = (_unsorted(values, same) for values in (history, following))
    place = (document * (int(rank.max()) + 1) + rank) * (int(period.max()) + 1) + period
    later, continued = before[of] > 0, before[of] + 1 < searches[of]
    cell = place * (MOST_BEFORE + 1) + np.minimum(before[of], MOST_BEFORE)
    z, slope = _slope(cell[later], click[later], history[later], unit[of][later])
    return EarlierSearches(
        clicks=Dependence(z, slope * float(history[later].sum()) / max(float(sample.click.sum()), 1.0)),
        rankings=_after_clicks(place, click, following, unit[of], continued, float((before + 1 < searches).mean())),
    )


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


def _unsorted(values: Floats, order: Integers) -> Floats:
    found = np.empty_like(values)
    found[order] = values
    return found


def _after_clicks(
    place: Integers, click: Floats, following: Floats, unit: Integers, continued: NDArray[np.bool_], often: float
) -> Dependence:
    z, slope = _slope(place[continued], following[continued], click[continued], unit[continued])
    clicked = continued & (click > 0)
    would_be = float(following[clicked].mean()) - slope if clicked.any() else 0.0
    return Dependence(z, often * slope / would_be if would_be > 0 else 0.0)


def _slope(cell: Integers, y: Floats, h: Floats, unit: Integers) -> tuple[float, float]:
    """Return the sum of products within cells as a normal deviate of independent units, and the slope of y on h."""
    if len(cell) == 0:
        return 0.0, 0.0
    cell = compact(cell)
    count = np.maximum(np.bincount(cell), 1)
    y, h = (values - (np.bincount(cell, values) / count)[cell] for values in (y, h))
    h = np.where(np.abs(h) > NOTHING, h, 0.0)
    error = math.sqrt(float(np.square(np.bincount(unit, y * h)).sum()))
    total, square = float((y * h).sum()), float((h * h).sum())
    return (total / error if error > 0 else 0.0), (total / square if square > 0 else 0.0)
