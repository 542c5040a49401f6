"""Chi-square tests of homogeneity summed over many small tables, with exact moments."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tables:
    """Chi-square / n of each table of counts, with its exact mean and variance given both margins.

    Given row totals and column totals, all assignments of the n counted items to columns are equally likely if rows
    and columns are independent. Chi-square / n is tr(A B) for the projections A and B onto rows and columns, whose
    mean and variance over all permutations depend on the margins only (Kazi-Aoual et al. 1995, "Refined
    approximations to permutation tests for multivariate inference", Comput. Stat. Data Anal. 20). No expected count
    needs to be large. A table of fewer than 4 items, one row or one column has variance 0.
    """

    statistic: Floats
    mean: Floats
    variance: Floats
    items: Floats
    """Counted items of each table."""


def chi_square_tables(table: Integers, row: Integers, column: Integers, count: Integers) -> Tables:
    """Test each table by itself. `table`, `row` and `column` number the place of each `count`, all from 0.

    Rows and columns of different tables have different numbers; places that are not listed hold 0.
    """
    some = count > 0
    table, row, column, count = table[some], row[some], column[some], count[some].astype(np.float64)
    tables = int(table.max()) + 1 if len(table) else 0
    row_total, column_total = np.bincount(row, count), np.bincount(column, count)
    items = np.bincount(table, count, tables).astype(np.float64, copy=False)
    square = np.bincount(table, count * count / (row_total[row] * column_total[column]), tables)
    # each place of a row carries its share of the row, so that a sum over places is one over rows
    row_share, column_share = count / row_total[row], count / column_total[column]
    rows, columns = (np.rint(np.bincount(table, share, tables)) for share in (row_share, column_share))
    row_inverse = np.bincount(table, row_share / row_total[row], tables)
    column_inverse = np.bincount(table, column_share / column_total[column], tables)
    large = (items >= 4) & (rows >= 2) & (columns >= 2)
    n = np.where(large, items, 4.0)
    a, b = np.where(large, rows - 1, 0.0), np.where(large, columns - 1, 0.0)  # ranks of the projections
    a_diagonal, b_diagonal = (
        inverse - (2.0 * rank + 1.0) / n for inverse, rank in ((row_inverse, a), (column_inverse, b))
    )
    even = 2.0 * (a * (n - 1 - a)) * (b * (n - 1 - b)) / ((n - 1) ** 2 * (n + 1) * (n - 2))
    uneven = [
        n * (n + 1) * diagonal - (n - 1) * (rank * rank + 2 * rank)
        for diagonal, rank in ((a_diagonal, a), (b_diagonal, b))
    ]
    variance = even + uneven[0] * uneven[1] / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    variance = np.where(large & (variance > 1e-12), variance, 0.0)
    return Tables(
        statistic=np.where(variance > 0, square - 1.0, 0.0),
        mean=np.where(variance > 0, a * b / (n - 1), 0.0),
        variance=variance,
        items=items,
    )


def deviate_of_sum(
    tables: Tables, weight: Floats, group: Integers | None = None, groups: int = 1, *, explained: Floats | float = 0.0
) -> float:
    """Return the weighted sum of independent tables as a normal deviate; 0 if no table can be tested.

    Tables of one group are independent; groups may depend on each other in any way, so their standard deviations are
    added up. The shape of the distribution is Pearson's type III: sums of a few chi-squares have a long right tail,
    which a plain excess / deviation would take for a finding. The third cumulant of each table is assumed to be that of
    the gamma distribution with its mean and variance. `explained`: by how much the statistic of each exceeds its mean
    for a harmless reason.
    """
    some = tables.variance > 0
    group = np.zeros(len(weight), np.int64) if group is None else group
    weight = np.where(some, weight, 0.0) / max(float(weight[some].max(initial=0.0)), 1e-300)
    third = np.divide(2 * tables.variance**2, tables.mean, out=np.zeros_like(weight), where=some)
    excess = np.bincount(group, weight * (tables.statistic - tables.mean - explained), groups)
    variance = np.bincount(group, weight**2 * tables.variance, groups)
    cumulant = np.bincount(group, weight**3 * third, groups)
    skewness = np.divide(cumulant, variance**1.5, out=np.zeros_like(cumulant), where=variance > 0)
    deviation = float(np.sqrt(variance).sum())
    return deviate(float(excess.sum()) / deviation, float(skewness.max())) if deviation > 0 else 0.0


def deviate(standardised: float, skewness: float) -> float:
    """Normal deviate of a standardised value of a gamma-like distribution (Wilson and Hilferty 1931)."""
    if skewness < 1e-6:
        return standardised
    freedom = 8.0 / skewness**2
    ratio = max(1.0 + standardised * math.sqrt(2.0 / freedom), 0.0)
    step = 2.0 / (9.0 * freedom)
    return float((ratio ** (1.0 / 3.0) - (1.0 - step)) / math.sqrt(step))
