"""Whether documents are high in the lists of a query, or not in them at all: stock, regions or rules leave them out.

A ranker that draws from scores and passes over a document at the top of a list becomes ever more likely to choose it
further down, because fewer others are left. Where something else left it out, it is not further down either. A new
ranker cannot change that, but a verdict would credit it with showing its best documents every time.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions, in_other_half, place_within
from saferank.engine.types.ranking_data import RankingData

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
SIGNIFICANT = 5.0
"""Normal deviate from which it is believed."""
LEAST_SHARE = 0.02
"""Share of the upper halves of the lists from which what is left out may turn a verdict."""
LEAST_LISTS, LEAST_COMPARED = 12, 6
"""Lists of a query that are looked at, at least, and of those of them that are compared with each other."""
OFTEN = 0.05
"""Share of the lists that have a document in their upper half, from which it is looked at."""
CHOSEN = 1.5
"""Standard errors by which a document has to be missing too often on one side to be counted on the other."""


@dataclass(frozen=True)
class HighOrMissing:
    """How much is left out of the upper halves of the lists."""

    z: float = 0.0
    """Normal deviate."""
    share: float = 0.0
    """Of the places in the upper halves: documents that are missing, beyond what drawing from scores can explain."""
    impressions: int = 0
    """Those looked at."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance, and large enough to matter."""
        return self.z > SIGNIFICANT and self.share > LEAST_SHARE


