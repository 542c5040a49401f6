"""A booster's trees as arrays, against LightGBM's own predictions."""

from typing import Any

import lightgbm
import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.learning import lightgbm_trees
from saferank.learning.lightgbm_trees import ALWAYS, forest_of, rounded_down, threads_for
from saferank.policy.scorers.forest import Forest

Floats = NDArray[np.float32]


def grown(features: Floats, labels: NDArray[Any], trees: int = 12, **parameters: Any) -> lightgbm.Booster:
    """Leaves that differ by much, so that no document that takes another way goes unnoticed."""
    chosen = ALWAYS | {"objective": "l2", "learning_rate": 0.8, "min_data_in_leaf": 3, "num_threads": 1} | parameters
    return lightgbm.train(chosen, lightgbm.Dataset(features, labels, params=chosen), trees)


def at_thresholds(booster: lightgbm.Booster, columns: int, rng: np.random.Generator) -> Floats:
    """Rows whose features are the float32 numbers just below, at and just above thresholds.

    Without -1e-35 itself: LightGBM takes it for 0, although it is not above the threshold that it sets there.
    """
    splits = booster.trees_to_dataframe().dropna(subset=["threshold"])
    near = splits["threshold"].to_numpy(np.float64).astype(np.float32)
    edges = np.concatenate([np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))])
    edges = np.concatenate([edges, np.array([0.0, -0.0, 1e-36, -1e-36, 3e38, -3e38], np.float32)])
    return rng.choice(edges[edges != np.float32(-1e-35)], (2000, columns)).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_lightgbm_also_at_thresholds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(400, 5)).astype(np.float32)
    features[:, 1] = np.round(features[:, 1])
    features[:, 2] = np.where(rng.random(400) < 0.5, 0.0, features[:, 2])  # sparse
    booster = grown(features, rng.normal(size=400))
    forest = forest_of(booster)
    assert forest.trees == 12
    for rows in (features, at_thresholds(booster, 5, rng)):
        np.testing.assert_allclose(forest.scores(rows), booster.predict(rows), rtol=1e-4, atol=1e-5)


def test_values_one_float_apart_are_told_apart() -> None:
    """The threshold lies between two neighbours: rounded to the nearest, it would be the upper one half the time."""
    low = np.array([1.0, 1.0000001, -3.0, 1e-3, 7e8], np.float32)
    for value in low:
        column = np.repeat([value, np.nextafter(value, np.float32(np.inf))], 30)[:, None]
        booster = grown(column, np.repeat([0.0, 1.0], 30), trees=1)
        found = forest_of(booster).scores(column)
        assert len(np.unique(found)) == 2
        np.testing.assert_allclose(found, booster.predict(column), rtol=1e-6)


def test_trees_of_one_leaf() -> None:
    features = np.arange(20, dtype=np.float32)[:, None]
    booster = grown(features, np.full(20, 0.7), trees=3, min_data_in_leaf=15)
    forest = forest_of(booster)
    assert forest.trees >= 1
    assert forest.features_read == 0
    np.testing.assert_allclose(forest.scores(features), booster.predict(features), rtol=1e-6)
    assert forest.scores(features)[0] == pytest.approx(0.7)


@pytest.mark.parametrize("trees", [1, 5, 12])
def test_the_first_so_many_trees(trees: int) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3)).astype(np.float32)
    booster = grown(features, features[:, 0] + rng.normal(size=300))
    forest = forest_of(booster, trees)
    assert forest.trees == trees
    np.testing.assert_allclose(
        forest.scores(features), booster.predict(features, num_iteration=trees), rtol=1e-4, atol=1e-5
    )


def test_a_model_has_no_trees_before_any_was_grown() -> None:
    features = np.zeros((10, 1), np.float32)
    booster = lightgbm.Booster(ALWAYS, lightgbm.Dataset(features, np.zeros(10), params=ALWAYS))
    found = forest_of(booster)
    assert isinstance(found, Forest)
    np.testing.assert_array_equal(found.scores(features), np.zeros(10))


def test_rounded_down_is_the_largest_float_not_above() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=500) * 10.0 ** rng.integers(-30, 30, 500), [0.0, 0.1, -0.1, 1 / 3]])
    found = rounded_down(values)
    assert found.dtype == np.float32
    assert np.all(found.astype(np.float64) <= values)
    assert np.all(np.nextafter(found, np.float32(np.inf)).astype(np.float64) > values)
    same = values.astype(np.float32)
    np.testing.assert_array_equal(rounded_down(same.astype(np.float64)), same)


def test_a_second_thread_only_for_large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lightgbm_trees, "thread_count", lambda: 7)
    assert threads_for(1000, 10) == {"num_threads": 1}
    assert threads_for(1_000_000, 10) == {"num_threads": 7}
