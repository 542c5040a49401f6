"""Moments against enumeration, tails against SciPy."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from saferank.doctor.homogeneity import Tables, chi_square_tables, deviate, deviate_of_sum


def one_table(counts: np.ndarray) -> Tables:
    row, column = np.nonzero(counts >= 0)
    return chi_square_tables(np.zeros(len(row), np.int64), row, column, counts[row, column])


@pytest.mark.parametrize(
    ("rows", "columns"), [([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]), ([0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 2, 2])]
)
def test_moments_are_those_over_all_orders(rows: list[int], columns: list[int]) -> None:
    values = []
    for order in permutations(columns):
        counts = np.zeros((3, 3), np.int64)
        np.add.at(counts, (rows, order), 1)
        values.append(one_table(counts).statistic[0])
    found = one_table(counts)
    assert found.mean[0] == pytest.approx(np.mean(values))
    assert found.variance[0] == pytest.approx(np.var(values))
    expected = stats.chi2_contingency(counts[counts.sum(axis=1) > 0], correction=False).statistic / len(rows)
    assert values[-1] == pytest.approx(expected)


def test_tables_that_say_nothing_count_nothing() -> None:
    for counts in ([[3, 4], [0, 0]], [[3, 0], [4, 0]], [[1, 0], [0, 2]], [[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]):
        found = one_table(np.array(counts))
        assert (found.variance[0], found.statistic[0]) == (0.0, 0.0)
    assert deviate_of_sum(found, np.ones(1)) == 0.0


def test_tables_are_tested_apart() -> None:
    one, other = np.array([[5, 1], [2, 6]]), np.array([[3, 3], [4, 1]])
    together = chi_square_tables(
        np.repeat([0, 1], 4),
        np.array([0, 0, 1, 1, 2, 2, 3, 3]),
        np.array([0, 1, 0, 1, 2, 3, 2, 3]),
        np.r_[one.ravel(), other.ravel()],
    )
    for place, counts in enumerate((one, other)):
        alone = one_table(counts)
        assert together.statistic[place] == pytest.approx(alone.statistic[0])
        assert together.variance[place] == pytest.approx(alone.variance[0])
    weight = np.array([1.0, 0.5])
    excess = (together.statistic - together.mean) @ weight
    variance = together.variance @ weight**2
    third = 2 * together.variance**2 / together.mean @ weight**3  # of gammas with these means and variances
    both = deviate_of_sum(together, weight)
    assert both == pytest.approx(deviate(excess / np.sqrt(variance), third / variance**1.5))
    apart = deviate_of_sum(together, weight, np.array([0, 1]), 2)
    assert 0.0 < apart < both  # as if both always erred together


@pytest.mark.parametrize(("freedom", "tail"), [(1, 1e-3), (4, 0.3), (4, 1e-5), (50, 1e-5)])
def test_the_tail_of_chi_square(freedom: int, tail: float) -> None:
    value = (stats.chi2.isf(tail, freedom) - freedom) / np.sqrt(2 * freedom)
    expected = stats.norm.isf(tail)
    assert expected - 0.25 < deviate(value, np.sqrt(8 / freedom)) < expected + 0.02  # rather too small than too large
