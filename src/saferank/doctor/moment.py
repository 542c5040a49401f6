"""Whether rankings follow demand from hour to hour: a sale, stock, the news, or a ranker that learns from its clicks.

A ranker that shows a product first while it is on sale shows it when it is wanted. Its clicks then overstate how much
it is wanted at other times, even if days, and the same hour of different days, look alike.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions, compact
from saferank.engine.ragged import query_of_document
from saferank.engine.types.ranking_data import RankingData

Integers = NDArray[np.int64]
SIGNIFICANT = 4.0
"""Normal deviate from which it is believed."""
FEW_QUERIES = 30
"""Below so many queries, the periods of a query count as independent, because the sum of few is never far from 0."""
HOURS = (1, 3, 8)
"""Lengths of the blocks of time in which interactions are compared."""
DAY = 24
NOTHING = 1e-9


@dataclass(frozen=True)
class Moment:
    """A test of whether what is shown more often at some time is also clicked more often then."""

    z: float = 0.0
    """Normal deviate."""
    hours: int = 0
    """Length of the blocks that show it most."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance."""
        return self.z > SIGNIFICANT


def follows_moment(sample: SampledImpressions | None, pairs: RankingData, stretches: Integers | None = None) -> Moment:
    """Test whether clicks on a document go with its exposure in other interactions of the same query and time.

        T_q = sum_i sum_d r_i(d) (h_i(d) - mean h),    h_i(d) = mean_{j != i} x_j(d) - mean x(d)

    over interactions i and j of query q in one block of time; those alone in a block are left out. r_i is click minus
    click-through of the document at its rank, x_j the exposure of d in j (1 / rank). Means are over all of the log, or
    over each of the `stretches` (of each period, its number), if a verdict compares within those. Given what was shown,
    T_q has mean 0 if click-through of a document at a rank is the same at all times, or changes in a way that rankings
    do not follow. Queries are independent: each T_q is divided by its deviation if clicks are dealt out anew among the
    same document and rank, and their sum by the root of the sum of squares. Of blocks of several lengths, the one that
    shows it most counts.
    """
    if sample is None or len(sample.document) == 0:
        return Moment()
    impression = query_of_document(sample.offsets)
    hour = np.zeros_like(sample.period) if sample.hour is None else sample.hour
    dated = hour >= 0
    if not dated.any():
        return Moment()
    time, lengths = (sample.period, (1, 3)) if sample.hour is None else (sample.period * DAY + hour, HOURS)
    apart = np.zeros_like(sample.period) if stretches is None else stretches[sample.period]
    rows = _Rows.of(sample, pairs, impression, apart, dated)
    found = [Moment(rows.deviate(time[dated] // length), length) for length in lengths]
    return max(found, key=lambda one: one.z)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The dated rows of a sample, with what is left of each click after the mean of its document at its rank."""

    impression: Integers
    document: Integers
    query: Integers
    """Document and query are numbered anew in each stretch."""
    cluster: Integers
    """Rows of different ones are independent."""
    cell: Integers
    left: NDArray[np.float64]
    spared: NDArray[np.float64]
    """Of each cell: its variance."""
    exposure: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        sample: SampledImpressions,
        pairs: RankingData,
        impression: Integers,
        apart: Integers,
        dated: NDArray[np.bool_],
    ) -> Self:
        rank, click, stretches = sample.rank[dated], sample.click[dated], int(apart.max(initial=0)) + 1
        document = sample.document[dated] * stretches + apart[dated]
        cell = np.unique(document * (int(rank.max(initial=0)) + 1) + rank, return_inverse=True)[1]
        count = np.bincount(cell)
        left = click - (np.bincount(cell, click) / count)[cell]
        spared = np.bincount(cell, left**2) / np.maximum(count - 1, 1)
        query = pairs.query_of_document[sample.document[dated]] * stretches + apart[dated]
        of_period = query * (int(sample.period.max()) + 1) + sample.period[dated]
        cluster = np.unique(query if pairs.queries >= FEW_QUERIES else of_period, return_inverse=True)[1]
        exposure = 1.0 / (1.0 + rank.astype(np.float64))
        return cls(impression[dated], compact(document), compact(query), cluster, cell, left, spared, exposure)

    def deviate(self, block: Integers) -> float:
        """Return the sum over queries as a normal deviate."""
        first = np.flatnonzero(np.diff(self.impression, prepend=-1))
        group = np.unique(self.query * (int(block.max()) + 1) + block, return_inverse=True)[1]
        here = np.bincount(group[first])  # interactions of a query in a block
        asked = np.bincount(self.query[first], minlength=int(self.query.max()) + 1)
        pair = np.unique(self.document * (int(group.max()) + 1) + group, return_inverse=True)[1]
        together = np.bincount(pair, self.exposure)[pair] - self.exposure
        mean = np.bincount(self.document, self.exposure)[self.document] / asked[self.query]
        kept = here[group] > 1
        cell, cluster, left = self.cell[kept], self.cluster[kept], self.left[kept]
        others = together[kept] / (here[group][kept] - 1) - mean[kept]
        others -= (np.bincount(cell, others) / np.maximum(np.bincount(cell), 1))[cell]
        variance = np.bincount(cluster, self.spared[cell] * others**2)
        some = variance > NOTHING * variance.max(initial=0.0)
        sums = np.bincount(cluster, left * others)[some] / np.sqrt(variance[some])
        error = math.sqrt(float(np.square(sums).sum()))
        return float(sums.sum()) / error if error > 0 else 0.0
