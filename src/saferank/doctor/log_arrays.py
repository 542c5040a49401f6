"""An aggregated log as arrays: its query-document pairs, its counts per period, and its single impressions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog, Places

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def shown_pairs(aggregated: AggregatedLog, also: RankingData | None = None) -> RankingData:
    """Return the queries and documents that the log shows, and those of `also`, sorted, without any feature."""
    rows = aggregated.shown_counts.select(["query_id", "document_id"])
    if also is not None:
        query_ids, document_ids = also.require_ids()
        of_document = pa.array(query_ids, pa.string()).take(pa.array(also.query_of_document))
        own = pa.table({"query_id": of_document, "document_id": pa.array(document_ids, pa.string())})
        rows = pa.concat_tables([rows, own])
    pairs = rows.group_by(["query_id", "document_id"]).aggregate([])
    pairs = pairs.sort_by([("query_id", "ascending"), ("document_id", "ascending")])  # the same in every run
    if pairs.num_rows == 0:
        raise DataError("shows no document; there is nothing to diagnose.", file=aggregated.source)
    query = pairs["query_id"].combine_chunks().dictionary_encode()
    starts = np.flatnonzero(np.diff(query.indices.to_numpy(zero_copy_only=False), prepend=-1))
    return RankingData(
        features=np.zeros((len(pairs), 0), np.float32),
        offsets=np.append(starts, len(pairs)),
        query_ids=np.array(query.dictionary.to_pylist(), np.str_),
        document_ids=np.array(pairs["document_id"].to_pylist(), np.str_),
        feature_names=(),
        source=aggregated.source,
    )


@dataclass(frozen=True, eq=False)
class PeriodCounts:
    """One entry per (document, rank, period) that was shown, sorted by them; all parts of the log together."""

    document: Integers
    """Row of the query-document pair."""
    query: Integers
    rank: Integers
    """From 0."""
    period: Integers
    shown: Integers
    clicked: Integers
    ranks: int
    periods: int

    def of(self, chosen: NDArray[np.bool_] | Integers) -> PeriodCounts:
        """Return the entries that a mask or indices choose."""
        names = ("document", "query", "rank", "period", "shown", "clicked")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def in_blocks(self, blocks: int) -> PeriodCounts:
        """Return the counts over so many stretches of consecutive periods with about as much shown in each."""
        before = np.cumsum(np.bincount(self.period, self.shown, self.periods)) - 1
        block = np.minimum(before * blocks // max(int(self.shown.sum()), 1), blocks - 1).astype(np.int64)
        return self.with_periods(np.unique(block, return_inverse=True)[1])

    def with_periods(self, other: Integers) -> PeriodCounts:
        """Return the counts with each period renumbered; periods that get the same number are summed."""
        period = other[self.period]
        periods = int(other.max()) + 1
        key = (self.document * self.ranks + self.rank) * periods + period
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return replace(
            self.of(first),
            period=period[first],
            shown=np.bincount(inverse, self.shown).astype(np.int64),
            clicked=np.bincount(inverse, self.clicked).astype(np.int64),
            periods=periods,
        )


def period_counts(aggregated: AggregatedLog, pairs: RankingData, places: Places) -> PeriodCounts:
    """Return the counts of an aggregated log whose own pairs are `pairs`."""
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


def over_all_periods(
    aggregated: AggregatedLog, counts: PeriodCounts, pairs: RankingData, places: Places
) -> LogStatistics:
    """Return the counts of the whole log; `pairs` are its own."""
    cell = counts.document * counts.ranks + counts.rank
    shown, clicked = (
        np.bincount(cell, values, pairs.documents * counts.ranks).astype(np.int64).reshape(-1, counts.ranks)
        for values in (counts.shown, counts.clicked)
    )
    query = places.of_queries(aggregated.patterns["query_id"])
    times = aggregated.patterns["interactions"].to_numpy()
    interactions = np.bincount(query[query >= 0], times[query >= 0], pairs.queries).astype(np.int64)
    return LogStatistics(pairs.offsets, interactions, shown, clicked)


def within_periods(aggregated: AggregatedLog, counts: PeriodCounts, places: Places) -> LogStatistics:
    """Return the counts with each (query, period) as a query of its own, so that only one period is compared.

    Harvesting needs a document's relevance to be the same wherever it was shown. If demand drifts, that holds only
    within a period.
    """
    documents = int(counts.document.max()) + 1
    stratum = counts.query * counts.periods + counts.period
    keys, row = np.unique(stratum * documents + counts.document, return_inverse=True)
    shown, clicked = (np.zeros((len(keys), counts.ranks), np.int64) for _ in range(2))
    shown[row, counts.rank], clicked[row, counts.rank] = counts.shown, counts.clicked
    strata, start = np.unique(keys // documents, return_index=True)
    patterns = aggregated.patterns
    pattern = places.of_queries(patterns["query_id"]) * counts.periods + patterns["period"].to_numpy()
    place = np.minimum(np.searchsorted(strata, pattern), len(strata) - 1)
    known = strata[place] == pattern
    interactions = np.bincount(place[known], patterns["interactions"].to_numpy()[known], len(strata)).astype(np.int64)
    return LogStatistics(np.append(start, len(keys)), interactions, shown, clicked)


@dataclass(frozen=True, eq=False)
class SampledImpressions:
    """All rows of some impressions, sorted by impression and rank; `offsets[i]:offsets[i + 1]` are those of i."""

    offsets: Integers
    document: Integers
    """Row of the query-document pair."""
    rank: Integers
    """From 0."""
    click: Floats
    period: Integers
    hour: Integers | None = None
    """Hour of the day (UTC), -1 where there is none; None if there is none at all."""
    unit: Integers | None = None
    """Number of the user or session, if the log was aggregated with such units."""

    @property
    def impression(self) -> Integers:
        """Impression of each row."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each impression's rows."""
        return np.add.reduceat(values, self.offsets[:-1])

    def sums_above(self, values: Floats) -> Floats:
        """Return for each row the sum of the values of the rows above it in its impression."""
        before = np.cumsum(values) - values
        return before - np.repeat(before[self.offsets[:-1]], np.diff(self.offsets))


