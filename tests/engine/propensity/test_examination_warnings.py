"""What a log cannot tell is said, and never guessed."""

import numpy as np
import pytest

from saferank.engine.errors import DataError
from saferank.engine.propensity.examination_estimate import (
    ExaminationEstimate,
    Method,
    disagreement,
    estimate_by_both,
    estimate_examination,
)
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate


def by_hand(shown: list[list[int]], clicked: list[list[int]], queries: int = 1) -> LogStatistics:
    """So many queries alike."""
    interactions = max(np.sum(shown, axis=0).max(), 1)
    rows = len(shown)
    return LogStatistics(
        rows * np.arange(queries + 1), np.full(queries, interactions), np.tile(shown, (queries, 1)),
        np.tile(clicked, (queries, 1)),
    )  # fmt: skip


def test_a_single_rank() -> None:
    log = by_hand([[5], [3]], [[1], [1]])
    for estimate in estimate_by_both(log, np.random.default_rng(0)):
        np.testing.assert_array_equal(estimate.curve, [1.0])
        assert estimate.warnings == ()
        np.testing.assert_array_equal(estimate.probabilities(), [1.0])


def test_nothing_moved() -> None:
    log = by_hand([[5, 0, 0], [0, 5, 0], [0, 0, 5]], [[3, 0, 0], [0, 2, 0], [0, 0, 1]])
    for estimate in estimate_by_both(log, np.random.default_rng(0)):
        np.testing.assert_array_equal(np.isnan(estimate.curve), [False, True, True])
        assert estimate.warnings == (
            "examination of any rank but the first cannot be estimated: no chain of documents, shown at several ranks "
            "and clicked at each, connects them with rank 1.",
        )
        assert not estimate.complete
        with pytest.raises(DataError, match="ranks 2-3 are examined"):
            estimate.probabilities()
    for estimate in estimate_by_both(by_hand([[3, 2], [2, 3]], [[0, 0], [0, 0]]), np.random.default_rng(0)):
        np.testing.assert_array_equal(np.isnan(estimate.curve), [False, True])  # no click at all


def test_ranks_in_two_groups() -> None:
    """Documents move between ranks 1 and 2, and between 3 and 4, but never across."""
    shown = [[6, 4, 0, 0], [4, 6, 0, 0], [0, 0, 5, 5], [0, 0, 5, 5]]
    clicked = [[4, 1, 0, 0], [2, 2, 0, 0], [0, 0, 3, 2], [0, 0, 2, 1]]
    estimate = estimate_examination(by_hand(shown, clicked, 30), np.random.default_rng(0))
    np.testing.assert_array_equal(np.isnan(estimate.curve), [False, False, True, True])
    assert 0 < estimate.curve[1] < 1
    assert len(estimate.warnings) == 1
    assert "ranks 3-4" in estimate.warnings[0]
    np.testing.assert_array_equal(estimate.interventions, [60, 60, 60, 60])


def test_clicks_on_one_side_only_are_no_comparison() -> None:
    """Documents move between ranks 3 and 4; one was shown at 1 and 3, but clicked at 1 only."""
    shown = [[5, 5, 0, 0], [4, 5, 1, 0], [0, 0, 5, 5]]
    clicked = [[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 3, 2]]
    estimate = estimate_examination(by_hand(shown, clicked, 30), np.random.default_rng(0))
    np.testing.assert_array_equal(np.isnan(estimate.curve), [False, False, True, True])
    shown[1][3], clicked[1][2] = 1, 1  # and once clicked at 3
    estimate = estimate_examination(by_hand(shown, clicked, 30), np.random.default_rng(0))
    assert estimate.complete


