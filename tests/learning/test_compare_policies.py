"""The table's numbers against the same sums written out, and against the true utility."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.click_models.examination import Constant
from saferank.engine.objectives.risk import Risk
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.simulate import simulate
from saferank.learning.compare_policies import ComparedPolicy, compare
from saferank.learning.logged_parts import logged_parts
from saferank.learning.methods import LoggedPart

EXAMINATION = np.array([1.0, 0.5])
OFFSETS = np.array([0, 3, 4])
RELEVANCE = np.array([0.3, 0.6, 0.9, 0.5])


def log(seed: int, interactions: int, scores: list[float]) -> LogStatistics:
    return simulate(scores, OFFSETS, RELEVANCE, EXAMINATION, interactions, np.random.default_rng(seed))


def make_parts(train: LogStatistics, validation: LogStatistics, *rest: Any) -> tuple[LoggedPart, LoggedPart]:
    data = RankingData(np.zeros((4, 1), np.float32), OFFSETS)
    return logged_parts(data, train, validation, EXAMINATION, *rest)


def compared(
    rho: NDArray[np.float64], parts: tuple[LoggedPart, LoggedPart], delta: float, constant: Constant = "proven"
) -> ComparedPolicy:
    ever_shown = parts[0].log.times_shown + parts[1].log.times_shown > 0
    return compare("new", rho, replace(parts[1], risk=Risk(delta, constant)), ever_shown)


def test_by_hand() -> None:
    """Document 2 is never shown: it counts for nothing but in its own column."""
    parts = make_parts(log(0, 300, [0.5, 0, -math.inf, 0]), log(1, 100, [0.5, 0, -math.inf, 0]))
    rho, rho_0 = np.array([0.5, 0.6, 0.4, 1.0]), parts[1].logging_exposure
    row = compared(rho, parts, 0.1)
    counts, clicks = parts[1].log.interactions, parts[1].log.clicks
    assert rho_0[2] == 0
    estimate = sum(rho[d] * clicks[d] / rho_0[d] for d in (0, 1, 3)) / 100
    squares = [counts[0] * (rho[0] ** 2 / rho_0[0] + rho[1] ** 2 / rho_0[1]), counts[1] * rho[3] ** 2 / rho_0[3]]
    z = [1.5, 1.0]  # the second query has one document
    divergence = (squares[0] / z[0] + squares[1] / z[1]) / 100
    risk = math.sqrt((0.9 / 0.1) / 100**2 * (min(2, 1 + z[0]) * squares[0] + min(1, 1 + z[1]) * squares[1]))
    never = counts[0] * rho[2] / (counts[0] * rho[:3].sum() + counts[1] * rho[3])
    assert row.name == "new"
    assert row.estimate == pytest.approx(estimate)
    assert row.lower_bound == pytest.approx(estimate - risk)
    assert row.divergence == pytest.approx(divergence)
    assert row.never_shown == pytest.approx(never)
    paper = compared(rho, parts, 0.1, "paper")
    assert paper.lower_bound == pytest.approx(estimate - math.sqrt((0.9 / 0.1) / 100**2 * sum(squares)))


def test_the_logging_policy_has_its_click_rate_and_no_divergence() -> None:
    parts = make_parts(log(0, 300, [0.5, 0, -1, 0]), log(1, 100, [0.5, 0, -1, 0]))
    row = compared(parts[1].logging_exposure, parts, 0.05)
    assert row.estimate == pytest.approx(parts[1].log.clicks.sum() / 100)
    assert row.divergence == pytest.approx(1.0)
    assert row.never_shown == 0


@pytest.mark.parametrize("known", [True, False])
def test_estimate_and_bound_of_a_fixed_policy(known: bool) -> None:
    """Over many logs: the estimate lies around the truth, and the bound above it no more often than delta."""
    scores, new = [0.5, 0.0, -1.0, 0.0], [-1.0, 0.0, 1.5, 0.0]
    rho = exposure(np.array(new), OFFSETS, EXAMINATION)
    truth = float(rho @ RELEVANCE) / 2  # both queries come equally often
    rows = []
    for seed in range(200):
        known_scores = np.array(scores, np.float32) if known else None
        parts = make_parts(log(seed, 2_000, scores), log(1_000 + seed, 700, scores), Risk(), known_scores)
        rows.append(compared(rho, parts, 0.2))
    estimates = np.array([row.estimate for row in rows])
    if known:  # a counted logging exposure is in a denominator, and leaves a bias of the order 1/N
        assert abs(estimates.mean() - truth) <= 5 * estimates.std() / math.sqrt(200)
    assert estimates.mean() == pytest.approx(truth, rel=0.02)
    failures = np.mean([row.lower_bound > truth for row in rows])
    assert failures <= 0.2
    assert np.mean([row.lower_bound for row in rows]) < truth
