"""Empirical Bayes: against an explicit normal model, and against the truth of simulated clicks."""

import numpy as np
import pytest

from saferank.engine.propensity.posterior_relevance import posterior_relevance
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate

EXAMINATION = np.array([1.0, 0.5, 0.25])
QUERIES, DOCUMENTS = 300, 8
OFFSETS = np.arange(0, QUERIES * DOCUMENTS + 1, DOCUMENTS)


def clicks(relevance: np.ndarray, interactions: int, seed: int = 0) -> LogStatistics:
    return simulate(
        np.zeros(len(relevance)), OFFSETS, relevance, EXAMINATION, interactions, np.random.default_rng(seed)
    )


@pytest.fixture(scope="module")
def relevance() -> np.ndarray:
    rng = np.random.default_rng(1)
    of_query, of_document = rng.normal(0, 0.05, QUERIES), rng.normal(0, 0.1, QUERIES * DOCUMENTS)
    return np.clip(0.4 + np.repeat(of_query, DOCUMENTS) + of_document, 0.02, 0.98)


def test_the_variances_are_those_of_the_relevance(relevance: np.ndarray) -> None:
    found = posterior_relevance(clicks(relevance, 300_000), EXAMINATION, np.full(len(relevance), 0.4))
    assert found.between_queries == pytest.approx(0.05**2, rel=0.4)
    assert found.between_documents == pytest.approx(0.1**2, rel=0.15)


@pytest.mark.parametrize("interactions", [3_000, 30_000, 300_000])
def test_it_is_nearer_to_the_truth_than_the_prediction_and_than_the_clicks(
    relevance: np.ndarray, interactions: int
) -> None:
    log, predicted = clicks(relevance, interactions), np.full(len(relevance), 0.4)
    found = posterior_relevance(log, EXAMINATION, predicted).relevance
    times = log.shown @ EXAMINATION
    alone = np.where(times > 0, log.clicks / np.maximum(times, 1e-9), 0.4)
    error, of_prediction, of_clicks = (np.mean((each - relevance) ** 2) for each in (found, predicted, alone))
    assert error < min(of_prediction, of_clicks)


def test_it_is_the_mean_given_the_clicks_of_a_normal_model(relevance: np.ndarray) -> None:
    log, predicted = clicks(relevance, 30_000), np.full(len(relevance), 0.4)
    found = posterior_relevance(log, EXAMINATION, predicted)
    times, squared = log.shown @ EXAMINATION, log.shown @ EXAMINATION**2
    documents = slice(OFFSETS[5], OFFSETS[6])
    times, squared, clicked = times[documents], squared[documents], log.clicks[documents]
    assert (times > 0).all()
    noise = 0.4 * (times - 0.4 * squared) / times**2
    prior = found.between_queries * np.ones((DOCUMENTS, DOCUMENTS)) + found.between_documents * np.eye(DOCUMENTS)
    gain = prior @ np.linalg.inv(prior + np.diag(noise))
    np.testing.assert_allclose(found.relevance[documents], 0.4 + gain @ (clicked / times - 0.4), atol=1e-12)


def test_without_a_click_or_an_interaction_it_is_the_prediction() -> None:
    size = QUERIES * DOCUMENTS
    nothing = np.zeros((size, 3), np.int64)
    log = LogStatistics(OFFSETS, np.zeros(QUERIES, np.int64), nothing, nothing)
    predicted = np.linspace(0.0, 1.0, size)
    np.testing.assert_array_equal(posterior_relevance(log, EXAMINATION, predicted).relevance, predicted)
