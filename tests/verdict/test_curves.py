"""Which curves a verdict has to hold for, and which logs have none."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from saferank.engine.bounds.verdict_choices import RANGE
from saferank.engine.types.log_statistics import LogStatistics
from saferank.verdict.checks import Refused
from saferank.verdict.curves import (
    CONFIRMS,
    CURVE_SHARE,
    ESTIMATED,
    UNCHECKED,
    Curves,
    curves_for,
)
from tests.shops import World, make_shop, noisy

Array = NDArray[np.float64]
TRUTH = 1.0 / np.arange(1, 5)


def counts(*, sampled: bool, interactions: int = 12_000) -> LogStatistics:
    """A log of 20 queries; examination is 1/k."""
    rng = np.random.default_rng(1)
    shop = make_shop(rng, queries=20, documents=8, cutoff=4)
    world = World(shop, noisy(shop, rng, sampled=sampled))
    log = world.draw(interactions, rng).aggregated(rng)
    return log.statistics(("train", "validation"), shop.data())


@pytest.fixture(scope="module")
def varied() -> LogStatistics:
    return counts(sampled=True)


@pytest.fixture(scope="module")
def fixed() -> LogStatistics:
    return counts(sampled=False)


def test_estimated(varied: LogStatistics) -> None:
    found = curves_for(varied, None)
    assert (found.kind, found.others, found.share()) == (ESTIMATED, (), CURVE_SHARE)
    assert found.covariance is not None
    errors = np.sqrt(np.diag(found.covariance))[1:]
    assert (np.abs(np.log(found.curve / TRUTH))[1:] < 5.0 * errors).all()
    assert (errors < 0.2).all()


def test_a_given_curve_that_the_log_agrees_with(varied: LogStatistics) -> None:
    found = curves_for(varied, 0.6 * TRUTH)  # only ratios matter
    assert found.kind == CONFIRMS
    np.testing.assert_array_equal(found.curve, curves_for(varied, None).curve)
    (other,) = found.others
    np.testing.assert_allclose(other, TRUTH)


def test_a_log_that_cannot_tell(fixed: LogStatistics) -> None:
    for given, within, code in (
        (None, False, "examination-unknown"),
        (TRUTH, False, "examination-unchecked"),
        (None, True, "ranker-follows-demand"),
        (TRUTH, True, "ranker-follows-demand"),
    ):
        with pytest.raises(Refused) as raised:
            curves_for(fixed, given, within=within)
        assert raised.value.code == code


def test_a_log_of_few_queries_cannot_tell_however_many_clicks_they_have(varied: LogStatistics) -> None:
    """An interval from half as many queries would be too narrow."""
    few = varied.subset(np.arange(10))
    assert few.clicks.sum() > 1_000
    with pytest.raises(Refused) as raised:
        curves_for(few, None)
    assert raised.value.code == "examination-unknown"


def test_a_curve_that_is_trusted(fixed: LogStatistics) -> None:
    found = curves_for(fixed, 0.5 * TRUTH, trust=True)
    assert (found.kind, found.covariance, found.share()) == (UNCHECKED, None, 0.0)
    np.testing.assert_allclose(found.curve, TRUTH)
    curves = found.around(lambda curve: float(curve.sum()), 0.05)
    np.testing.assert_allclose(curves, [TRUTH, TRUTH ** (1 - RANGE), TRUTH ** (1 + RANGE)])


def test_a_curve_by_which_less_is_looked_at_than_clicked_is_impossible(fixed: LogStatistics) -> None:
    """Whatever is trusted, and though rankings never vary."""
    rate = fixed.clicked.sum(axis=0) / fixed.shown.sum(axis=0)
    assert curves_for(fixed, np.array([1.0, *1.05 * rate[1:]]), trust=True).kind == UNCHECKED
    with pytest.raises(Refused) as raised:
        curves_for(fixed, np.array([1.0, *0.5 * rate[1:]]), trust=True)
    assert raised.value.code == "examination-contradicted"


def test_an_examination_of_zero_is_refused(varied: LogStatistics) -> None:
    with pytest.raises(Refused) as raised:
        curves_for(varied, np.array([1.0, 0.5, 0.2, 0.0]))
    assert raised.value.code == "examination-zero"


def test_no_curve_as_far_away_is_worse_than_the_ends() -> None:
    """Against random curves of the same Mahalanobis length; the improvement is linear in the log of the curve."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 3))
    covariance = np.zeros((4, 4))
    covariance[1:, 1:] = 1e-2 * root @ root.T
    slope = rng.normal(size=4)

    def improvement(curve: Array) -> float:
        return float(slope @ np.log(curve))

    delta = 0.01
    first, low, high = Curves(ESTIMATED, TRUTH, covariance).around(improvement, delta)
    np.testing.assert_array_equal(first, TRUTH)
    steps = rng.normal(size=(2_000, 3)) @ np.linalg.cholesky(covariance[1:, 1:]).T
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", steps, np.linalg.inv(covariance[1:, 1:]), steps))
    steps *= np.sqrt(stats.chi2.ppf(1.0 - delta, 3)) / lengths[:, None]
    others = [improvement(TRUTH * np.exp(np.append(0.0, step))) for step in steps]
    assert improvement(low) <= min(others) + 0.01 * abs(improvement(low))  # the quantile is approximate
    assert min(others) <= improvement(low) + 0.1 * abs(improvement(low) - improvement(TRUTH))
    assert improvement(high) >= max(others)
    error = np.sqrt(slope @ covariance @ slope)  # of the improvement, by the delta method
    assert improvement(TRUTH) - improvement(low) == pytest.approx(
        np.sqrt(stats.chi2.ppf(1.0 - delta, 3)) * error, rel=1e-2
    )
    assert low[0] == high[0] == 1.0


def test_an_improvement_that_no_curve_moves_has_no_ends() -> None:
    covariance = np.diag([0.0, 0.1, 0.1, 0.1])
    assert len(Curves(ESTIMATED, TRUTH, covariance).around(lambda _: 0.25, 0.05)) == 1
