"""An aggregated log as arrays: its query-document pairs, its counts per period, and its single impressions."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.ragged import query_sums
from saferank.engine.types.ranking_data import RankingData
from saferank.files.arrow_tables import numbered, text_array
from saferank.logs.aggregated_log import AggregatedLog, pair_ids, places_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def shown_pairs(aggregated: AggregatedLog, also: RankingData | None = None) -> RankingData:
    """Return the queries and documents that the log shows, and those of `also`, sorted, without any feature."""
    rows = aggregated.shown_counts.select(["query_id", "document_id"])
    if also is not None:
        rows = pa.concat_tables([rows, pa.table(pair_ids(also), names=rows.column_names)])
    pairs = rows.group_by(["query_id", "document_id"]).aggregate([])
    pairs = pairs.sort_by([("query_id", "ascending"), ("document_id", "ascending")])  # the same in every run
    if pairs.num_rows == 0:
        raise DataError("shows no document; there is nothing to diagnose.", file=aggregated.source)
    query, query_ids = numbered(pairs["query_id"])
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    return RankingData(
        features=np.zeros((len(pairs), 0), np.float32),
        offsets=np.append(starts, len(pairs)),
        query_ids=query_ids,
        document_ids=text_array(pairs["document_id"]),
        feature_names=(),
        source=aggregated.source,
    )


def place_within(group: Integers, by: NDArray[np.number]) -> Integers:
    """Return how many members of its group each member comes after, sorted by these values.

    >>> place_within(np.array([0, 1, 0, 1]), np.array([5, 2, 3, 4])).tolist()
    [1, 0, 0, 1]
    """
    order = np.lexsort((by, group))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    return place


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

    def of(self, chosen: NDArray[np.bool_] | Integers) -> Self:
        """Return the entries that a mask or indices choose."""
        names = ("document", "query", "rank", "period", "shown", "clicked")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def in_blocks(self, blocks: int) -> Self:
        """Return the counts over so many stretches of consecutive periods with about as much shown in each."""
        before = np.cumsum(np.bincount(self.period, self.shown, self.periods)) - 1
        block = np.minimum(before * blocks // max(int(self.shown.sum()), 1), blocks - 1).astype(np.int64)
        return self.with_periods(np.unique(block, return_inverse=True)[1])

    def with_periods(self, other: Integers) -> Self:
        """Return the counts with each period renumbered; periods that get the same number are summed."""
        return replace(self, period=other[self.period], periods=int(other.max()) + 1).summed()

    def summed(self) -> Self:
        """Return entries in any order, and several of the same place, as this class promises them."""
        key = (self.document * self.ranks + self.rank) * self.periods + self.period
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        shown, clicked = (np.bincount(inverse, of).astype(np.int64) for of in (self.shown, self.clicked))
        return replace(self.of(first), shown=shown, clicked=clicked)


def period_counts(aggregated: AggregatedLog, pairs: RankingData) -> PeriodCounts:
    """Return the counts of an aggregated log whose own pairs are `pairs`."""
    rows = aggregated.shown_counts
    document = places_of(pairs).of_pairs(rows["query_id"], rows["document_id"])
    rank, period = (rows[name].to_numpy().astype(np.int64) for name in ("position", "period"))
    query, shown, clicked = pairs.query_of_document[document], rows["shown"].to_numpy(), rows["clicked"].to_numpy()
    periods = max(int(period.max()) + 1, len(aggregated.periods))
    return PeriodCounts(document, query, rank - 1, period, shown, clicked, aggregated.cutoff, periods).summed()


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
    moment: Integers | None = None
    """Number of the exact time, in their order, -1 where there is none; None if there is none at all."""
    unit: Integers | None = None
    """Number of the user or session, if the log was aggregated with such units."""
    groups: dict[str, Integers] = field(default_factory=dict)
    """Columns of the log with few values (device, country) -> number of the value of each row."""

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each impression's rows."""
        return query_sums(values, self.offsets)

    def sums_above(self, values: Floats) -> Floats:
        """Return for each row the sum of the values of the rows above it in its impression."""
        before = np.cumsum(values) - values
        return before - np.repeat(before[self.offsets[:-1]], np.diff(self.offsets))

    def counts(
        self, by: Integers, pairs: RankingData, ranks: int, *, rows: Integers | slice = slice(None), by_period: bool
    ) -> PeriodCounts:
        """Count rows of the sample by a number of each in place of its period.

        With `by_period`, queries and documents of different periods are different ones.
        """
        document, rank, period = self.document[rows], self.rank[rows], self.period[rows]
        query, clicked = pairs.query_of_document[document], self.click[rows].astype(np.int64)
        if by_period:
            document, query = (row * (int(period.max(initial=0)) + 1) + period for row in (document, query))
        shown, numbers = np.ones(len(by), np.int64), int(by.max()) + 1
        return PeriodCounts(document, query, rank, by, shown, clicked, ranks, numbers).summed()


def sampled_impressions(aggregated: AggregatedLog, pairs: RankingData) -> SampledImpressions | None:
    """Return the sample of an aggregated log, or None if it has none."""
    rows = aggregated.sample
    if rows is None or len(rows) == 0:
        return None
    impression, position = (rows[name].to_numpy().astype(np.int64) for name in ("impression", "position"))
    order = np.lexsort((position, impression))
    hour, moment = (rows[name].fill_null(-1).to_numpy().astype(np.int64) for name in ("hour", "moment"))
    starts = np.flatnonzero(np.diff(impression[order], prepend=-1))
    names = aggregated.manifest.get("groups") or []
    groups = pc.list_flatten(rows["groups"]).to_numpy().astype(np.int64).reshape(-1, max(len(names), 1))
    return SampledImpressions(
        offsets=np.append(starts, len(order)),
        document=places_of(pairs).of_pairs(rows["query_id"], rows["document_id"])[order],
        rank=position[order] - 1,
        click=rows["click"].to_numpy()[order].astype(np.float64),
        period=rows["period"].to_numpy()[order].astype(np.int64),
        hour=None if rows["hour"].null_count == len(rows) else hour[order],
        moment=None if rows["moment"].null_count == len(rows) else moment[order],
        unit=None if rows["unit"].null_count == len(rows) else codes(rows["unit"])[order],
        groups={name: groups[order, place] for place, name in enumerate(names)},
    )


def in_other_half(sample: SampledImpressions, first: Integers, cell: Integers) -> NDArray[np.bool_]:
    """Return which impressions, given by their first rows, are in the second of two halves of each cell.

    Chance in one half says nothing about the other: they hold different users, or else earlier and later impressions.
    """
    if sample.unit is not None:
        return np.asarray(sample.unit[first] % 2 == 1)
    time = np.arange(len(first)) if sample.moment is None else sample.moment[first]
    return np.asarray(2 * place_within(cell, time) >= np.bincount(cell)[cell])


def compact(keys: Integers) -> Integers:
    """Return the keys, renumbered without gaps if counting by them would take far more room than they do."""
    if len(keys) == 0 or int(keys.max()) < 8 * len(keys):
        return keys
    numbers: Integers = np.unique(keys, return_inverse=True)[1]
    return numbers


def codes(values: pa.ChunkedArray) -> Integers:
    """Return a number for each text, the same for the same text; -1 where there is none."""
    return np.asarray(values.combine_chunks().dictionary_encode().indices.fill_null(-1)).astype(np.int64)
