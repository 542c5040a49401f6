"""What a verdict is foreseen to find, against many verdicts that were drawn."""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.plackett_luce import exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from saferank.learning.foresight import UNPROVEN, Foreseen, Foresight

OFFSETS = np.array([0, 4])
RELEVANCE = np.array([0.2, 0.5, 0.3, 0.6])
LOGGING = np.array([0.5, 0.0, 0.3, -0.2], np.float32)
NEW = np.array([0.3, 0.08, 0.26, 0.0], np.float32)
LOGS, SIZE = 10_000, 60
ONE_SIDED = 1.96
"""Of delta 0.025, half of 0.05: that of a first look."""


def proves(x: NDArray[np.float64], low: float) -> NDArray[np.bool_]:
    """Which rows a verdict proves: the mean is above the width of a bound that allows for a loss of `-low`."""
    size = x.shape[1]
    width = np.hypot(ONE_SIDED * x.std(axis=1, ddof=1) / math.sqrt(size), low * math.log(0.025) / size)
    return np.asarray(x.mean(axis=1) > width)


def draw(
    scores: NDArray[np.float32], examination: NDArray[np.float64], size: int, keep: int, seed: int
) -> LogStatistics:
    rng = np.random.default_rng(seed)
    return simulate(scores, OFFSETS, RELEVANCE, examination, size, rng, keep_rankings=keep)


def foresight(examination: NDArray[np.float64], size: int = SIZE) -> Foresight:
    rho_0 = exposure(LOGGING.astype(np.float64), OFFSETS, examination)
    log = draw(LOGGING, examination, 400_000, 0, seed=1)
    return Foresight(log, examination, RELEVANCE, rho_0, rho_0, size)


@pytest.mark.parametrize(
    ("examination", "slack"),
    [
        (np.array([1.0]), 0.03),  # at most one click per interaction; but few, for a normal distribution
        (np.array([1.0, 0.5]), 0.09),  # those of one interaction are taken to be independent, which foresees too little
    ],
)
def test_gain_and_chance_are_those_of_drawn_verdicts(examination: NDArray[np.float64], slack: float) -> None:
    """X_i = sum of rho / rho_0 - 1 over the clicks of interaction i; proven if its mean is a width above 0."""
    found = foresight(examination).of("new", NEW)
    rho_0, rho = (exposure(scores.astype(np.float64), OFFSETS, examination) for scores in (LOGGING, NEW))
    weight = rho / rho_0 - 1
    assert weight.max() < 1  # no weight is limited
    rankings = draw(LOGGING, examination, LOGS * SIZE, LOGS * SIZE, seed=2).rankings
    assert rankings is not None
    x = (weight[rankings.ranking] * rankings.clicks).sum(axis=1).reshape(LOGS, SIZE)
    assert found.gain == pytest.approx(float(x.mean()), abs=5 * float(x.std()) / math.sqrt(x.size))
    proven = proves(x, float(np.sort(np.minimum(weight, 0.0))[: len(examination)].sum()))
    assert 0.2 < found.chance < 0.9
    error = math.sqrt(proven.mean() * (1 - proven.mean()) / LOGS)
    assert found.chance == pytest.approx(proven.mean(), abs=5 * error + slack)


def test_a_larger_verdict_proves_more_and_gains_the_same() -> None:
    examination = np.array([1.0, 0.5])
    few, many = (foresight(examination, size).of("new", NEW) for size in (50, 5_000))
    assert many.chance > few.chance + 0.3
    assert many.gain == few.gain


def test_the_start_gains_nothing() -> None:
    examination = np.array([1.0, 0.5])
    found = foresight(examination).of("start", LOGGING)
    assert found.gain == pytest.approx(0.0, abs=1e-6)
    worse = foresight(examination).of("worse", (2 * LOGGING - NEW).astype(np.float32))
    assert worse.gain < 0
    assert worse.chance < 0.05


