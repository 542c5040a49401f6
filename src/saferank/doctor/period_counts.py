"""How often each document was shown and clicked at each rank in each period, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog, Places


@dataclass(frozen=True, eq=False)
class PeriodCounts:
    """One entry per (document, rank, period) that was shown; all parts of the log together."""

    document: NDArray[np.int64]
    """Row of the query-document pair."""
    query: NDArray[np.int64]
    rank: NDArray[np.int64]
    """From 0."""
    period: NDArray[np.int64]
    shown: NDArray[np.int64]
    clicked: NDArray[np.int64]
    ranks: int
    periods: int

    def of(self, chosen: NDArray[np.bool_]) -> PeriodCounts:
        """Return the entries that a mask chooses."""
        names = ("document", "query", "rank", "period", "shown", "clicked")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def in_blocks(self, blocks: int) -> PeriodCounts:
        """Return the counts over so many stretches of consecutive periods with about as much shown in each."""
        before = np.cumsum(np.bincount(self.period, self.shown, self.periods)) - 1
        block = np.minimum(before * blocks // max(int(self.shown.sum()), 1), blocks - 1).astype(np.int64)
        return self.with_periods(np.unique(block, return_inverse=True)[1])

    def with_periods(self, other: NDArray[np.int64]) -> PeriodCounts:
        """Return the counts with each period renamed; periods that get the same name are summed."""
        period = other[self.period]
        periods = int(other.max()) + 1
        key = (self.document * self.ranks + self.rank) * periods + period
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return replace(
            self,
            document=self.document[first],
            query=self.query[first],
            rank=self.rank[first],
            period=period[first],
            shown=np.bincount(inverse, self.shown).astype(np.int64),
            clicked=np.bincount(inverse, self.clicked).astype(np.int64),
            periods=periods,
        )


def period_counts(aggregated: AggregatedLog, pairs: RankingData, places: Places) -> PeriodCounts:
    """Return the counts of an aggregated log, whose own pairs are `pairs`."""
    rows = aggregated.shown_counts
    document = places.of_pairs(rows["query_id"], rows["document_id"])
    period = rows["period"].to_numpy().astype(np.int64)
    counts = PeriodCounts(
        document=document,
        query=pairs.query_of_document[document],
        rank=rows["position"].to_numpy().astype(np.int64) - 1,
        period=period,
        shown=rows["shown"].to_numpy(),
        clicked=rows["clicked"].to_numpy(),
        ranks=aggregated.cutoff,
        periods=int(period.max()) + 1,
    )
    return counts.with_periods(np.arange(counts.periods))


def within_periods(aggregated: AggregatedLog, counts: PeriodCounts, places: Places) -> LogStatistics:
    """Return the counts with each (query, period) as a query of its own: what holds within a period is compared.

    Harvesting needs a document's relevance to be the same wherever it was shown. If demand drifts, that is so within
    a period only.
    """
    stratum = counts.query * counts.periods + counts.period
    row_key = stratum * (int(counts.document.max()) + 1) + counts.document
    keys, row = np.unique(row_key, return_inverse=True)
    shown, clicked = (np.zeros((len(keys), counts.ranks), np.int64) for _ in range(2))
    shown[row, counts.rank], clicked[row, counts.rank] = counts.shown, counts.clicked
    strata, start = np.unique(keys // (int(counts.document.max()) + 1), return_index=True)
    patterns = aggregated.patterns
    pattern = places.of_queries(patterns["query_id"]) * counts.periods + patterns["period"].to_numpy()
    place = np.minimum(np.searchsorted(strata, pattern), len(strata) - 1)
    known = strata[place] == pattern
    interactions = np.bincount(place[known], patterns["interactions"].to_numpy()[known], len(strata)).astype(np.int64)
    return LogStatistics(np.append(start, len(keys)), interactions, shown, clicked)


def compact(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys, renumbered without gaps if counting by them would take far more room than they do."""
    if len(keys) == 0 or int(keys.max()) < 8 * len(keys):
        return keys
    numbers: NDArray[np.int64] = np.unique(keys, return_inverse=True)[1]
    return numbers


def codes(values: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each text, the same for the same text; -1 where there is none."""
    encoded = values.combine_chunks().dictionary_encode()
    indices = encoded.indices if not isinstance(encoded, pa.ChunkedArray) else encoded.combine_chunks().indices
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
