"""Whether documents that are often shown are missing where a column of the log has some of its values.

What is delivered to one region only, or offered to members alone, is never shown to the others, however high a ranker
would place it. A verdict would credit a new ranker with showing it to everyone.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions, compact, in_other_half
from saferank.engine.types.ranking_data import RankingData

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
SIGNIFICANT = 5.0
"""Normal deviate from which it is believed."""
LEAST_SHARE = 0.02
"""Share of what would be shown from which it may turn a verdict."""
MISSING = 0.05
"""Share of what is expected of a document up to which it counts as missing: regions overlap, and lists are cached."""
CHOSEN = 2.5
"""Standard errors, in each half of the lists, from which a document counts as missing for a value."""
LEAST_PERIODS = 3
"""The last period of a log that is long enough to compare every other period with the rest."""
LEAST_SHOWN = 12
"""Times that a document has to be shown in the sample to be looked at; with fewer it cannot reach CHOSEN twice."""


@dataclass(frozen=True)
class MissingByGroup:
    """What is missing for some values of a column."""

    z: float
    """Normal deviate."""
    share: float
    """Of what would be shown if every document were shown as often as for the other values."""
    documents: int
    """That are missing for a value in both halves of the lists; none if the values changed their meaning between."""
    of_pairs: Floats = field(compare=False)
    """Share of the impressions of its query that each pair is missing from."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance, and large enough to matter."""
        return self.z > SIGNIFICANT and self.share > LEAST_SHARE


def missing_by_group(
    sample: SampledImpressions, value: Integers, pairs: RankingData, *, by_period: bool
) -> MissingByGroup:
    """Compare how often documents are shown for some values of a column with what its other values suggest.

        expected(d, v) = sum over q and k of  lists(q, v, k) * P(rank(d) = k | q, a value at home)

    A document is at home where it is shown more often than on average. `lists` counts those that fill rank k, so that
    nothing is missing from shorter lists, as on small screens. Counts are summed over the queries of a document,
    because what is not delivered is missing from all of them. Where documents are at home, and where they are missing,
    is found on every other day (or in the earlier lists, or in those of half of the users) and has to be so in the
    rest; so chance alone adds nothing. With `by_period`, lists are compared within a period only.

    A ranker that never shows a document for some value looks the same: no log can tell whether it could have.
    """
    first, lengths = sample.offsets[:-1], np.diff(sample.offsets)
    query = pairs.query_of_document[sample.document]
    cell = query * (int(sample.period.max(initial=0)) + 1) + sample.period if by_period else query
    days = sample.unit is None and int(sample.period.max(initial=0)) >= LEAST_PERIODS
    other = sample.period % 2 == 1 if days else np.repeat(in_other_half(sample, first, query[first]), lengths)
    shown, place = np.unique(sample.document, return_inverse=True)
    document = np.asarray(pa.array(pairs.require_ids()[1][shown]).dictionary_encode().indices).astype(np.int64)
    often = np.bincount(document[place]) >= LEAST_SHOWN
    number = np.where(often, np.cumsum(often) - 1, -1)[document]  # of each shown pair; -1: too rare
    sides = [np.flatnonzero(other == side) for side in (False, True)]
    one, rest = (_Half.of_rows(sample, value, cell, number[place], rows) for rows in sides)
    total = variance = 0.0
    missing = np.ones((one.documents, one.values), np.bool_)
    for here, there in ((one, rest), (rest, one)):
        home = here.home()
        low = here.low(home)
        found = there.gap(home, low)
        certain = here.gap(home, low).missing & found.missing
        total += float((found.expected - found.shown)[certain].sum())
        variance += float(found.variance[certain].sum())
        missing &= low & certain[:, None]
    share, issued = np.zeros(pairs.documents), np.bincount(query[first], minlength=pairs.queries)
    for v in np.flatnonzero(missing.any(axis=0)):
        with_value = np.bincount(query[first], value[first] == v, pairs.queries) / np.maximum(issued, 1)
        share[shown] += np.where(number >= 0, missing[number, v], 0.0) * with_value[pairs.query_of_document[shown]]
    return MissingByGroup(
        z=total / math.sqrt(variance) if variance > 0.0 else 0.0,
        share=total / max(len(sample.document) + total, 1.0),
        documents=int(missing.any(axis=1).sum()),
        of_pairs=share,
    )


