import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from saferank.engine.errors import UsageError
from saferank.engine.student_t import t_quantile, t_two_sided
from saferank.lab.significance import summarise, t_test


@given(t=st.floats(-200.0, 200.0), freedom=st.floats(1.0, 1000.0))
@example(t=1e-9, freedom=1.0)
@example(t=1e-5, freedom=1000.0)
def test_two_sided_tail_agrees_with_scipy(t: float, freedom: float) -> None:
    # near 0 SciPy is off by up to 3e-9; there the tail is a straight line
    line, tail = 1.0 - 2.0 * stats.t.pdf(0.0, freedom) * abs(t), 2.0 * stats.t.sf(abs(t), freedom)
    assert t_two_sided(t, freedom) == pytest.approx(line if abs(t) <= 1e-5 else tail, rel=1e-10, abs=1e-290)


@given(probability=st.floats(1e-6, 1.0 - 1e-6), freedom=st.floats(1.0, 1000.0))
def test_quantile_agrees_with_scipy(probability: float, freedom: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-8, abs=1e-8)


def test_ends_of_the_t_distribution() -> None:
    assert t_two_sided(0.0, 9.0) == 1.0
    assert t_two_sided(math.inf, 9.0) == 0.0
    assert t_quantile(0.5, 3.0) == pytest.approx(0.0, abs=1e-12)
    # One degree of freedom is the Cauchy distribution: P(|T| >= 1) = 1/2.
    assert t_two_sided(1.0, 1.0) == pytest.approx(0.5, rel=1e-14)


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
    assert math.isnan(t_test([0.4], [0.3, 0.5]))
    assert math.isnan(t_test([0.3, 0.5], [0.4]))


@pytest.mark.parametrize("equal_variance", [True, False])
@pytest.mark.parametrize(("first", "second"), [(2, 2), (10, 10), (3, 12)])
def test_t_test_agrees_with_scipy(first: int, second: int, equal_variance: bool) -> None:
    draw = np.random.default_rng([first, second])
    a, b = draw.normal(0.43, 0.001, first), draw.normal(0.432, 0.01, second)
    expected = stats.ttest_ind(a, b, equal_var=equal_variance).pvalue
    assert t_test(a, b, equal_variance=equal_variance) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("equal_variance", [True, False])
def test_samples_that_do_not_vary(equal_variance: bool) -> None:
    assert t_test([0.5, 0.5], [0.5, 0.5], equal_variance=equal_variance) == 1.0
    assert t_test([0.5, 0.5], [0.25, 0.25], equal_variance=equal_variance) == 0.0


def test_what_cannot_mean_anything() -> None:
    with pytest.raises(UsageError, match=r"needs a flat array of one value or more, got shape \(0,\)"):
        summarise([])
    with pytest.raises(UsageError, match=r"level is the confidence of an interval, between 0 and 1; got 80"):
        summarise([0.1, 0.2], level=80)
    with pytest.raises(UsageError, match="a probability between 0 and 1; got 1"):
        t_quantile(1.0, 3.0)
