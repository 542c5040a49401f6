"""The sampled gradients are unbiased estimates of the exact one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saferank.engine.plackett_luce import exposure_vjp, pl_rank_3_gradient, reinforce_gradient, sample_rankings

ESTIMATORS: list[Callable[..., Any]] = [reinforce_gradient, pl_rank_3_gradient]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("lengths", "cutoff", "samples", "scale"), [([1], 2, 1, 2.0), ([7], 7, 3, 0.3), ([2, 9, 30], 5, 1, 2.0)]
)
def test_the_mean_over_many_draws_is_the_exact_gradient(
    estimator: Callable[..., Any], lengths: list[int], cutoff: int, samples: int, scale: float
) -> None:
    rng = np.random.default_rng(len(lengths) + cutoff)
    offsets = np.cumsum([0, *lengths])
    scores, cotangent = rng.normal(size=(2, offsets[-1]))
    scores *= scale
    examination = 1 / np.arange(1, cutoff + 1)
    draws = np.array(
        [
            estimator(
                scores,
                offsets,
                examination,
                cotangent,
                sample_rankings(scores, offsets, cutoff, samples, rng),
            )
            for _ in range(2000)
        ]
    )
    exact = exposure_vjp(scores, offsets, examination, cotangent)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    seen = error > 1e-4  # where the draws vary at all; elsewhere rare events carry the mean
    assert np.all(np.abs(draws.mean(axis=0) - exact)[seen] <= 5 * error[seen])
    assert np.all(np.abs(draws.mean(axis=0) - exact)[~seen] <= 1e-2)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_more_rankings_bring_the_estimate_nearer(estimator: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    offsets = np.arange(11) * 40
    scores, cotangent = rng.normal(size=(2, 400))
    exact = exposure_vjp(scores, offsets, [1, 0.25, 0.1], cotangent)
    errors = [
        np.linalg.norm(
            estimator(scores, offsets, [1, 0.25, 0.1], cotangent, sample_rankings(scores, offsets, 3, samples, rng))
            - exact
        )
        for samples in (10, 1000, 100_000)
    ]
    assert errors[1] < errors[0] / 5
    assert errors[2] < errors[1] / 5


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_wrong_shapes_are_refused(estimator: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="rankings must be"):
        estimator([0.0, 1.0], [0, 2], [1.0, 0.5], [1.0, 1.0], [[[0]]])
    with pytest.raises(ValueError, match="cotangent must have the shape"):
        estimator([0.0, 1.0], [0, 2], [1.0, 0.5], [1.0], [[[0, 1]]])


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("scale", [12.0, 90.0])
def test_peaked_scores_do_not_cancel_the_digits(estimator: Callable[..., Any], scale: float) -> None:
    rng = np.random.default_rng(3)
    offsets = np.arange(6) * 20
    scores, cotangent = rng.normal(size=(2, 100))
    scores *= scale
    rankings = sample_rankings(scores, offsets, 5, 2000, rng)
    examination = 1 / np.arange(1, 6)
    found = estimator(scores, offsets, examination, cotangent, rankings)
    exact = exposure_vjp(scores, offsets, examination, cotangent)
    # Rankings are all but certain: what little varies leaves an error below five times its own spread.
    assert np.abs(found - exact).max() < 5 * np.abs(cotangent).max() * np.sqrt(np.abs(exact).max() / 2000) + 1e-6
    assert np.abs(estimator([0.0, -40.0, -41.0], [0, 3], [1.0], [1.0, 2.0, 3.0], np.zeros((1, 9, 1), int))).max() < 1e-9
