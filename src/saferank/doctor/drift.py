"""Whether demand or the ranker changed while the log was written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.homogeneity import Tables, chi_square_tables, weighted_sums
from saferank.doctor.period_counts import PeriodCounts, compact

SIGNIFICANT = 4.0
"""Normal deviate from which a change is believed: one clean log in 30,000 by each of two resolutions."""
BLOCKS = 4
"""Stretches of the log that are compared beside its periods: slow changes hide in the noise of many short periods."""
SCALINGS = 5
"""Rounds in which rates and common factors of periods are fitted to each other."""
MOST_BOUNDARIES = 60
"""Boundaries between periods that are tried for the largest change."""
MOST_ENTRIES = 200_000
"""Counts that this is done with; of a larger log, some queries tell as well."""
FEW_REPEATED = 0.05
"""Share of the clicks on documents that were shown at the same rank in several periods, below which drift of demand
cannot be tested."""


@dataclass(frozen=True)
class Drift:
    """A test of whether something stayed the same over the periods of a log."""

    z: float
    """Normal deviate; far above 0 if something changed."""
    size: float
    """Demand: by how much click-through of a document at a rank varies between periods, relative to its mean (a
    standard deviation). Ranker: by how much less often two interactions of a query agree on the document at a rank if
    they are of different periods."""
    cells: int
    """Demand: documents at a rank; ranker: ranks of a query; that say anything."""
    repeated: float
    """Share of the clicks (demand) or of what was shown (ranker) that lies in such cells."""
    boundary: int | None = None
    """The first period after the largest change, if there is one."""

    @property
    def significant(self) -> bool:
        """Whether the change is beyond chance."""
        return self.z > SIGNIFICANT


def demand_drift(counts: PeriodCounts) -> Drift:
    """Test whether click-through of the same (query, document, rank) changes over periods.

    Given how often it was clicked in all, the clicks of a cell are spread over what was shown as if drawn at random,
    whatever its relevance and examination; so the chi-square of each cell has exact moments. Cells are summed with
    weights that are best against equal relative changes, at two resolutions: periods, and four stretches of them.
    Periods in which everything is clicked more often (weekends) do not count as drift.
    """
    if counts.periods < 2:
        return Drift(0.0, 0.0, 0, 0.0)
    resolutions = [counts] if counts.periods <= BLOCKS else [counts, counts.in_blocks(BLOCKS)]
    found = [_demand(one) for one in resolutions]
    z = max(deviation for _, deviation in found)
    tables, _ = found[0]
    tells = tables.variance > 0
    cell = _cells(counts)
    clicks = np.bincount(cell, counts.clicked)
    return Drift(
        z=z,
        size=max(_relative_change(one) for one in resolutions) if z > SIGNIFICANT else 0.0,
        cells=int(tells.sum()),
        repeated=float(clicks[tells].sum() / max(clicks.sum(), 1)),
        boundary=_boundary(counts, lambda one: _demand(one)[1]) if z > SIGNIFICANT else None,
    )


def ranker_moved(counts: PeriodCounts) -> Drift:
    """Test whether the documents that stand at each rank of a query change over periods.

    If rankings are drawn from one policy throughout, which documents stood at a rank in which period is a table with
    independent rows and columns. Tables of different queries are independent; those of different ranks of a query
    are not, and their deviations are added up as if they always erred together, which is cautious.
    """
    if counts.periods < 2:
        return Drift(0.0, 0.0, 0, 0.0)
    resolutions = [counts] if counts.periods <= BLOCKS else [counts, counts.in_blocks(BLOCKS)]
    z = max(ranker_deviate(one) for one in resolutions)
    tables, _ = _placements(counts)
    tells = tables.variance > 0
    return Drift(
        z=z,
        size=max(disagreement(one) for one in resolutions) if z > SIGNIFICANT else 0.0,
        cells=int(tells.sum()),
        repeated=float(tables.items[tells].sum() / max(tables.items.sum(), 1)),
        boundary=_boundary(counts, ranker_deviate) if z > SIGNIFICANT else None,
    )


def ranker_follows_demand(demand: Drift, ranker: Drift) -> bool:
    """Whether both changed: then a document may stand higher on the days when it is wanted, and ranks of different
    periods cannot be compared by its clicks."""
    return demand.significant and ranker.significant


def _cells(counts: PeriodCounts) -> NDArray[np.int64]:
    """Number the (document, rank) pairs from 0; entries are sorted by them."""
    return np.cumsum(np.diff(counts.document * counts.ranks + counts.rank, prepend=-1) != 0) - 1


def _demand(counts: PeriodCounts) -> tuple[Tables, float]:
    """Return the tables click x period of each cell, and the deviate of their sum."""
    cell = _cells(counts)
    entry = np.arange(len(cell))
    tables = chi_square_tables(
        np.concatenate([cell, cell]),
        np.concatenate([2 * cell, 2 * cell + 1]),
        np.concatenate([entry, entry]),
        np.concatenate([counts.clicked, counts.shown - counts.clicked]),
    )
    rate = np.bincount(cell, counts.clicked) / tables.items
    weight = np.divide(rate, tables.variance, out=np.zeros_like(rate), where=tables.variance > 0)
    return tables, weighted_sums(tables, weight, explained=_season(counts, cell, rate)).z


def _season(counts: PeriodCounts, cell: NDArray[np.int64], rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what periods in which everything is clicked more or less often add to chi-square / n of each cell.

        sum over periods of share (g - mean g)^2 rate / (1 - rate),    clicks ~ shown * rate of the cell * g

    A factor g that all documents share moves none of them against another, so it does no harm. It is fitted by
    scaling rates and factors in turn, and shrunk by how much of it chance would make (James and Stein).
    """
    clicks, all_clicks = np.bincount(cell, counts.clicked), np.bincount(counts.period, counts.clicked, counts.periods)
    factor = np.ones(counts.periods)
    for _ in range(SCALINGS):
        exposed = np.bincount(cell, counts.shown * factor[counts.period])
        fitted = np.divide(clicks, exposed, out=np.zeros(len(clicks)), where=exposed > 0)
        expected = np.bincount(counts.period, counts.shown * fitted[cell], counts.periods)
        factor = np.divide(all_clicks, expected, out=np.ones(counts.periods), where=expected > 0)
    chance = float(((factor - 1.0) ** 2 * expected).sum())
    trust = max(1.0 - (counts.periods - 1) / chance, 0.0) if chance > 0 else 0.0
    shown = np.bincount(cell, counts.shown)
    mean = np.bincount(cell, counts.shown * factor[counts.period]) / shown
    relative = factor[counts.period] / np.where(mean > 0, mean, 1.0)[cell] - 1.0
    spread = np.bincount(cell, counts.shown * relative**2) / shown
    return trust * spread * np.divide(rate, 1.0 - rate, out=np.zeros_like(rate), where=rate < 1.0)