def sampled_impressions(aggregated: AggregatedLog, places: Places) -> SampledImpressions | None:
    """Return the sample of an aggregated log, or None if it has none."""
    rows = aggregated.sample
    if rows is None or len(rows) == 0:
        return None
    impression, position = (rows[name].to_numpy().astype(np.int64) for name in ("impression", "position"))
    order = np.lexsort((position, impression))
    hour = rows["hour"].fill_null(-1).to_numpy().astype(np.int64)
    starts = np.flatnonzero(np.diff(impression[order], prepend=-1))
    return SampledImpressions(
        offsets=np.append(starts, len(order)),
        document=places.of_pairs(rows["query_id"], rows["document_id"])[order],
        rank=position[order] - 1,
        click=rows["click"].to_numpy()[order].astype(np.float64),
        period=rows["period"].to_numpy()[order].astype(np.int64),
        hour=None if rows["hour"].null_count == len(rows) else hour[order],
        unit=None if rows["unit"].null_count == len(rows) else codes(rows["unit"])[order],
    )


def compact(keys: Integers) -> Integers:
    """Return the keys, renumbered without gaps if counting by them would take far more room than they do."""
    if len(keys) == 0 or int(keys.max()) < 8 * len(keys):
        return keys
    numbers: Integers = np.unique(keys, return_inverse=True)[1]
    return numbers


def codes(values: pa.ChunkedArray) -> Integers:
    """Return a number for each text, the same for the same text; -1 where there is none."""
    encoded = values.combine_chunks().dictionary_encode()
    indices = encoded.indices if not isinstance(encoded, pa.ChunkedArray) else encoded.combine_chunks().indices
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
