"""Trees on top of a start: scores, what they may read, and copies."""

import numpy as np
import pytest
import torch

from saferank.engine.errors import UsageError
from saferank.policy.scorers import make_scorer, score
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.trees import Trees
from tests.policy.made import some_trees

ROWS = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


def two_trees(rows: np.ndarray) -> np.ndarray:
    """What `some_trees` adds, written out."""
    first = np.where(rows[:, 0] <= 0.25, np.where(rows[:, 1] <= -0.5, 1.0, 2.0), -3.0)
    return first + 0.5


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_scores_are_those_of_the_start_plus_the_trees(kind: str) -> None:
    plain = make_scorer(kind, 3, seed=1)
    scorer = Trees.on(plain, 3)
    np.testing.assert_array_equal(score(scorer, ROWS), score(plain, ROWS))
    scorer.grow(some_trees())
    np.testing.assert_allclose(score(scorer, ROWS), score(plain, ROWS) + two_trees(ROWS), rtol=1e-5, atol=1e-6)
    assert scorer.start_kind == kind
    assert scorer.read == 3


def test_a_column_is_the_start_and_is_not_read_by_the_trees() -> None:
    scorer = Trees(3, "column")
    np.testing.assert_array_equal(score(scorer, ROWS), ROWS[:, 2])
    scorer.grow(some_trees())
    np.testing.assert_allclose(score(scorer, ROWS), ROWS[:, 2] + two_trees(ROWS), rtol=1e-6)
    assert scorer.read == 2
    with pytest.raises(UsageError):
        Trees(2, "column").grow(some_trees())  # they read two features, and one of two is the start
    with pytest.raises(UsageError):
        Trees(1).grow(some_trees())


def test_without_a_start_there_are_only_trees() -> None:
    scorer = Trees(3)
    assert score(scorer, ROWS).tolist() == [0.0] * 50
    scorer.grow(some_trees())
    np.testing.assert_allclose(score(scorer, ROWS), two_trees(ROWS), rtol=1e-6)


def test_growing_replaces_the_trees() -> None:
    scorer = Trees(3)
    scorer.grow(some_trees())
    scorer.grow(some_trees().times(2.0))
    np.testing.assert_allclose(score(scorer, ROWS), 2 * two_trees(ROWS), rtol=1e-6)
    scorer.grow(Forest.empty())
    assert score(scorer, ROWS).tolist() == [0.0] * 50


@pytest.mark.parametrize("kind", ["mlp", "linear", "column", "none"])
def test_a_copy_of_trees_has_their_scores_and_changes_nothing_of_them(kind: str) -> None:
    first = Trees.on(make_scorer(kind, 3, seed=1), 3) if kind in ("mlp", "linear") else Trees(3, kind)
    first.grow(some_trees())
    before = score(first, ROWS)
    second = Trees.on(first, 3)
    np.testing.assert_array_equal(score(second, ROWS), before)
    second.grow(Forest.joined([second.forest, some_trees()]))
    with torch.no_grad():
        for weights in second.start.parameters() if second.start is not None else ():
            weights.add_(1.0)
    np.testing.assert_array_equal(score(first, ROWS), before)
    assert not np.allclose(score(second, ROWS), before)


def test_a_start_of_another_kind() -> None:
    with pytest.raises(UsageError):
        Trees(3, "forest")


def test_settings_make_trees_that_the_weights_fit() -> None:
    scorer = Trees(3, "linear")
    scorer.grow(some_trees())
    again = Trees(3, **scorer.settings)
    again.load_state_dict(scorer.state_dict())
    np.testing.assert_array_equal(score(again, ROWS), score(scorer, ROWS))
    with pytest.raises(RuntimeError):
        Trees(3, "linear").load_state_dict(scorer.state_dict())