def test_the_gain_is_over_the_start_and_improvement_and_chance_over_the_current_ranker() -> None:
    """Learning that starts from another policy than the logging one."""
    examination = np.array([1.0, 0.5])
    other = replace(foresight(examination), start=exposure(NEW.astype(np.float64), OFFSETS, examination))
    found = other.of("new", NEW)
    assert found.gain == pytest.approx(0.0, abs=1e-6)
    current = foresight(examination).of("new", NEW)
    assert found.chance == current.chance > 0.2
    assert found.improvement == current.improvement == current.gain > 0.001


def test_what_the_log_never_shows_is_gained_but_not_proven() -> None:
    examination = np.array([1.0, 0.5])
    hidden = np.array([0.5, 0.0, 0.3, -np.inf], np.float32)
    rho_0 = exposure(hidden.astype(np.float64), OFFSETS, examination)
    assert rho_0[3] == 0
    log = draw(hidden, examination, 100_000, 0, seed=3)
    new = np.array([-0.5, 0.6, 0.2, -1.5], np.float32)
    plain, liked = (
        Foresight(log, examination, np.array([*RELEVANCE[:3], last]), rho_0, rho_0, 60).of("new", new)
        for last in (0.0, 1.0)
    )
    shown = float(exposure(new.astype(np.float64), OFFSETS, examination)[3])
    assert liked.gain - plain.gain == pytest.approx(shown, rel=1e-3)
    assert liked.chance == plain.chance
    assert 0.01 < plain.chance < 0.99


def test_a_weight_beyond_what_clicks_can_carry_is_limited() -> None:
    """A document that was hardly ever shown: with its whole weight nothing could be proven, with a limited one it can.

    The share of drawn verdicts that prove it with the limit 5 is what is foreseen, or less: 5 may not be the best.
    """
    examination, size = np.array([1.0]), 500
    logging, new = np.array([3.0, 2.5, 2.5, -5.0], np.float32), np.array([2.5, 2.7, 2.5, 0.5], np.float32)
    rho_0, rho = (exposure(scores.astype(np.float64), OFFSETS, examination) for scores in (logging, new))
    log = draw(logging, examination, 1_000_000, 0, seed=4)
    found = Foresight(log, examination, RELEVANCE, rho_0, rho_0, size).of("new", new).chance
    rankings = draw(logging, examination, 1_000_000, 1_000_000, seed=5).rankings
    assert rankings is not None
    weight = np.minimum(rho / rho_0, 5.0) - 1
    x = (weight[rankings.ranking] * rankings.clicks).sum(axis=1).reshape(-1, size)
    proven = proves(x, float(weight.min()))
    assert found == pytest.approx(proven.mean(), abs=0.05)
    whole = rho / rho_0 - 1
    assert whole[3] > 200
    z = float(RELEVANCE @ (rho - rho_0)) / math.sqrt(float(RELEVANCE * rho_0 @ whole**2) / size)
    assert NormalDist().cdf(z - ONE_SIDED) < found - 0.3


def test_queries_count_by_their_interactions() -> None:
    examination = np.array([1.0])
    offsets = np.array([0, 2, 4])
    shown = np.array([[300], [300], [50], [50]])
    log = LogStatistics(offsets, np.array([600, 100]), shown, shown // 2)
    half = np.full(4, 0.5)
    new = np.array([5.0, -5.0, 5.0, -5.0], np.float32)
    gains = [
        Foresight(log, examination, relevance, half, half, 100).of("new", new).gain
        for relevance in (np.array([1.0, 0, 0, 0]), np.array([0, 0, 1.0, 0]))
    ]
    assert gains[0] == pytest.approx(6 * gains[1], rel=1e-4)
    assert gains[0] == pytest.approx(0.5 * 600 / 700, rel=1e-3)


def test_worth_is_what_can_be_expected_to_go_live() -> None:
    assert Foreseen("a", 0.2, 0.1, 0.5).worth == pytest.approx(0.2 * (0.5 + UNPROVEN))
    assert Foreseen("a", 0.2, 0.1, 0.0).worth > Foreseen("b", 0.1, 0.1, 0.0).worth > 0
    assert Foreseen("a", 0.2, 0.1, 0.1).worth < Foreseen("b", 0.1, 0.1, 0.5).worth