def test_a_rank_without_a_click_has_an_upper_end() -> None:
    """Ranks 1 and 2 tell of a relevance of 0.4; 40 impressions a query at rank 3 would have had 16 clicks."""
    log = by_hand([[100, 100, 40]], [[40, 20, 0]], 30)
    for estimate in estimate_by_both(log, np.random.default_rng(0)):
        np.testing.assert_allclose(estimate.curve, [1, 0.5, 0], atol=1e-4)
        assert estimate.low[2] == 0
        np.testing.assert_allclose(estimate.high[2], -np.log(0.025) / (30 * 16), rtol=1e-4)
        assert (
            "no document shown at several ranks was clicked at rank 3: only an upper limit is known there."
            in estimate.warnings
        )
        with pytest.raises(DataError, match="rank 3 is examined"):
            estimate.probabilities()


def test_few_interventions_and_few_queries_are_told() -> None:
    log = by_hand([[6, 4], [4, 6]], [[3, 1], [2, 2]], 1)
    estimate = estimate_examination(log, np.random.default_rng(0))
    assert np.isnan(estimate.low[1])
    assert estimate.warnings == (
        "few documents were shown at rank 2 and at other ranks, and clicked (2 at the fewest, 50 are wanted).",
        "only 1 query has documents that were shown at several ranks and clicked: intervals from fewer than 20 are too "
        "narrow or missing.",
    )
    rng = np.random.default_rng(0)
    rough = simulate(np.zeros(60), 3 * np.arange(21), np.full(60, 0.3), [1.0, 0.5], 60, rng)
    assert any(text.startswith("the interval at rank 2 is wide") for text in estimate_examination(rough, rng).warnings)


def made_up(
    curve: list[float], width: float, *, method: Method = "harvesting", clicks: float = 50.0
) -> ExaminationEstimate:
    values = np.array(curve)
    return ExaminationEstimate(
        values, values / width, values * width, method, 0.95, np.full(len(curve), 500), clicks, 5, 200
    )


def test_contradiction() -> None:
    harvested = made_up([1, 0.5, 0.3, 0.2], 1.05)
    assert disagreement(harvested, made_up([1, 0.52, 0.29, 0.2], 1.01, method="em")) is None  # within the margin
    assert disagreement(harvested, made_up([1, 0.7, 0.5, 0.3], 2.0, method="em")) is None  # wide
    assert disagreement(harvested, made_up([1, np.nan, 0.0, 0.2], 1.1, method="em")) is None
    assert disagreement(harvested, made_up([1, 0.6, 0.4, 0.2], 1.05, method="em")) == (
        "harvesting and EM contradict each other at ranks 2-3 (rank 3: 0.30 and 0.40): "
        "clicks may depend on more than rank and document."
    )
    text = disagreement(harvested, made_up([1, 0.6, 0.3, 0.4], 1.05, method="em", clicks=2.24))
    assert text is not None
    assert "ranks 2, 4 (rank 4: 0.20 and 0.40)" in text
    assert text.endswith("trust harvesting.")


def test_tiny_logs_of_every_kind_give_numbers_or_warnings() -> None:
    """Three documents, a handful of impressions: no overflow, no estimate far outside its interval, no silent gap."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        queries, cutoff = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        shown = rng.integers(0, rng.integers(1, 5), (3 * queries, cutoff)) * 10 ** int(rng.integers(0, 3))
        clicked = rng.binomial(shown, rng.uniform(0, 0.9))
        log = LogStatistics(3 * np.arange(queries + 1), np.full(queries, shown.sum() + 1), shown, clicked)
        with np.errstate(all="raise", under="ignore"):
            both = estimate_by_both(log, rng, replicates=50)
        for estimate in both:
            inside = (estimate.low <= estimate.curve * 1.5) & (estimate.curve <= estimate.high * 1.5)
            assert np.all(inside | np.isnan(estimate.low) | np.isnan(estimate.curve))
            told = ("cannot be estimated", "only an upper limit")
            assert estimate.complete or any(text in estimate.warnings[0] for text in told)
            assert np.all(estimate.curve[np.isfinite(estimate.curve)] >= 0)


def test_probabilities_have_their_highest_at_1() -> None:
    np.testing.assert_allclose(made_up([1.0, 1.25, 0.5], 1.1).probabilities(), [0.8, 1.0, 0.4])
