"""Whether rankings follow the hour of the day, and whether demand does.

A ranker that shows breakfast products in the morning shows them when they are wanted: their clicks then overstate how
much they are wanted over the whole day. The tests are those of changes between periods, with the buckets of the day,
over all days together, in place of periods.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.drift import FEW_REPEATED, Drift, demand_drift, ranker_moved
from saferank.doctor.log_arrays import PeriodCounts, SampledImpressions
from saferank.engine.types.ranking_data import RankingData

BUCKET = 3
"""Hours of a bucket; doctor's tests also compare four blocks of such buckets."""
MAY_FOLLOW = 2.0
"""Normal deviate of the test of demand from which a ranker that follows the hour is taken to follow demand."""
LEAST_SIZE = 0.01
"""How much less often two interactions of a query agree on the document at a rank, if they are of different buckets,
for a ranker to be said to follow the hour. A ranker that is retrained every night, but not at midnight UTC, differs by
less: each of its versions is shown at nearly all hours."""


@dataclass(frozen=True)
class HourOfDay:
    """Two tests of whether something depends on the hour of the day, on a sample of impressions."""

    demand: Drift
    ranker: Drift

    @property
    def follows_demand(self) -> bool:
        """Whether rankings depend on the hour, and demand seems to, or cannot be tested."""
        may = self.demand.z > MAY_FOLLOW or self.demand.repeated < FEW_REPEATED
        return self.ranker.significant and self.ranker.size >= LEAST_SIZE and may


def hour_of_day(sample: SampledImpressions | None, pairs: RankingData, ranks: int) -> HourOfDay | None:
    """Test whether demand and ranker depend on the hour; None if the sample does not tell two buckets apart."""
    counts = hour_counts(sample, pairs, ranks)
    if counts is None or counts.periods < 2:
        return None
    return HourOfDay(demand_drift(counts), ranker_moved(counts))


def hour_counts(sample: SampledImpressions | None, pairs: RankingData, ranks: int) -> PeriodCounts | None:
    """Count the sample by bucket of the day in place of period; None if it does not have the hour."""
    if sample is None or sample.hour is None:
        return None
    dated = np.flatnonzero(sample.hour >= 0)
    return sample.counts(buckets(sample.hour[dated]), pairs, ranks, rows=dated, by_period=False)


def buckets(hour: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the buckets of the day that occur, from 0."""
    found: NDArray[np.int64] = np.unique(hour // BUCKET, return_inverse=True)[1]
    return found
