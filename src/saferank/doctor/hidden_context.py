"""Whether something that is not in the log decides both what is shown and what is wanted: taste, region, stock.

A ranker that knows the user shows documents to those who want them, and their clicks overstate how much others do. No
column tells, but the lists do: those made for the same taste resemble each other, and are clicked alike.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.homogeneity import deviate
from saferank.doctor.log_arrays import SampledImpressions
from saferank.engine.ragged import query_of_document
from saferank.engine.types.ranking_data import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SIGNIFICANT = 3.0
"""Normal deviate from which it is believed. It has little data to go by, and no other test finds what it misses."""
COMPONENTS = 1
"""Directions in which the lists of a query vary most; with more, there is more noise than news."""
DEALT = 5
"""Times that scores are dealt out anew."""
NOTHING = 1e-9
FEWEST_LISTS = 20
"""Lists of a query from which on its directions are estimated."""
FEWEST_SHOWN = 4
"""Times that a document was shown at a rank, from which on its clicks are compared."""
MOST_DOCUMENTS = 200
"""Lists of a query are compared by its most shown documents, at most so many."""


@dataclass(frozen=True)
class HiddenContext:
    """A test of whether clicks depend on what else is shown."""

    z: float = 0.0
    """Normal deviate."""
    clicks: int = 0
    """Clicks that were compared."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance."""
        return self.z > SIGNIFICANT


def hidden_context(
    sample: SampledImpressions | None, pairs: RankingData, rng: np.random.Generator, *, by_period: bool
) -> HiddenContext:
    """Test whether clicks on a document at a rank go with the directions in which the lists of its query vary.

        T_d = (sum_i r_i u_i)^2 - sum_c sum_{i in c} r_i^2 sum_{i in c} u_i^2 / (n_c - 1)

    i are the impressions of document d, in cells c of n_c: those at a rank in lists of one length (and of one period,
    with `by_period`). r_i is click minus click-through of the cell, and u_i the score of list i in one of the
    COMPONENTS main directions, less its mean over the cell. If clicks depend on document and rank only, any assignment
    of clicks to the impressions of a cell is equally likely, and T_d has mean 0. The sum over documents is divided by
    its deviation, as if they were independent. Clicks of one impression are not, because some users click more than
    others: the deviation is multiplied by what that adds to the sums of queries if scores are dealt out anew among
    their lists.
    """
    if sample is None:
        return HiddenContext()
    lengths = np.diff(sample.offsets)
    impression, longest = query_of_document(sample.offsets), int(lengths.max()) + 1
    period = sample.period if by_period else np.zeros_like(sample.period)
    key = (sample.document * longest + sample.rank) * longest + lengths[impression]
    cell = np.unique(key * (int(period.max()) + 1) + period, return_inverse=True)[1]
    shown, clicks = np.bincount(cell), np.bincount(cell, sample.click)
    directions = _directions(sample, pairs)
    compared = (shown >= FEWEST_SHOWN) & (clicks > 0) & (clicks < shown)
    rows = np.flatnonzero(compared[cell] & (directions != 0.0).any(axis=1)[impression])
    if len(rows) == 0:
        return HiddenContext()
    cells = _Cells.of(cell[rows], sample.click[rows], sample.document[rows], pairs.query_of_document)
    found = cells.sums(directions[impression[rows]])
    if found.variance <= 0.0:
        return HiddenContext()
    group = pairs.query_of_document[sample.document[sample.offsets[:-1]]] * longest + lengths
    factors = []
    for _ in range(DEALT):
        dealt = np.empty_like(directions)
        dealt[np.lexsort((rng.random(len(group)), group))] = directions[np.lexsort((rng.random(len(group)), group))]
        factors.append(cells.sums(dealt[impression[rows]]).spread)
    error = math.sqrt(max(float(np.mean(factors)), 1.0) * found.variance)
    return HiddenContext(deviate(found.excess / error, found.skewness), int(sample.click[rows].sum()))


@dataclass(frozen=True)
class _Sums:
    excess: float
    variance: float
    skewness: float
    spread: float
    """Mean square of the sums of queries, over their variance if cells were independent."""


