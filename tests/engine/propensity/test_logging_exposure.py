import math

import numpy as np
import pytest

from saferank.engine.click_models.position_based import inverse_rank
from saferank.engine.errors import UsageError
from saferank.engine.propensity.logging_exposure import (
    action_propensity,
    estimated_logging_exposure,
    known_logging_exposure,
)
from saferank.engine.types.log_statistics import LoggedRankings, LogStatistics
from saferank.lab.last_rank import last_rank_known_exposure
from saferank.lab.simulate import simulate
from tests.oracles import enumeration


def log(rankings: LoggedRankings | None = None) -> LogStatistics:
    """Four interactions with a query of three documents, two with a query of one, none with the last."""
    shown = [[3, 1], [1, 1], [0, 2], [2, 0], [0, 0]]
    return LogStatistics(
        np.array([0, 3, 4, 5]), np.array([4, 2, 0]), np.array(shown), np.zeros((5, 2), np.int64), rankings
    )


def test_by_hand() -> None:
    estimate = estimated_logging_exposure(log(), [1.0, 0.5])
    np.testing.assert_allclose(
        estimate, [(3 * 1.0 + 1 * 0.5) / 4, (1 * 1.0 + 1 * 0.5) / 4, (2 * 0.5) / 4, 2 * 1.0 / 2, 0.0]
    )
    with pytest.raises(UsageError):
        estimated_logging_exposure(log(), [1.0, 0.5, 0.2])


def test_action_propensities_by_hand() -> None:
    rankings = LoggedRankings(*map(np.array, ([0, 0, 1], [[0, 2], [1, 0], [0, -1]], [[0, 1], [0, 0], [1, 0]])))
    np.testing.assert_allclose(action_propensity(log(rankings)), [3 / 4 * 2 / 4, 1 / 4 * 1 / 4, 2 / 2])
    np.testing.assert_allclose(action_propensity(log(rankings), ranks="paper"), [3 / 4, 1 / 4, 2 / 2])
    with pytest.raises(UsageError, match="keep_rankings"):
        action_propensity(log())
    with pytest.raises(UsageError, match="some"):
        action_propensity(log(rankings), ranks="some")  # type: ignore[arg-type]


def test_the_last_rank_from_the_scores_by_hand() -> None:
    """The first ranks are counted; the last is the policy's choice among what each ranking left."""
    rankings = LoggedRankings(*map(np.array, ([0, 0, 1], [[0, 2], [1, 0], [0, -1]], [[0, 1], [0, 0], [1, 0]])))
    weights = np.array([1.0, 2.0, 5.0, 1.0, 1.0])
    found = last_rank_known_exposure(log(rankings), np.log(weights), [1.0, 0.5])
    expected = [
        3 * 1.0 / 4 + 0.5 * (0.0 + 1 / (1 + 5)) / 2,
        1 * 1.0 / 4 + 0.5 * (2 / (2 + 5) + 0.0) / 2,
        0 * 1.0 / 4 + 0.5 * (5 / (2 + 5) + 5 / (1 + 5)) / 2,
        2 * 1.0 / 2,
        0.0,
    ]
    np.testing.assert_allclose(found, expected)
    with pytest.raises(UsageError, match="keep_rankings"):
        last_rank_known_exposure(log(), np.log(weights), [1.0, 0.5])
    with pytest.raises(UsageError, match="5 documents"):
        last_rank_known_exposure(log(rankings), [0.0], [1.0, 0.5])


def test_with_the_last_rank_from_the_scores_nothing_that_can_be_shown_has_no_exposure_and_the_mean_is_exact() -> None:
    scores, queries = [0.5, -1.0, 1.5, 0.0, -math.inf], 4_000
    examination = inverse_rank(3)
    exact = enumeration.exposure(scores, list(examination))
    statistics = simulate(
        np.tile(scores, queries), 5 * np.arange(queries + 1), np.ones(5 * queries), examination,
        6 * queries, np.random.default_rng(0), keep_rankings=2,
    )  # fmt: skip
    issued = statistics.interactions > 0
    found, counted = (
        estimate.reshape(queries, 5)[issued]
        for estimate in (
            last_rank_known_exposure(statistics, np.tile(scores, queries), examination),
            estimated_logging_exposure(statistics, examination),
        )
    )
    assert found[:, :4].min() > 0 == counted[:, :4].min()
    assert np.all(found[:, 4] == 0)
    error = found.std(axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - exact) <= 5 * error)


@pytest.mark.parametrize("cutoff", [1, 5])
def test_the_frequency_estimate_is_unbiased(cutoff: int) -> None:
    scores, queries = [0.5, -1.0, 1.5, -math.inf], 4_000
    examination = inverse_rank(cutoff)
    exact = enumeration.exposure(scores, list(examination))
    statistics = simulate(
        np.tile(scores, queries), 4 * np.arange(queries + 1), np.ones(4 * queries), examination,
        3 * queries, np.random.default_rng(0),
    )  # fmt: skip
    estimates = estimated_logging_exposure(statistics, examination).reshape(queries, 4)
    assert np.all(estimates[statistics.interactions == 0] == 0)
    estimates = estimates[statistics.interactions > 0]
    error = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert np.all(np.abs(estimates.mean(axis=0) - exact) <= 5 * error)
    np.testing.assert_allclose(known_logging_exposure(scores, [0, 4], examination), exact, rtol=1e-8, atol=1e-12)


def test_with_one_rank_action_propensities_are_the_policys() -> None:
    scores, interactions = [0.5, -1.0, 1.5], 40_000
    rng = np.random.default_rng(0)
    statistics = simulate(scores, [0, 3], np.ones(3), [1.0], interactions, rng, keep_rankings=50)
    assert statistics.rankings is not None
    exact = enumeration.placement(scores, 1)[statistics.rankings.ranking[:, 0], 0]
    np.testing.assert_allclose(action_propensity(statistics), exact, atol=5 * 0.5 / np.sqrt(interactions))
