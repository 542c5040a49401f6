import math

import numpy as np
import pytest

from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.propensity.modelled_exposure import (
    LEAST,
    STRENGTHS,
    explained,
    shrunk_logging_exposure,
)
from saferank.engine.types.log_statistics import LogStatistics

OFFSETS = np.array([0, 2, 5])


def log_of(interactions: list[int], shown: list[list[int]]) -> LogStatistics:
    return LogStatistics(OFFSETS, np.array(interactions), np.array(shown), np.zeros_like(np.array(shown)))


TRAIN = log_of([4, 0], [[3, 1], [1, 3], [0, 0], [0, 0], [0, 0]])
HELD_OUT = log_of([2, 1], [[1, 1], [1, 1], [1, 0], [0, 1], [0, 0]])


def by_hand(strength: float, placement: np.ndarray) -> float:
    shown = np.array([[3, 1], [1, 3], [0, 0], [0, 0], [0, 0]])
    total, displays, times = 0.0, np.argwhere(HELD_OUT.shown), 0
    for document, rank in displays:
        interactions = 4 if document < 2 else 0
        chance = placement[document, rank]
        if math.isfinite(strength):
            chance = (shown[document, rank] + strength * chance) / (interactions + strength)
        total += HELD_OUT.shown[document, rank] * math.log(max(chance, LEAST))
        times += HELD_OUT.shown[document, rank]
    return total / times


@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_is_that_of_the_best_strength(seed: int) -> None:
    placement = np.random.default_rng(seed).dirichlet(np.ones(5), 2).T
    found = explained(TRAIN, HELD_OUT, placement)
    assert found.log_likelihood == pytest.approx(max(by_hand(one, placement) for one in STRENGTHS))
    assert found.log_likelihood == pytest.approx(by_hand(found.strength, placement))


def test_a_right_model_replaces_the_counts_and_a_wrong_one_does_not() -> None:
    even = log_of([100, 0], [[50, 50], [50, 50], [0, 0], [0, 0], [0, 0]])
    lucky = log_of([4, 0], [[4, 0], [0, 4], [0, 0], [0, 0], [0, 0]])
    assert explained(lucky, even, np.array([[0.5, 0.5]] * 2 + [[1 / 3, 1 / 3]] * 3)).strength == math.inf
    wrong = np.array([[1.0, 0.0], [0.0, 1.0], [0, 0], [0, 0], [0, 0]])
    assert explained(even, even, wrong).strength == STRENGTHS[0]


def test_the_exposure_lies_between_counted_and_modelled() -> None:
    examination, modelled = np.array([1.0, 0.5]), np.array([0.75, 0.75, 0.5, 0.5, 0.5])
    counted = estimated_logging_exposure(TRAIN, examination)
    shrunk = shrunk_logging_exposure(TRAIN, examination, modelled, 4.0)
    np.testing.assert_allclose(shrunk[:2], (counted[:2] + modelled[:2]) / 2)  # four interactions, worth four
    np.testing.assert_allclose(shrunk[2:], modelled[2:])  # never issued
    np.testing.assert_array_equal(shrunk_logging_exposure(TRAIN, examination, modelled, math.inf), modelled)
