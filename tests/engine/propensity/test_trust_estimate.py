"""alpha and beta from counts alone: right on average with few clicks per document, and none where there is none."""

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.click_models.trust_bias import TrustBias
from saferank.engine.errors import UsageError
from saferank.engine.propensity.harvesting import harvest
from saferank.engine.propensity.interventions import find_interventions
from saferank.engine.propensity.trust_estimate import estimate_trust
from saferank.engine.types.log_statistics import LogStatistics

Array = NDArray[np.float64]
ALPHA, BETA = np.array([0.4, 0.25, 0.12]), np.array([0.5, 0.1, 0.01])
POSITION_BASED = np.array([1.0, 0.5, 0.2])


def counts(alpha: Array, beta: Array, documents: int, most: int, rng: np.random.Generator) -> LogStatistics:
    """Each document a query of its own, shown up to `most` times at a rank, the more at the top the better it is."""
    relevance = rng.beta(1.0, 1.5, documents)
    liked = np.stack([0.2 + 0.6 * relevance, np.full(documents, 0.5), 0.8 - 0.6 * relevance], axis=1)
    shown = rng.binomial(most, liked)
    clicked = rng.binomial(shown, np.outer(relevance, alpha) + beta)
    return LogStatistics(np.arange(documents + 1), shown.max(axis=1), shown, clicked)


def lines(curve: TrustBias) -> Array:
    """Slopes and intercepts of click-through at ranks 2 and 3 against that at rank 1, whatever the normalisation."""
    slope = curve.alpha / curve.alpha[0]
    return np.concatenate([slope[1:], (curve.beta - slope * curve.beta[0])[1:]])


@pytest.mark.parametrize(("documents", "most"), [(10_000, 8), (2_000, 100)])
def test_it_is_right_on_average_also_with_few_clicks_per_document(documents: int, most: int) -> None:
    rng = np.random.default_rng(3)
    found = [estimate_trust(counts(ALPHA, BETA, documents, most, rng)) for _ in range(60)]
    values = np.stack([lines(curve) for curve in found])
    error = values.std(axis=0) / np.sqrt(len(values))
    truth = lines(TrustBias(ALPHA, BETA))
    assert np.all(error < 0.01)
    assert np.all(np.abs(values.mean(axis=0) - truth) < 5 * error)
    assert np.abs(truth[2:]).min() > 20 * error[2:].max()  # it would be seen if beta were taken to be 0


def test_many_clicks_give_the_true_curve() -> None:
    found = estimate_trust(counts(ALPHA, BETA, 3_000, 100_000, np.random.default_rng(4)))
    truth = TrustBias(ALPHA, BETA).normalised()
    np.testing.assert_allclose(found.alpha, truth.alpha, rtol=0.01)
    np.testing.assert_allclose(found.beta, truth.beta, atol=0.003)


def test_position_based_clicks_have_no_trust_and_the_curve_of_harvesting() -> None:
    """The test rejects 1 log in 100; the curve is right on average, and close to harvesting's on every log."""
    rng = np.random.default_rng(5)
    curves, trusted = [], 0
    for _ in range(100):
        log = counts(POSITION_BASED, np.zeros(3), 2_000, 10, rng)
        found = estimate_trust(log)
        trusted += bool(found.beta.any())
        curves.append(found.examination)
        np.testing.assert_allclose(found.examination, np.exp(harvest(find_interventions(log)).log_curve), rtol=0.1)
    assert trusted <= 6  # more has a chance of 1 in 10,000
    error = np.std(curves, axis=0) / np.sqrt(len(curves))
    assert np.all(np.abs(np.mean(curves, axis=0) - POSITION_BASED)[1:] < 5 * error[1:])


def test_a_position_based_curve_is_given_where_it_is_asked_for() -> None:
    log = counts(ALPHA, BETA, 2_000, 100, np.random.default_rng(8))
    assert estimate_trust(log).beta[0] > 0.2
    found = estimate_trust(log, position_based=True)
    np.testing.assert_array_equal(found.beta, 0.0)
    np.testing.assert_allclose(found.alpha, np.exp(harvest(find_interventions(log)).log_curve), rtol=0.05)


def test_few_clicks_are_taken_to_be_position_based() -> None:
    found = estimate_trust(counts(ALPHA, BETA, 100, 6, np.random.default_rng(6)))
    np.testing.assert_array_equal(found.beta, 0.0)
    assert found.alpha[0] == 1.0


@pytest.mark.parametrize("most", [1, 6])
def test_a_log_that_cannot_tell(most: int) -> None:
    """No document is shown twice at a rank, or none is clicked at the last rank."""
    log = counts(ALPHA, BETA, 50, most, np.random.default_rng(7))
    clicked = log.clicked * np.array([1, 1, 0])
    with pytest.raises(UsageError):
        estimate_trust(LogStatistics(log.offsets, log.interactions, log.shown, clicked))