@dataclass(frozen=True)
class _Gap:
    """How often each document is shown where it seems to be missing, and how often it would be."""

    expected: Floats
    shown: Floats
    variance: Floats
    """Of their difference, if the column does not matter."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether this is beyond chance."""
        rarely = self.shown <= MISSING * self.expected
        return np.asarray(rarely & (self.expected - self.shown > CHOSEN * np.sqrt(self.variance)))


@dataclass(frozen=True, eq=False)
class _Half:
    """Half of the lists. An entry is a document at a rank of a query; an array (document, value) says where."""

    documents: int
    values: int
    of: Integers
    """Document of each entry."""
    at: Integers
    """Place of each entry: a rank of a query."""
    row_place: Integers
    row_value: Integers
    row_entry: Integers
    """-1 for a document that is too rare."""

    @classmethod
    def of_rows(
        cls, sample: SampledImpressions, value: Integers, cell: Integers, document: Integers, rows: Integers
    ) -> "_Half":
        """Return these rows of the sample; documents that are too rare have the number -1."""
        documents, row_document = int(document.max()) + 1, document[rows]
        place = compact(cell[rows] * (int(sample.rank.max()) + 1) + sample.rank[rows])
        known, entry = row_document >= 0, np.full(len(rows), -1)
        keys, entry[known] = np.unique(place[known] * documents + row_document[known], return_inverse=True)
        size = max(documents, 1)
        return cls(documents, int(value.max()) + 1, keys % size, keys // size, place, value[rows], entry)

    def with_value(self, v: int) -> tuple[Integers, Integers]:
        """Return, for each entry, the lists with this value that fill its rank, and those that show it there."""
        here = self.row_value == v
        lists = np.bincount(self.row_place[here], minlength=int(self.row_place.max(initial=0)) + 1)
        entry = self.row_entry[here]
        return lists[self.at], np.bincount(entry[entry >= 0], minlength=len(self.at))

    def sums(self, of_entries: NDArray[np.number]) -> Floats:
        """Return the sum over the entries of each document."""
        return np.bincount(self.of, of_entries, self.documents).astype(np.float64)

    def home(self) -> NDArray[np.bool_]:
        """Return for which values documents are shown at least as often as on average, of (document, value)."""
        lists = np.bincount(self.row_place)[self.at]
        rate = np.bincount(self.row_entry[self.row_entry >= 0], minlength=len(self.at)) / np.maximum(lists, 1)
        found = np.zeros((self.documents, self.values), np.bool_)
        for v in range(self.values):
            mine, shown = self.with_value(v)
            found[:, v] = (expected := self.sums(rate * mine)) <= self.sums(shown)
            found[:, v] &= expected > 0.0
        return found

    def rate_at(self, home: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return how often each entry is shown, in the lists of values at home; and the number of these lists."""
        lists, shown = np.zeros((2, len(self.at)))
        for v in range(self.values):
            mine, of_mine = self.with_value(v)
            lists += home[self.of, v] * mine
            shown += home[self.of, v] * of_mine
        return np.divide(shown, lists, out=np.zeros(len(self.at)), where=lists > 0), lists

    def low(self, home: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for which values documents are hardly shown, of (document, value)."""
        rate, lists = self.rate_at(home)
        found = np.zeros((self.documents, self.values), np.bool_)
        for v in range(self.values):
            mine, shown = self.with_value(v)
            expected = self.sums(rate * mine)
            found[:, v] = (expected > 0.0) & (self.sums(shown * (lists > 0)) <= MISSING * expected)
        return found

    def gap(self, home: NDArray[np.bool_], low: NDArray[np.bool_]) -> _Gap:
        """Return how often documents are shown for the values in `low`, and would be by their rate at `home`."""
        rate, lists = self.rate_at(home)
        mine, shown = np.zeros((2, len(self.at)))
        for v in range(self.values):
            all_mine, of_mine = self.with_value(v)
            mine += low[self.of, v] * all_mine
            shown += low[self.of, v] * of_mine * (lists > 0)
        expected = rate * mine
        ratio = np.divide(mine, lists, out=np.zeros(len(self.at)), where=lists > 0)
        return _Gap(self.sums(expected), self.sums(shown), self.sums(expected * (1.0 + ratio)))
