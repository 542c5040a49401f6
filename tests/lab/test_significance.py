"""Intervals and tests over runs, against closed forms, simulation and SciPy's own test of samples."""

import math

import numpy as np
import pytest
from scipy import stats

from saferank.engine.errors import UsageError
from saferank.lab.significance import paired_t_test, summarise


def test_summary_by_hand() -> None:
    summary = summarise([1.0, 2.0, 3.0])
    # Two degrees of freedom: the quantile is (2p - 1) sqrt(2 / (4p (1 - p))) in closed form.
    half = 0.8 * math.sqrt(2.0 / (4.0 * 0.9 * 0.1)) * 1.0 / math.sqrt(3.0)
    assert (summary.runs, summary.mean, summary.deviation) == (3, 2.0, 1.0)
    assert (summary.low, summary.high) == pytest.approx((2.0 - half, 2.0 + half), rel=1e-12)


def test_the_interval_covers_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).normal(size=(4000, 4))
    covered = np.mean([s.low <= 0.0 <= s.high for s in map(summarise, draws)])
    assert abs(covered - 0.8) < 5 * math.sqrt(0.8 * 0.2 / 4000)


def test_one_run_has_neither_interval_nor_test() -> None:
    summary = summarise([0.4])
    assert (summary.runs, summary.mean) == (1, 0.4)
    assert all(math.isnan(value) for value in (summary.deviation, summary.low, summary.high))
    assert math.isnan(paired_t_test([0.1]))
    assert math.isnan(paired_t_test([]))


@pytest.mark.parametrize("runs", [2, 3, 12])
def test_the_test_is_paired(runs: int) -> None:
    draw = np.random.default_rng(runs)
    common = draw.normal(0.4, 0.1, runs)
    a, b = common + draw.normal(0.0, 0.001, runs), common + draw.normal(0.002, 0.001, runs)
    assert paired_t_test(a - b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-10)
    assert paired_t_test(b - a) == paired_t_test(a - b) < stats.ttest_ind(a, b).pvalue


def test_differences_that_do_not_vary() -> None:
    assert paired_t_test([0.0, 0.0]) == 1.0
    assert paired_t_test([0.25, 0.25]) == 0.0


def test_what_has_no_meaning_is_refused() -> None:
    for values, level in (([], 0.8), ([[0.1, 0.2]], 0.8), ([0.1, 0.2], 80.0)):
        with pytest.raises(UsageError):
            summarise(values, level=level)