@dataclass(frozen=True, eq=False)
class _Cells:
    """The impressions of cells, numbered from 0, with what is left of each click after the mean of its cell."""

    cell: Integers
    left: Floats
    document: Integers
    """Of each cell, numbered from 0."""
    spared: Floats
    """Of each cell: sum of left^2 / (n - 1)."""
    weight: Floats
    """Of each document: the best one against changes that are alike everywhere, relatively."""
    query: Integers
    """Of each document."""

    @classmethod
    def of(cls, cell: Integers, click: Floats, document: Integers, query_of_document: Integers) -> Self:
        cell = np.unique(cell, return_inverse=True)[1]
        count, clicked = np.bincount(cell), np.bincount(cell, click)
        rate = clicked / count
        left, of_cell = click - rate[cell], np.zeros(len(count), np.int64)
        of_cell[cell] = document
        documents, of_cell = np.unique(of_cell, return_inverse=True)
        spared = np.bincount(cell, left**2) / np.maximum(count - 1, 1)
        weight = (np.bincount(of_cell, clicked) / np.bincount(of_cell, clicked * (1.0 - rate))) ** 2
        return cls(cell, left, of_cell, spared, weight, query_of_document[documents])

    def sums(self, scores: Floats) -> _Sums:
        """Return the weighted sum of T_d over documents and directions, with its cumulants."""
        count, documents = np.bincount(self.cell), len(self.weight)
        excess, variance, third = (np.zeros(documents) for _ in range(3))
        for score in scores.T:
            score = score - (np.bincount(self.cell, score) / count)[self.cell]
            of_cell = np.bincount(self.cell, score**2)
            expected = np.bincount(self.document, np.where(of_cell > NOTHING, self.spared * of_cell, 0.0), documents)
            square = np.bincount(self.document, np.bincount(self.cell, self.left * score), documents) ** 2
            weighted = np.where(expected > NOTHING, self.weight, 0.0)
            excess += weighted * (square - expected)
            mean = weighted * expected  # of a chi-square with one degree of freedom, up to this factor
            variance, third = variance + 2.0 * mean**2, third + 8.0 * mean**3
        of_query, by_query = (np.bincount(self.query, values) for values in (excess, variance))
        total, known = float(variance.sum()), by_query > 0
        if total <= 0.0:
            return _Sums(0.0, 0.0, 0.0, 1.0)
        spread = float((of_query[known] ** 2 / by_query[known]).mean())
        return _Sums(float(excess.sum()), total, float(third.sum()) / total**1.5, spread)


def _directions(sample: SampledImpressions, pairs: RankingData) -> Floats:
    """(impression, direction): the principal components of each query's lists, of 1 / rank of its documents.

    They have variance 1, and are 0 in queries with few lists.
    """
    lengths, first = np.diff(sample.offsets), sample.offsets[:-1]
    query = pairs.query_of_document[sample.document[first]]
    order = np.argsort(query, kind="stable")
    found = np.zeros((len(lengths), COMPONENTS))
    for lists in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        if len(lists) < FEWEST_LISTS:
            continue
        rows = np.repeat(first[lists] - np.cumsum(lengths[lists]) + lengths[lists], lengths[lists])
        rows += np.arange(len(rows))
        document, times = np.unique(sample.document[rows], return_counts=True)
        if len(document) < 3:
            continue
        column = np.full(len(document), -1)
        kept = np.argsort(-times, kind="stable")[:MOST_DOCUMENTS]
        column[kept] = np.arange(len(kept))
        place = column[np.searchsorted(document, sample.document[rows])]
        table = np.zeros((len(lists), len(kept)))
        row, inside = np.repeat(np.arange(len(lists)), lengths[lists]), place >= 0
        table[row[inside], place[inside]] = 1.0 / (1.0 + sample.rank[rows[inside]])
        for length in np.unique(lengths[lists]):
            table[lengths[lists] == length] -= table[lengths[lists] == length].mean(axis=0)
        strength, direction = np.linalg.eigh(table.T @ table / len(lists))
        main = direction[:, ::-1][:, :COMPONENTS] / np.sqrt(np.maximum(strength[::-1][:COMPONENTS], 1e-12))
        main = np.where(strength[::-1][:COMPONENTS] > 1e-9, main, 0.0)
        found[lists, : main.shape[1]] = table @ main
    return found
