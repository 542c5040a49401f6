"""The semi-synthetic world: prepared data, and a logging policy that is good, but not the best."""

import numpy as np
import pytest

from saferank.datasets.synthetic import synthetic_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.lab.paper_methods import evaluate
from saferank.lab.world import SPLITS, make_world
from saferank.learning.training_loop import one_thread
from saferank.policy.scorers import make_scorer, score
from tests.lab.small_world import small_dataset, small_world


def test_prepared_features_lie_between_0_and_1_in_every_query_and_rank_as_before() -> None:
    raw, found = synthetic_dataset("small"), small_dataset()
    for part in SPLITS:
        data = getattr(found, part)
        assert data.features.min() == 0.0
        assert data.features.max() == 1.0
        low = np.minimum.reduceat(data.features, data.offsets[:-1], axis=0)
        high = np.maximum.reduceat(data.features, data.offsets[:-1], axis=0)
        assert np.all(low == 0.0)
        assert np.all((high == 1.0) | (high == 0.0))
    rows = slice(*raw.train.offsets[:2])
    for column in range(raw.train.features.shape[1]):
        order = np.argsort(raw.train.features[rows, column], kind="stable")
        assert np.all(np.diff(found.train.features[rows, column][order]) >= 0.0)


def test_only_test_queries_without_a_relevant_document_are_left_out() -> None:
    raw, found = synthetic_dataset("small"), small_dataset()
    assert found.train.queries == raw.train.queries
    assert found.validation.queries == raw.validation.queries
    best = np.maximum.reduceat(raw.test.require_labels(), raw.test.offsets[:-1])
    assert found.test.queries == np.sum(best > 0)
    assert np.maximum.reduceat(found.test.require_labels(), found.test.offsets[:-1]).min() > 0


def test_the_logging_policy_beats_random_scorers_by_far() -> None:
    world = small_world()
    logging = np.array(evaluate(world.logging_scorer, world.test))
    features = world.test.features.shape[1]
    random = np.array([evaluate(make_scorer("mlp", features, seed=seed), world.test) for seed in range(5)])
    assert np.all(logging > random.max(axis=0) + 0.03)


def test_logging_scores_are_those_of_the_logging_scorer() -> None:
    world = small_world()
    for part in SPLITS:
        data = getattr(world, part)
        np.testing.assert_array_equal(world.logging_scores[part], score(world.logging_scorer, data.features))


def test_relevance_is_that_of_the_click_model() -> None:
    world = small_world()
    np.testing.assert_allclose(world.relevance("train"), 0.2 + 0.025 * world.train.require_labels())


@pytest.fixture(scope="module")
def tiny_scores() -> dict[int, bytes]:
    with one_thread():
        worlds = {seed: make_world(small_dataset(), seed=seed, scorer="linear", fraction=0.01) for seed in (0, 1)}
    return {seed: world.logging_scores["test"].tobytes() for seed, world in worlds.items()}


def test_the_seed_decides_the_world(tiny_scores: dict[int, bytes]) -> None:
    with one_thread():
        again = make_world(small_dataset(), seed=0, scorer="linear", fraction=0.01)
    assert again.logging_scores["test"].tobytes() == tiny_scores[0]
    assert tiny_scores[0] != tiny_scores[1]


def test_another_click_model_makes_another_world(tiny_scores: dict[int, bytes]) -> None:
    model = PositionBasedModel(examination=np.array([1.0, 1.0]), relevance_slope=0.2, relevance_noise=0.0)
    with one_thread():
        world = make_world(small_dataset(), seed=0, scorer="linear", fraction=0.01, click_model=model)
    assert world.click_model is model
    assert world.relevance("test").max() == pytest.approx(0.2 * world.test.require_labels().max())
    assert world.logging_scores["test"].tobytes() != tiny_scores[0]


@pytest.mark.parametrize("scorer", ["linear", "mlp", "gbdt"])
def test_a_temperature_divides_the_scores_of_the_logging_policy(scorer: str) -> None:
    with one_thread():
        plain, hot = (
            make_world(small_dataset(), seed=0, scorer=scorer, fraction=0.01, temperature=temperature)
            for temperature in (1.0, 4.0)
        )
    for part in SPLITS:
        assert np.ptp(hot.logging_scores[part]) > 0
        np.testing.assert_allclose(4.0 * hot.logging_scores[part], plain.logging_scores[part], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(hot.logging_scores[part], score(hot.logging_scorer, getattr(hot, part).features))