def high_or_missing(sample: SampledImpressions | None, pairs: RankingData, *, by_period: bool) -> HighOrMissing:
    """Compare how often documents are missing with how often they are not in the upper half of the list.

    If the chance of being chosen next does not fall from rank to rank (in Plackett-Luce it rises, because the weights
    of those above are gone), a document that is not in the upper half with probability s is missing altogether with
    s^2 at most. Documents that seem to be missing more often in the earlier lists of a query (or in those of half of
    the users) are counted in the others, by how much they are missing more often there, and the other way round; so
    chance alone adds nothing.

    Lists that share at most half of their documents with what their query usually shows are left out: a share of random
    rankings, say, where all are missing together. Lists are compared with those of the same length or one more or less,
    and within a period if asked.
    """
    lists = _compared(sample, pairs, by_period=by_period)
    if lists is None:
        return HighOrMissing()
    total = variance = 0.0
    one, other = lists.sides()
    for here, there in ((one, other), (other, one)):
        chosen = here.often & (here.excess > CHOSEN * here.error)
        total += float(there.excess[chosen].sum())
        variance += float(np.square(there.error[chosen]).sum())
    share = total / float((lists.lengths // 2).sum())
    return HighOrMissing(total / math.sqrt(variance) if variance > 0.0 else 0.0, share, len(lists.cell))


def missing_share(sample: SampledImpressions | None, pairs: RankingData, *, by_period: bool) -> Floats:
    """Return for each pair in which share of the lists it is missing, 0 if drawing from scores can explain that."""
    share = np.zeros(pairs.documents)
    if (lists := _compared(sample, pairs, by_period=by_period)) is not None:
        one, other = lists.sides()
        error = np.sqrt(np.square(one.error) + np.square(other.error))
        found = (one.often | other.often) & (one.excess + other.excess > SIGNIFICANT * error)
        missing = (one.missing + other.missing) / np.maximum(one.lists + other.lists, 1.0)
        share[: len(found)] = np.where(found, missing, 0.0)
    return share


def _compared(sample: SampledImpressions | None, pairs: RankingData, *, by_period: bool) -> "_Lists | None":
    """Return the lists that are looked at, if there are any."""
    if sample is None or not (np.diff(sample.offsets) > 1).any():
        return None
    lists = _Lists.of(sample, pairs, by_period=by_period)
    lists = lists.chosen(lists.usual())
    lists = lists.chosen(lists.enough())
    return lists if len(lists.cell) else None


@dataclass(frozen=True)
class _Side:
    """What some of the lists show, for each document."""

    lists: Floats
    """That could have it."""
    missing: Floats
    """Lists that do not have it."""
    excess: Floats
    """Of these, those that drawing from scores cannot explain."""
    error: Floats
    """Standard error of the excess."""
    often: NDArray[np.bool_]
    """Whether it is often in the upper half."""


@dataclass(frozen=True, eq=False)
class _Lists:
    """Lists and their rows; a cell holds the lists of a query that are compared, some of them on the other side."""

    query: Integers
    cell: Integers
    other: NDArray[np.bool_]
    """Lists that are counted when documents were chosen by the rest: the later ones, or those of other users."""
    lengths: Integers
    row: Integers
    """List of each row."""
    place: Integers
    """Of each row in its list, from 0."""
    document: Integers
    cells: int

    @classmethod
    def of(cls, sample: SampledImpressions, pairs: RankingData, *, by_period: bool) -> "_Lists":
        """Return the lists of at least two documents."""
        lengths = np.diff(sample.offsets)
        lengths, first = lengths[lengths > 1], sample.offsets[:-1][lengths > 1]
        query = pairs.query_of_document[sample.document[first]]
        period = sample.period[first] if by_period else np.zeros(len(first), np.int64)
        length = (int(lengths.max()) - lengths) // 2  # one that was left out and not replaced makes a list shorter
        cell = np.unique(np.stack([query, period, length]), axis=1, return_inverse=True)[1].reshape(-1)
        other = in_other_half(sample, first, cell)
        row = np.repeat(np.arange(len(first)), lengths)
        place = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        document, cells = sample.document[first[row] + place], int(cell.max()) + 1
        return cls(query, cell, other, lengths, row, place, document, cells)

    def chosen(self, kept: NDArray[np.bool_]) -> "_Lists":
        number, rows = np.cumsum(kept) - 1, kept[self.row]
        row, place, document = number[self.row[rows]], self.place[rows], self.document[rows]
        lists = (self.query[kept], self.cell[kept], self.other[kept], self.lengths[kept])
        return _Lists(*lists, row, place, document, self.cells)

    def enough(self) -> NDArray[np.bool_]:
        """Return which lists are of cells that have enough of them on both sides, and of queries that have enough."""
        sides = [np.bincount(self.cell[side], minlength=self.cells) for side in (~self.other, self.other)]
        compared = (2 * np.minimum(*sides) >= LEAST_COMPARED)[self.cell]
        return np.asarray(compared & (np.bincount(self.query, compared)[self.query] >= LEAST_LISTS))

    def entries(self) -> tuple[Integers, Integers, Integers]:
        """Return the entry of each row, which is a document in a cell, and the cell and the document of each entry."""
        documents = int(self.document.max()) + 1
        keys, entry = np.unique(self.cell[self.row] * documents + self.document, return_inverse=True)
        return entry, keys // documents, keys % documents

    def usual(self) -> NDArray[np.bool_]:
        """Return which lists have more than half of their documents among those that their cell shows most often."""
        entry, cell, _ = self.entries()
        often = place_within(cell, -np.bincount(entry))[entry] < self.lengths[self.row]
        return np.asarray(2 * np.bincount(self.row, often, len(self.cell)) > self.lengths)

    def sides(self) -> tuple[_Side, _Side]:
        """Return what the two sides show."""
        entry, cell, document = self.entries()
        shortest = np.full(self.cells, np.iinfo(np.int64).max)
        np.minimum.at(shortest, self.cell, self.lengths)
        half = (shortest // 2)[self.cell[self.row]]
        found = []
        for side in (~self.other, self.other):
            there = side[self.row]
            upper = np.bincount(entry, there & (self.place < half), len(cell))
            n = np.bincount(self.cell[side], minlength=self.cells)[cell].astype(np.float64)
            s, a = 1.0 - upper / n, 1.0 - np.bincount(entry, there, len(cell)) / n
            # of a - s^2, to first order: that of 1 (missing) - 2 s 1 (not in the upper half)
            variance = a * (1.0 - 2.0 * s) ** 2 + (s - a) * (2.0 * s) ** 2 - (a - 2.0 * s * s) ** 2
            lists: Floats = np.bincount(document, n).astype(np.float64)
            missing: Floats = np.bincount(document, n * a).astype(np.float64)
            excess = missing - np.bincount(document, n * s * (n * s - 1.0) / (n - 1.0))
            error = np.sqrt(np.bincount(document, n * np.maximum(variance, 0.25 / n)))
            found.append(_Side(lists, missing, excess, error, np.bincount(document, upper) > OFTEN * lists))
        return found[0], found[1]
