"""Sampled rankings have the right distribution; log-probabilities equal enumeration."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from saferank.engine.plackett_luce import log_probability, sample_rankings
from saferank.engine.plackett_luce.ranking_probability import log_probability_vjp
from tests.oracles import enumeration


@pytest.mark.parametrize(("cutoff", "seed"), [(1, 0), (2, 1), (3, 2), (6, 3)])
def test_sampled_rankings_have_the_plackett_luce_distribution(cutoff: int, seed: int) -> None:
    scores = list(np.random.default_rng(seed).normal(size=4))
    samples = 20_000
    rankings = sample_rankings([9.0, *scores], [0, 1, 5], cutoff, samples, np.random.default_rng(seed))[1]
    probabilities = enumeration.ranking_probabilities(scores, cutoff)
    filled = min(cutoff, 4)
    assert np.all(rankings[:, filled:] == -1)
    found, counts = np.unique(rankings[:, :filled], axis=0, return_counts=True)
    table = {tuple(map(int, ranking)): count for ranking, count in zip(found, counts, strict=True)}
    assert set(table) <= set(probabilities)
    expected = np.array([probabilities[ranking] * samples for ranking in probabilities])
    observed = np.array([table.get(ranking, 0) for ranking in probabilities])
    if len(expected) > 1:
        keep = expected >= 5
        rare = [observed[~keep].sum()], [expected[~keep].sum()]
        if rare[1][0] >= 5:
            observed, expected = np.append(observed[keep], rare[0]), np.append(expected[keep], rare[1])
        else:
            observed, expected = observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()
        assert chisquare(observed, expected).pvalue > 1e-5


def test_the_same_seed_gives_the_same_rankings_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, *rng.integers(1, 50, size=100)])
    scores = rng.normal(size=offsets[-1])
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("SAFERANK_THREADS", threads)
        results.append(sample_rankings(scores, offsets, 5, 20, np.random.default_rng(7)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    other = sample_rankings(scores, offsets, 5, 20, np.random.default_rng(8))
    assert not np.array_equal(results[0], other)


def test_minus_infinity_is_never_drawn_and_far_scores_are() -> None:
    rankings = sample_rankings([0.0, -math.inf, -2000.0], [0, 3], 3, 50, np.random.default_rng(0))
    assert np.all(rankings[0] == [0, 2, -1])


@pytest.mark.parametrize("cutoff", [1, 3, 6])
def test_log_probability_equals_enumeration(cutoff: int) -> None:
    scores = [0.5, -40.0, 3.0, 45.0, 3.0]
    table = enumeration.ranking_probabilities(scores, cutoff)
    rankings = np.full((1, len(table), cutoff), -1)
    for i, ranking in enumerate(table):
        rankings[0, i, : len(ranking)] = ranking
    found = log_probability(scores, [0, 5], rankings)[0]
    np.testing.assert_allclose(found, np.log(list(table.values())), rtol=1e-9, atol=1e-12)
    assert math.fsum(np.exp(found)) == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1.0, 12.0, 90.0])
def test_no_digit_is_lost_whatever_a_ranking_leaves_over(scale: float) -> None:
    rng = np.random.default_rng(0)
    scores, lengths, cutoff = scale * rng.normal(size=33), (30, 3), 4
    offsets = np.cumsum([0, *lengths])
    rankings = np.full((2, 40, cutoff), -1)
    for q, i in np.ndindex(2, 40):  # of any documents; some end early
        filled = rng.integers(1, min(cutoff, lengths[q]) + 1)
        rankings[q, i, :filled] = rng.permutation(lengths[q])[:filled]
    expected, gradient, pull = np.zeros((2, 40)), np.zeros(33), rng.normal(size=(2, 40))
    for q, i in np.ndindex(2, 40):
        free = scores[offsets[q] : offsets[q + 1]].copy()
        for document in rankings[q, i][rankings[q, i] >= 0]:
            share = free - logsumexp(free)
            expected[q, i] += share[document]
            gradient[offsets[q] : offsets[q + 1]] -= pull[q, i] * np.exp(share)
            gradient[offsets[q] + document] += pull[q, i]
            free[document] = -np.inf
    np.testing.assert_allclose(log_probability(scores, offsets, rankings), expected, rtol=1e-12, atol=1e-13)
    found, flat = np.zeros(33), rankings.reshape(-1, cutoff)
    log_probability_vjp(scores, offsets, np.array([0, 40, 80]), flat, np.arange(2), pull.ravel(), found)
    np.testing.assert_allclose(found, gradient, rtol=1e-11, atol=1e-12)


def test_log_probability_of_what_cannot_be_shown_is_minus_infinity() -> None:
    assert log_probability([0.0, -math.inf], [0, 2], [[[1, 0]]]).tolist() == [[-math.inf]]
    assert log_probability([0.0, -math.inf], [0, 2], [[[0, 1]]]).tolist() == [[-math.inf]]
    assert log_probability([0.0, -math.inf], [0, 2], [[[0, -1]]]).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ([[0, 1]], "rankings must be"),
        ([[[0, 2]]], "a document that its query does not have"),
        ([[[0, 0]]], "the same document twice"),
        ([[[-1, 0]]], "goes on after a rank with no document"),
    ],
)
def test_impossible_rankings_are_refused(rankings: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        log_probability([0.0, 1.0], [0, 2], np.array(rankings))
