"""Whether rankings depend on the user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saferank.doctor.drift import disagreement, ranker_deviate
from saferank.doctor.period_counts import PeriodCounts
from saferank.doctor.sampled_impressions import SampledImpressions
from saferank.engine.types.ranking_data import RankingData

SIGNIFICANT = 2.6
"""Normal deviate from which rankings are taken to depend on the user: one clean log in 200. Users seldom repeat a
query, so that the test has little to go by, and what it misses is not seen elsewhere."""


@dataclass(frozen=True)
class Personalised:
    """A test of whether two interactions of a query agree more if they are of the same user."""

    z: float
    """Normal deviate; far above 0 if rankings depend on the user."""
    size: float
    """By how much more often two interactions of a query agree on the document at a rank if they are of one user."""
    repeated: float = 0.0
    """Share of what was shown that lies in queries which some user issued twice; 0 without units."""

    @property
    def significant(self) -> bool:
        """Whether the dependence is beyond chance."""
        return self.z > SIGNIFICANT


def personalised(sample: SampledImpressions | None, pairs: RankingData, ranks: int, *, by_period: bool) -> Personalised:
    """Test it on the sample, within periods if the ranker changes over time. Needs units, and users who repeat a query.

    The same test as that of a ranker that changes over time, with users in place of periods.
    """
    if sample is None or sample.unit is None or not len(sample.document):
        return Personalised(0.0, 0.0)
    periods = int(sample.period.max()) + 1 if by_period else 1
    period = sample.period if by_period else np.zeros_like(sample.period)
    document = sample.document * periods + period
    units = np.unique(sample.unit, return_inverse=True)[1]
    order = np.lexsort((units, sample.rank, document))
    counts = PeriodCounts(
        document=document[order],
        query=(pairs.query_of_document[sample.document] * periods + period)[order],
        rank=sample.rank[order],
        period=units[order],
        shown=np.ones(len(order), np.int64),
        clicked=sample.click[order].astype(np.int64),
        ranks=ranks,
        periods=int(units.max()) + 1,
    )
    counts = counts.with_periods(np.arange(counts.periods))
    z = ranker_deviate(counts)
    again = np.unique(np.stack([counts.query, counts.period]), axis=1, return_inverse=True)[1].ravel()
    at_top = counts.rank == 0
    times = np.bincount(again[at_top], counts.shown[at_top], int(again.max()) + 1)
    repeated = float(counts.shown[times[again] > 1].sum() / counts.shown.sum())
    return Personalised(z, disagreement(counts) if z > SIGNIFICANT else 0.0, repeated)
