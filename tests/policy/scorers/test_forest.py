"""Forests: scores against a plain walk of the trees, joined, scaled, empty, and arrays that are no trees."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.policy.scorers.forest import TYPES, Forest

Array = NDArray[Any]


def walked(forest: Forest, row: Array) -> float:
    """The sum of leaves, tree by tree and node by node."""
    total = 0.0
    for root in forest.root.tolist():
        node = root
        while node >= 0:
            goes_left = row[int(forest.feature[node])] <= forest.threshold[node]
            node = int(forest.left[node] if goes_left else forest.right[node])
        total += float(forest.value[-1 - node])
    return total


def grown(rng: np.random.Generator, trees: int, features: int, depth: int) -> Forest:
    """Random trees; thresholds are whole numbers, so that features are often exactly on them."""
    nodes: list[list[int]] = []
    leaves: list[float] = []

    def grow(level: int) -> int:
        if level == 0 or rng.random() < 0.2:
            leaves.append(rng.normal())
            return -len(leaves)
        place = len(nodes)
        nodes.append([int(rng.integers(features)), int(rng.integers(-2, 3)), 0, 0])
        nodes[place][2:] = grow(level - 1), grow(level - 1)
        return place

    roots = [grow(depth) for _ in range(trees)]
    feature, threshold, left, right = np.array(nodes, np.int32).reshape(-1, 4).T
    return Forest(feature, threshold.astype(np.float32), left, right, np.array(leaves), np.array(roots))


def table(rng: np.random.Generator, rows: int, features: int) -> Array:
    return rng.integers(-3, 4, (rows, features)).astype(np.float32)


@given(
    seed=st.integers(0, 2**32),
    trees=st.integers(0, 6),
    features=st.integers(1, 5),
    more=st.integers(0, 2),
    depth=st.integers(0, 8),  # 7, 15, 31 and 63 leaves fit into one number; more do not
    rows=st.integers(0, 9),
)
@settings(deadline=None)
def test_scores_are_those_of_a_plain_walk(
    seed: int, trees: int, features: int, more: int, depth: int, rows: int
) -> None:
    rng = np.random.default_rng(seed)
    forest, x = grown(rng, trees, features, depth), table(rng, rows, features + more)
    scores = forest.scores(x)
    assert scores.shape == (rows,)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [walked(forest, row) for row in x], rtol=1e-6, atol=1e-6)


@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(0, 4), max_size=4))
@settings(deadline=None)
def test_joined_scores_add_up(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    forests, x = [grown(rng, trees, 3, 3) for trees in sizes], table(rng, 7, 3)
    joined = Forest.joined(forests)
    assert joined.trees == sum(sizes)
    expected = np.sum([forest.scores(x) for forest in forests], axis=0) if forests else np.zeros(7)
    np.testing.assert_allclose(joined.scores(x), expected, rtol=1e-5, atol=1e-5)


def stump() -> Forest:
    """Feature 1 up to 0.5 gives 2, above gives -3; a second tree is the leaf 10."""
    return Forest(*map(np.array, ([1], [0.5], [-1], [-2], [2.0, -3.0, 10.0], [0, -3])))


def test_by_hand() -> None:
    x = np.array([[9.0, 0.4], [9.0, 0.5], [9.0, 0.6], [9.0, -np.inf], [9.0, np.inf], [9.0, np.nan]])
    np.testing.assert_array_equal(stump().scores(x), [12.0, 12.0, 7.0, 12.0, 7.0, 7.0])
    assert stump().trees == 2
    assert stump().features_read == 2


def test_times() -> None:
    x = np.array([[0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(stump().times(-0.5).scores(x), [-6.0, -3.5])
    np.testing.assert_array_equal(stump().times(0.0).scores(x), [0.0, 0.0])
    np.testing.assert_array_equal(stump().value, [2.0, -3.0, 10.0])  # itself unchanged


def test_without_trees_every_score_is_0() -> None:
    empty = Forest.empty()
    assert (empty.trees, empty.features_read) == (0, 0)
    np.testing.assert_array_equal(empty.scores(np.ones((3, 2))), np.zeros(3))
    np.testing.assert_array_equal(empty.scores(np.ones((3, 0))), np.zeros(3))
    assert Forest.joined([]).trees == 0
    np.testing.assert_array_equal(Forest.joined([empty, stump()]).scores(np.zeros((1, 2))), [12.0])


def test_arrays_are_what_it_is_made_from() -> None:
    arrays = stump().arrays()
    assert list(arrays) == list(TYPES)
    assert all(arrays[name].dtype == kind for name, kind in TYPES.items())
    x = np.array([[0.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(Forest(**arrays).scores(x), stump().scores(x))


def test_tables_in_another_order_or_type_of_number() -> None:
    x = table(np.random.default_rng(0), 20, 4)
    forest = grown(np.random.default_rng(1), 5, 4, 4)
    for other in (np.asfortranarray(x), x.astype(np.float64), x.astype(np.int64), np.repeat(x, 2, axis=0)[::2]):
        np.testing.assert_array_equal(forest.scores(other), forest.scores(x))


@pytest.mark.parametrize(
    ("column", "row", "bad"),
    [
        ("feature", 0, [-1]),
        ("feature", 0, [0.5]),
        ("feature", 0, [2**31]),
        ("feature", None, [[1]]),
        ("threshold", 0, [np.nan]),
        ("threshold", 0, [1e300]),
        ("threshold", None, [0.5, 0.5]),
        ("left", 0, [0]),  # itself: a walk would never end
        ("left", 0, [1]),
        ("left", 0, [-4]),
        ("left", None, []),
        ("right", 0, [0]),
        ("right", 0, [-4]),
        ("right", None, [-1, -2]),
        ("value", 1, [2.0, np.inf, 10.0]),
        ("root", 1, [0, 1]),
        ("root", 1, [0, -4]),
        ("root", 0, [np.nan, 0]),
    ],
    ids=str,
)
def test_arrays_that_are_no_trees(column: str, row: int | None, bad: list[Any]) -> None:
    with pytest.raises(DataError) as caught:
        replace(stump(), **{column: np.array(bad)})
    assert (caught.value.column, caught.value.row) == (column, row)


def test_a_node_must_come_before_its_children() -> None:
    feature, threshold, value = np.array([0, 0]), np.array([0.0, 1.0]), np.array([1.0, 2.0, 3.0])
    down = Forest(feature, threshold, np.array([1, -1]), np.array([-3, -2]), value, np.array([0]))
    np.testing.assert_array_equal(down.scores(np.array([[-1.0], [0.5], [2.0]])), [1.0, 3.0, 3.0])
    with pytest.raises(DataError) as caught:
        Forest(feature, threshold, np.array([1, 0]), np.array([-3, -2]), value, np.array([0]))
    assert (caught.value.column, caught.value.row) == ("left", 1)


def test_a_leaf_has_one_parent() -> None:
    with pytest.raises(DataError):
        replace(stump(), right=np.array([-1]))
    with pytest.raises(DataError):
        replace(stump(), root=np.array([0, 0]))


def test_groups_of_trees_and_blocks_of_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    forest, x = grown(rng, 9, 4, 5), table(rng, 50, 4)
    expected = [walked(forest, row) for row in x]
    for name, value in (("GROUP", 2), ("SMALLEST_BLOCK", 3), ("BLOCK_BYTES", 1)):
        monkeypatch.setattr(f"saferank.policy.scorers.forest.{name}", value)
    np.testing.assert_allclose(forest.scores(x), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(4, 1), (4, 0), (4,), (4, 2, 1)])
def test_too_few_features(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError):
        stump().scores(np.zeros(shape))
