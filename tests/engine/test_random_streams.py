"""The generator for compiled loops against SciPy's distributions."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from saferank.engine.jit import jit
from saferank.engine.random_streams import binomial, next_random


@jit
def many(n: int, p: float, seed: int, draws: NDArray[np.int64]) -> None:
    state = np.full(1, seed, np.uint64)
    for i in range(len(draws)):
        draws[i] = binomial(state, n, p)


@jit
def uniforms(seed: int, draws: NDArray[np.float64]) -> None:
    state = np.full(1, seed, np.uint64)
    for i in range(len(draws)):
        draws[i] = next_random(state)


def test_uniform() -> None:
    draws = np.empty(100_000)
    uniforms(3, draws)
    assert stats.kstest(draws, "uniform").pvalue > 1e-5
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 5 / np.sqrt(len(draws))


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (1, 0.3), (5, 0.9), (40, 0.2), (40, 0.5), (99, 0.1), (101, 0.1), (25, 0.41), (1000, 0.013), (1000, 0.99),
        (10**6, 1e-7), (10**6, 2e-5), (10**6, 0.3), (10**9, 3e-8), (10**9, 0.7), (10**12, 1e-10), (10**12, 0.25),
    ],
)  # fmt: skip
def test_binomial(n: int, p: float) -> None:
    draws = np.empty(2_000_000, np.int64)
    many(n, p, 1, draws)
    law = stats.binom(n, p)
    # Classes of about equal chance, at most 60: fine near the mode, coarse in the tails.
    ends = np.unique(law.ppf(np.linspace(0.0, 1.0, 61)[1:-1]))
    chances = np.diff(np.concatenate([[0.0], law.cdf(ends), [1.0]]))
    observed = np.bincount(np.searchsorted(ends, draws), minlength=len(chances))
    common = chances * len(draws) >= 5
    observed, chances = observed[common], chances[common]
    assert observed.sum() > 0.999 * len(draws)
    if len(chances) > 1:
        assert stats.chisquare(observed, chances / chances.sum() * observed.sum()).pvalue > 1e-5
    assert abs(draws.mean() - n * p) < 5 * law.std() / np.sqrt(len(draws))
    tail = law.ppf(1 - 1e-3)
    expected = law.sf(tail) * len(draws)
    assert abs((draws > tail).sum() - expected) < 5 * np.sqrt(expected) + 1


@pytest.mark.parametrize(("n", "p", "only"), [(7, 0.0, 0), (7, 1.0, 7), (0, 0.4, 0), (10**12, 1e-30, 0)])
def test_binomial_that_is_certain(n: int, p: float, only: int) -> None:
    draws = np.empty(100, np.int64)
    many(n, p, 1, draws)
    assert np.all(draws == only)
