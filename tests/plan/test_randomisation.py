"""Exposure against counted rankings, against enumeration, and against the policy without cut score gaps."""

import numpy as np
import pytest

from saferank.engine.plackett_luce import exposure
from saferank.plan.randomisation import (
    BY_SCORE,
    LEAST_MOVED,
    MOST_MOVED,
    TEMPERATURES,
    Randomisation,
    capped_gaps,
    moved_exposure,
    temperature_grid,
)

RNG = np.random.default_rng(0)
LENGTHS = [1, 2, 3, 7]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])
SCORES = RNG.normal(size=OFFSETS[-1])
EXAMINATION = np.array([1.0, 0.5, 0.3, 0.1])
SAMPLES = 20_000


@pytest.mark.parametrize("policy", [BY_SCORE, Randomisation("temperature", 0.7), Randomisation("swap", 0.3)])
def test_exposure_is_the_mean_over_rankings(policy: Randomisation) -> None:
    drawn = policy.rankings(SCORES, OFFSETS, 4, SAMPLES, np.random.default_rng(1))
    seen = np.zeros((len(SCORES), SAMPLES))
    for query, start in enumerate(OFFSETS[:-1]):
        for rank, weight in enumerate(EXAMINATION):
            time = np.flatnonzero(drawn[query, :, rank] >= 0)
            seen[start + drawn[query, time, rank], time] += weight
    assert [(one[0] >= 0).sum() for one in drawn] == [min(length, 4) for length in LENGTHS]
    error = seen.std(axis=1) / np.sqrt(SAMPLES)
    np.testing.assert_array_less(
        np.abs(policy.exposure(SCORES, OFFSETS, EXAMINATION) - seen.mean(axis=1)), 5.0 * error + 1e-6
    )


def test_swaps_of_three_ranks_by_enumeration() -> None:
    p = 0.4
    first, second, third, _ = EXAMINATION
    expected = [
        0.5 * (p * second + (1 - p) * first) + 0.5 * first,  # paired with rank 2, or alone
        0.5 * (p * first + (1 - p) * second) + 0.5 * (p * third + (1 - p) * second),
        0.5 * third + 0.5 * (p * second + (1 - p) * third),
    ]
    found = Randomisation("swap", p).exposure(np.array([3.0, 2.0, 1.0]), np.array([0, 3]), EXAMINATION)
    np.testing.assert_allclose(found, expected)
    beyond = Randomisation("swap", p).exposure(np.array([3.0, 2.0, 1.0]), np.array([0, 3]), EXAMINATION[:2])
    assert beyond[2] == 0.0


def test_cut_gaps_keep_order_and_exposure() -> None:
    wide = np.array([0.0, -35.0, -36.0, 5.0, 5.0, 400.0])
    offsets = np.array([0, 3, 6])
    cut = capped_gaps(wide, offsets)
    np.testing.assert_allclose(cut, [0.0, -20.0, -21.0, -20.0, -20.0, 0.0])
    np.testing.assert_allclose(
        exposure(cut, offsets, EXAMINATION), exposure(wide, offsets, EXAMINATION), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_the_grid_goes_from_little_to_much_whatever_the_scale(scale: float) -> None:
    rng = np.random.default_rng(2)
    scores, offsets = scale * rng.normal(size=400), np.arange(0, 401, 20)
    weight = np.full(400, 1.0 / 20.0)
    grid = temperature_grid(scores, offsets, EXAMINATION, weight)
    by_score = BY_SCORE.exposure(scores, offsets, EXAMINATION)
    heated = [Randomisation("temperature", t).exposure(scores, offsets, EXAMINATION) for t in grid]
    moved = [moved_exposure(exposure, by_score, weight) for exposure in heated]
    assert len(grid) == TEMPERATURES
    assert moved == sorted(moved)
    assert moved[0] == pytest.approx(LEAST_MOVED, rel=0.2)
    assert moved[-1] == pytest.approx(MOST_MOVED, rel=0.1)


def test_single_documents_and_ties_have_their_grids() -> None:
    one = np.ones(3)
    assert temperature_grid(one, np.arange(4), EXAMINATION, one) == ()
    assert len(temperature_grid(np.ones(6), np.array([0, 3, 6]), EXAMINATION, np.full(6, 0.5))) > 1
