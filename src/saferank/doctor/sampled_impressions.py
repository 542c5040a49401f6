"""Single impressions of a log, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.period_counts import codes
from saferank.logs.aggregated_log import AggregatedLog, Places


@dataclass(frozen=True, eq=False)
class SampledImpressions:
    """All rows of some impressions, sorted by impression and rank; `offsets[i]:offsets[i + 1]` are those of i."""

    offsets: NDArray[np.int64]
    document: NDArray[np.int64]
    """Row of the query-document pair."""
    rank: NDArray[np.int64]
    """From 0."""
    click: NDArray[np.float64]
    period: NDArray[np.int64]
    unit: NDArray[np.int64] | None = None
    """Number of the user or session, if the log was aggregated with such units."""

    @property
    def impressions(self) -> int:
        """Number of impressions."""
        return len(self.offsets) - 1

    @property
    def impression(self) -> NDArray[np.int64]:
        """Impression of each row."""
        return np.repeat(np.arange(self.impressions), np.diff(self.offsets))

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the values of the rows of each impression."""
        return np.add.reduceat(values, self.offsets[:-1]) if self.impressions else np.zeros(0)

    def sums_above(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum for each row the values of the rows of its impression that stand above it."""
        before = np.cumsum(values) - values
        return before - np.repeat(before[self.offsets[:-1]], np.diff(self.offsets))


def sampled_impressions(aggregated: AggregatedLog, places: Places) -> SampledImpressions | None:
    """Return the sample of an aggregated log, or None if it has none."""
    rows = aggregated.sample
    if rows is None or len(rows) == 0:
        return None
    impression, position = (rows[name].to_numpy().astype(np.int64) for name in ("impression", "position"))
    order = np.lexsort((position, impression))
    starts = np.flatnonzero(np.diff(impression[order], prepend=-1))
    return SampledImpressions(
        offsets=np.append(starts, len(order)),
        document=places.of_pairs(rows["query_id"], rows["document_id"])[order],
        rank=position[order] - 1,
        click=rows["click"].to_numpy()[order].astype(np.float64),
        period=rows["period"].to_numpy()[order].astype(np.int64),
        unit=None if rows["unit"].null_count == len(rows) else codes(rows["unit"])[order],
    )