def excess_pairs(cell: NDArray[np.int64], shown: NDArray[np.int64], clicked: NDArray[np.int64]) -> tuple[float, float]:
    """Return how many more pairs of clicks on a cell fall into the same period than expected, relatively; and the
    expected number, from pairs of clicks in different periods. One entry per cell and period.

    In a period, E[c (c - 1)] = n (n - 1) rate^2 (1 + deviation^2), the deviation of click-through over periods being
    relative to its mean: the excess estimates its square. 0 if no cell was shown twice in a period and in several.
    """
    n, c = shown.astype(np.float64), clicked.astype(np.float64)
    same_n, same_c = np.bincount(cell, n * (n - 1.0)), np.bincount(cell, c * (c - 1.0))
    all_n, all_c = np.bincount(cell, n), np.bincount(cell, c)
    other_n, other_c = all_n**2 - np.bincount(cell, n * n), all_c**2 - np.bincount(cell, c * c)
    usable = (same_n > 0) & (other_n > 0)
    expected = float((same_n[usable] * other_c[usable] / other_n[usable]).sum())
    return (float(same_c[usable].sum()) / expected - 1.0 if expected > 0 else 0.0), expected


def _relative_change(counts: PeriodCounts) -> float:
    """Estimate the deviation of click-through over periods, relative to its mean."""
    return math.sqrt(max(excess_pairs(_cells(counts), counts.shown, counts.clicked)[0], 0.0))


def _placements(counts: PeriodCounts) -> tuple[Tables, NDArray[np.int64]]:
    """Return the tables document x period of each (query, rank), and their ranks."""
    _, table = np.unique(counts.query * counts.ranks + counts.rank, return_inverse=True)
    column = compact(table * counts.periods + counts.period)
    tables = chi_square_tables(table, _cells(counts), column, counts.shown)
    rank = np.zeros(len(tables.items), np.int64)
    rank[table] = counts.rank
    return tables, rank


def ranker_deviate(counts: PeriodCounts) -> float:
    """Normal deviate of the test that the documents at each rank of a query do not depend on the period."""
    tables, rank = _placements(counts)
    weight = np.divide(1.0, tables.variance, out=np.zeros_like(tables.variance), where=tables.variance > 0)
    return weighted_sums(tables, weight, rank, counts.ranks).z


def disagreement(counts: PeriodCounts) -> float:
    """Chance that two interactions of a query show the same document at a rank: in one period, less in different."""
    cell, shown = _cells(counts), counts.shown.astype(np.float64)
    _, table = np.unique(counts.query * counts.ranks + counts.rank, return_inverse=True)
    column = compact(table * counts.periods + counts.period)
    in_cell, in_column, in_table = (np.bincount(key, shown) for key in (cell, column, table))
    same, pairs = float((shown * (shown - 1)).sum()), float((in_column * (in_column - 1)).sum())
    other_same = float((in_cell**2).sum() - (shown**2).sum())
    other_pairs = float((in_table**2).sum() - (in_column**2).sum())
    return same / pairs - other_same / other_pairs if pairs > 0 and other_pairs > 0 else 0.0


def _boundary(counts: PeriodCounts, deviation: Callable[[PeriodCounts], float]) -> int:
    """Return the period before which and from which on the log differs most."""
    step = -(-len(counts.query) // MOST_ENTRIES)
    counts = counts.of(counts.query % step == 0) if step > 1 else counts
    tried = np.unique(np.linspace(1, counts.periods - 1, min(MOST_BOUNDARIES, counts.periods - 1)).astype(np.int64))
    found = [deviation(counts.with_periods((np.arange(counts.periods) >= first).astype(np.int64))) for first in tried]
    return int(tried[int(np.argmax(found))])
