"""Whether rankings and demand follow a column of the log that tells groups of users apart: device, country, market.

A ranker that shows phone covers on phones shows them to those who want them; for the others, their clicks overstate how
much they are wanted. The tests are those of the hour of the day, with the values of the column in place of hours.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.drift import Drift, demand_by_group, ranker_moved
from saferank.doctor.hour_of_day import MAY_FOLLOW
from saferank.doctor.log_arrays import SampledImpressions
from saferank.doctor.missing_by_group import MissingByGroup, missing_by_group
from saferank.engine.types.ranking_data import RankingData

LEAST_SIZE = 0.005
"""How much less often two interactions of a query agree on the document at a rank, if the column differs, for a ranker
to be said to follow it."""
CERTAIN = 20.0
"""Impressions with a click, or without one, to be expected of a value before it is odd that there are none."""


@dataclass(frozen=True)
class Group:
    """Tests of whether something depends on a column, on a sample of impressions."""

    column: str
    demand: Drift
    ranker: Drift
    missing: MissingByGroup
    """Documents that some values of the column lack."""

    @property
    def moves_ranker(self) -> bool:
        """Whether rankings depend on the column."""
        return self.ranker.significant and self.ranker.size >= LEAST_SIZE

    @property
    def follows_demand(self) -> bool:
        """Whether rankings depend on the column, and demand seems to."""
        return self.moves_ranker and self.demand.z > MAY_FOLLOW


def groups(sample: SampledImpressions | None, pairs: RankingData, ranks: int, *, by_period: bool) -> tuple[Group, ...]:
    """Test every column of groups that the sample has; within periods if the ranker changes over time."""
    if sample is None:
        return ()
    found = []
    for column, value in sample.groups.items():
        if _is_outcome(value[sample.offsets[:-1]], sample.sums(sample.click) > 0):
            continue
        counts = sample.counts(value, pairs, ranks, by_period=by_period)
        ranker = ranker_moved(counts)
        demand = demand_by_group(counts) if ranker.significant else Drift()
        missing = missing_by_group(sample, value, pairs, by_period=by_period)
        found.append(Group(column, demand, replace(ranker, boundary=None), missing))
    return tuple(found)


def _is_outcome(value: NDArray[np.int64], clicked: NDArray[np.bool_]) -> bool:
    """Whether one of the values always means a click, or never: it then tells what users did, and not who they are."""
    impressions, with_click = np.bincount(value), np.bincount(value, clicked)
    rate = clicked.mean()
    never = (with_click == 0) & (impressions * rate > CERTAIN)
    always = (with_click == impressions) & (impressions * (1.0 - rate) > CERTAIN)
    return bool((never | always).any())
