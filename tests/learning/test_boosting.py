"""Trees grown by the gradient of an objective: the gradient, what is kept, and what is read."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.engine.objectives.objective import Objective
from saferank.engine.types.ranking_data import RankingData
from saferank.learning import boosting
from saferank.learning.boosting import LEAST_CURVATURE, LEAST_EXACT_CURVATURE, LONG_STEPS, PARAMETERS, boost
from saferank.learning.training_loop import Epoch
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees
from tests.learning.problem import FEATURES, Part, make_part, new_scorer, parameters


@pytest.fixture(scope="module", params=["exposure-crm", "skyline"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def value(scorer: Trees, data: RankingData, objective: Objective) -> float:
    return objective.value_and_slope(score(scorer, data.features))[0]


def start(seed: int = 5) -> Trees:
    return Trees.on(new_scorer("linear", seed), FEATURES)


def test_it_learns_and_keeps_the_best_number_of_trees(train: Part, validation: Part, name: str) -> None:
    scorer, judge = start(), (validation.data, validation.objective(name))
    before, at_start = validation.utility(scorer), value(scorer, *judge)
    told: list[Epoch] = []
    result = boost(
        scorer, train.data, train.objective(name), validation=judge, most_trees=60, seed=1, progress=told.append
    )
    assert validation.utility(scorer) > before + 0.1
    assert scorer.forest.trees == result.best_epoch > 5
    values = [epoch.validation for epoch in result.history]
    assert result.best_epoch == 1 + int(np.argmax(values))
    assert value(scorer, *judge) == pytest.approx(max(values), rel=1e-4)
    assert max(values) > at_start
    assert [epoch.epoch for epoch in result.history] == list(range(1, len(values) + 1))
    assert told[-len(values) :] == list(result.history)


def test_the_first_tree_is_a_newton_step_along_the_exact_gradient(train: Part, name: str) -> None:
    """A leaf's value is the learning rate times its sum of slopes over its sum of curvatures."""
    scorer, objective = start(), train.objective(name)
    before = score(scorer, train.data.features)
    _, slope = objective.value_and_slope(before)
    boost(scorer, train.data, objective, validation=(train.data, objective), most_trees=1)
    assert scorer.forest.trees == 1
    added = scorer.forest.scores(train.data.features)
    leaves = np.unique(added)
    assert len(leaves) > 2
    size = np.abs(slope) / np.abs(slope).max()
    curvature = np.maximum(size, LEAST_CURVATURE)
    for leaf in leaves:
        rows = added == leaf
        step = (slope[rows] / np.abs(slope).max()).sum() / curvature[rows].sum()
        assert leaf == pytest.approx(PARAMETERS["learning_rate"] * step, rel=1e-3, abs=1e-6)


def test_a_long_step_is_a_newton_step_with_the_curvature_of_the_objective(train: Part, name: str) -> None:
    scorer, objective = start(), train.objective(name)
    slope, curvature = objective.slope_and_curvature(score(scorer, train.data.features))
    boost(scorer, train.data, objective, validation=(train.data, objective), most_trees=1, long_steps=True)
    added = scorer.forest.scores(train.data.features)
    assert len(np.unique(added)) > 2
    curvature = np.maximum(curvature, LEAST_EXACT_CURVATURE * curvature.max())
    for leaf in np.unique(added):
        step = slope[added == leaf].sum() / curvature[added == leaf].sum()
        assert leaf == pytest.approx(LONG_STEPS["learning_rate"] * step, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_validation_value_is_never_below_that_of_the_start(seed: int) -> None:
    """Also if what is learned is noise, or the opposite of what is judged by."""
    train, other = make_part(10 + seed, interactions=200), make_part(20 + seed, interactions=200)
    objective, judge = train.objective("exposure-ips"), (other.data, other.objective("exposure-ips"))
    for learned in (objective, replace(objective, reward=-objective.reward)):
        scorer = start(seed)
        before = value(scorer, *judge)
        boost(scorer, train.data, learned, validation=judge, most_trees=30, seed=seed)
        assert value(scorer, *judge) >= before - 1e-6 * abs(before)


@pytest.mark.parametrize("sign", [-1.0, 0.0])
def test_the_start_is_kept_bit_for_bit_where_no_tree_helps(
    train: Part, sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Learned is the opposite of what is judged by, or nothing at all."""
    monkeypatch.setattr(boosting, "PATIENCE", 3)
    objective = train.objective("skyline")
    scorer = start()
    before = parameters(scorer)
    learned = replace(objective, reward=sign * objective.reward)
    result = boost(scorer, train.data, learned, validation=(train.data, objective))
    assert result.best_epoch == 0
    assert len(result.history) <= 4
    assert parameters(scorer) == before
    assert scorer.forest.trees == 0


def test_it_grows_on_top_of_the_trees_that_are_there(train: Part) -> None:
    objective = train.objective("skyline")
    judge = train.data, objective
    scorer = start()
    boost(scorer, train.data, objective, validation=judge, most_trees=5)
    first, middle = deepcopy(scorer.forest), score(scorer, train.data.features)
    reached = value(scorer, *judge)
    result = boost(scorer, train.data, objective, validation=judge, most_trees=5)
    assert scorer.forest.trees == first.trees + result.best_epoch == 10
    for mine, theirs in zip(first.arrays().values(), scorer.forest.arrays().values(), strict=True):
        np.testing.assert_array_equal(theirs[: len(mine)], mine)
    assert value(scorer, *judge) > reached
    assert not np.allclose(score(scorer, train.data.features), middle)
    at_once = start()
    boost(at_once, train.data, objective, validation=judge, most_trees=10)
    np.testing.assert_allclose(score(scorer, train.data.features), score(at_once, train.data.features), atol=0.02)


def with_column(data: RankingData, column: NDArray[np.float64]) -> RankingData:
    return replace(data, features=np.column_stack([data.features, column]).astype(np.float32))


def test_trees_do_not_read_the_column_that_they_begin_with(train: Part) -> None:
    """Although nothing tells relevance as well as it would."""
    objective = train.objective("skyline")
    told = with_column(train.data, 0.01 * train.relevance)
    as_feature, as_base = Trees(FEATURES + 1), Trees(FEATURES + 1, "column")
    for scorer in (as_feature, as_base):
        boost(scorer, told, objective, validation=(told, objective), most_trees=10)
        assert scorer.forest.trees == 10
    assert as_feature.forest.features_read == FEATURES + 1
    assert as_base.forest.features_read <= FEATURES
    expected = told.features[:, -1] + as_base.forest.scores(told.features)
    np.testing.assert_allclose(score(as_base, told.features), expected, rtol=1e-6)


def test_the_same_data_give_the_same_trees(train: Part, validation: Part) -> None:
    def run() -> bytes:
        scorer = start()
        judge = validation.data, validation.objective("exposure-crm")
        boost(scorer, train.data, train.objective("exposure-crm"), validation=judge, most_trees=10)
        return parameters(scorer)

    assert run() == run()
