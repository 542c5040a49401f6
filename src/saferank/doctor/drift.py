"""Whether demand or the ranker changed while the log was written, and whether rankings depend on the user."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.homogeneity import Tables, chi_square_tables, deviate_of_sum
from saferank.doctor.log_arrays import PeriodCounts, SampledImpressions, compact
from saferank.engine.types.ranking_data import RankingData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Test = Callable[[PeriodCounts], tuple[Tables, Floats, float]]
"""Returns the tables of a test, what each rests on, and the normal deviate of their sum."""

SIGNIFICANT = 4.0
"""Normal deviate from which a change is believed: one clean log in 30,000 by each of two resolutions."""
SIGNIFICANT_BY_USER = 2.6
"""Normal deviate from which rankings are taken to depend on the user: one clean log in 200. Users seldom repeat a
query, so the test has little data, and no other test finds what it misses."""
BLOCKS = 4
"""Stretches of the log that are compared beside its periods: slow changes hide in the noise of many short periods."""
SCALINGS = 5
"""Rounds in which rates and common factors of periods are fitted to each other."""
MOST_BOUNDARIES = 60
"""Boundaries between periods that are tried for the largest change."""
MOST_ENTRIES = 200_000
"""Counts that are used for this; of a larger log, some queries are enough."""
FEW_REPEATED = 0.05
"""Share of the clicks on documents that were shown at the same rank in several periods, below which drift of demand
cannot be tested."""


@dataclass(frozen=True)
class Drift:
    """A test of whether something is the same in all periods of a log, or for all users."""

    z: float = 0.0
    """Normal deviate; far above 0 if something differs."""
    size: float = 0.0
    """Demand: by how much click-through of a document at a rank varies between periods, relative to its mean (a
    standard deviation). Ranker: by how much less often two interactions of a query agree on the document at a rank if
    they are of different periods, or users."""
    cells: int = 0
    """Documents at a rank (demand), or ranks of a query (ranker), that can be compared."""
    repeated: float = 0.0
    """Share of the clicks (demand) or of what was shown (ranker) in such cells; of users, the share of what was shown
    in queries which some user issued twice."""
    boundary: int | None = None
    """The first period after the largest change, if there is one."""
    least: float = SIGNIFICANT
    """Normal deviate from which the difference is beyond chance."""

    @property
    def significant(self) -> bool:
        """Whether the difference is beyond chance."""
        return self.z > self.least


def demand_drift(counts: PeriodCounts) -> Drift:
    """Test whether click-through of the same (query, document, rank) changes over periods.

    Given their total, the clicks of a cell are distributed over what was shown as if drawn at random, whatever its
    relevance and examination; so the chi-square of each cell has exact moments. Cells are summed with weights that are
    best against equal relative changes, at two resolutions: periods, and four stretches of them.
    Periods in which everything is clicked more often (weekends) do not count as drift.
    """
    return _drift(counts, _demand_test, _relative_change)


def demand_by_group(counts: PeriodCounts) -> Drift:
    """Test whether click-through of the same (query, document, rank) differs between groups, numbered as periods are.

    Groups that click more often, or look further down, differ by a factor that the documents at a rank share; that does
    not count.
    """
    of_rank = replace(counts, period=counts.period * counts.ranks + counts.rank, periods=counts.periods * counts.ranks)
    tables, clicks, z = _demand_test(of_rank)
    compared = tables.variance > 0
    repeated = float(clicks[compared].sum() / max(clicks.sum(), 1.0))
    return Drift(z, _relative_change(counts) if z > SIGNIFICANT else 0.0, int(compared.sum()), repeated)


def ranker_moved(counts: PeriodCounts) -> Drift:
    """Test whether the documents at each rank of a query change over periods.

    If rankings are drawn from one policy throughout, which documents stood at a rank in which period is a table with
    independent rows and columns. Tables of different queries are independent; those of different ranks of a query
    are not, and their deviations are added up as if they always erred together, which is cautious.
    """
    return _drift(counts, _ranker_test, _disagreement)


def personalised(sample: SampledImpressions | None, pairs: RankingData, ranks: int, *, by_period: bool) -> Drift:
    """Test whether rankings depend on the user: the test of `ranker_moved`, with users in place of periods.

    On the sample, and within periods if the ranker changes over time. Needs units, and users who repeat a query.
    """
    if sample is None or sample.unit is None:
        return Drift(least=SIGNIFICANT_BY_USER)
    counts = sample.counts(np.unique(sample.unit, return_inverse=True)[1], pairs, ranks, by_period=by_period)
    z = _ranker_test(counts)[2]
    again = np.unique(np.stack([counts.query, counts.period]), axis=1, return_inverse=True)[1].ravel()
    at_top = counts.rank == 0
    times = np.bincount(again[at_top], counts.shown[at_top], int(again.max()) + 1)
    repeated = float(counts.shown[times[again] > 1].sum() / counts.shown.sum())
    size = _disagreement(counts) if z > SIGNIFICANT_BY_USER else 0.0
    return Drift(z, size, repeated=repeated, least=SIGNIFICANT_BY_USER)


def _drift(counts: PeriodCounts, test: Test, size: Callable[[PeriodCounts], float]) -> Drift:
    """Run a test at both resolutions; if it finds a change, measure it and find when it was largest."""
    if counts.periods < 2:
        return Drift()
    resolutions = [counts] if counts.periods <= BLOCKS else [counts, counts.in_blocks(BLOCKS)]
    found = [test(one) for one in resolutions]
    tables, amount, _ = found[0]
    z = max(deviate for _, _, deviate in found)
    compared = tables.variance > 0
    return Drift(
        z=z,
        size=max(map(size, resolutions)) if z > SIGNIFICANT else 0.0,
        cells=int(compared.sum()),
        repeated=float(amount[compared].sum() / max(amount.sum(), 1)),
        boundary=_boundary(counts, test) if z > SIGNIFICANT else None,
    )


def _boundary(counts: PeriodCounts, test: Test) -> int:
    """Return the period before which and from which on the log differs most."""
    step = -(-len(counts.query) // MOST_ENTRIES)
    counts = counts.of(counts.query % step == 0) if step > 1 else counts
    tried = np.unique(np.linspace(1, counts.periods - 1, min(MOST_BOUNDARIES, counts.periods - 1)).astype(np.int64))
    period = np.arange(counts.periods)
    found = [test(counts.with_periods((period >= first).astype(np.int64)))[2] for first in tried]
    return int(tried[int(np.argmax(found))])


def _cells(counts: PeriodCounts) -> Integers:
    """Number the (document, rank) pairs from 0; entries are sorted by them."""
    return np.cumsum(np.diff(counts.document * counts.ranks + counts.rank, prepend=-1) != 0) - 1


def _demand_test(counts: PeriodCounts) -> tuple[Tables, Floats, float]:
    """Test the tables click x period of each cell."""
    cell = _cells(counts)
    entry = np.arange(len(cell))
    tables = chi_square_tables(
        np.concatenate([cell, cell]),
        np.concatenate([2 * cell, 2 * cell + 1]),
        np.concatenate([entry, entry]),
        np.concatenate([counts.clicked, counts.shown - counts.clicked]),
    )
    clicks = np.bincount(cell, counts.clicked).astype(np.float64)
    rate = clicks / tables.items
    weight = np.divide(rate, tables.variance, out=np.zeros_like(rate), where=tables.variance > 0)
    return tables, clicks, deviate_of_sum(tables, weight, explained=_season(counts, cell, rate))


def _season(counts: PeriodCounts, cell: Integers, rate: Floats) -> Floats:
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
    variance = np.bincount(cell, counts.shown * relative**2) / shown
    return trust * variance * np.divide(rate, 1.0 - rate, out=np.zeros_like(rate), where=rate < 1.0)


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


def _ranker_test(counts: PeriodCounts) -> tuple[Tables, Floats, float]:
    """Test the tables document x period of each (query, rank)."""
    table, column = _tables(counts)
    tables = chi_square_tables(table, _cells(counts), column, counts.shown)
    rank = np.zeros(len(tables.items), np.int64)
    rank[table] = counts.rank
    weight = np.divide(1.0, tables.variance, out=np.zeros_like(tables.variance), where=tables.variance > 0)
    return tables, tables.items, deviate_of_sum(tables, weight, rank, counts.ranks)


def _tables(counts: PeriodCounts) -> tuple[Integers, Integers]:
    """Number the (query, rank) of each entry, and its (query, rank, period)."""
    table = np.unique(counts.query * counts.ranks + counts.rank, return_inverse=True)[1]
    return table, compact(table * counts.periods + counts.period)


def _disagreement(counts: PeriodCounts) -> float:
    """Chance that two interactions of a query show the same document at a rank: of one period minus of two.

    The mean over pairs of interactions of two periods g and h of (a(g, g) + a(h, h)) / 2 - a(g, h), which is never
    negative but by chance: a period with more interactions, or with longer lists, does not count for more on one side.
    """
    column = _tables(counts)[1]
    counts = counts.of(np.bincount(column, counts.shown)[column] >= 2)
    if len(counts.shown) == 0:
        return 0.0
    cell, shown = _cells(counts), counts.shown.astype(np.float64)
    table, column = _tables(counts)
    in_cell, in_column, in_table = (np.bincount(key, shown) for key in (cell, column, table))
    others = np.bincount(column, (in_table[table] - in_column[column]) * shown / in_column[column])
    agree = np.bincount(column, shown * (shown - 1.0)) / np.maximum(in_column * (in_column - 1.0), 1.0)
    other_same = float((in_cell**2).sum() - (shown**2).sum())
    other_pairs = float((in_table**2).sum() - (in_column**2).sum())
    return (float((agree * in_column * others).sum()) - other_same) / other_pairs if other_pairs > 0 else 0.0
