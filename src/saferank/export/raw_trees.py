"""Trees that read raw features: the preparation of features that does not depend on the query is moved into them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from saferank.engine.types.ranking_data import signed_log1p
from saferank.export.inputs import Inputs
from saferank.features.schema import FeatureSchema
from saferank.policy.scorers.forest import Forest

LARGEST = np.finfo(np.float32).max
SIGN = 0x80000000


@dataclass(frozen=True)
class Leaf:
    """The value of a leaf."""

    value: float


@dataclass(frozen=True)
class Split:
    """A node: `left` if x[feature] <= threshold, or if x[feature] is missing and `missing_left`; else `right`."""

    feature: int
    """Place among the inputs."""
    threshold: np.float32
    missing_left: bool
    left: Node
    right: Node

    @property
    def above(self) -> np.float32:
        """The smallest float32 that goes right: x <= threshold if and only if x < above."""
        return np.float32(np.nextafter(self.threshold, LARGEST))  # LARGEST stays: no feature is that large


Node: TypeAlias = Leaf | Split


def raw_trees(forest: Forest, schema: FeatureSchema) -> list[Node]:
    """Return trees that score raw features as the forest scores prepared ones.

    Holds if features are not scaled per query. Then what happens to a feature is increasing, p(x), and

        p(x) <= threshold   if and only if   x <= the largest float32 whose p is at most the threshold.
    """
    if schema.scaling != "none":
        raise ValueError("features that are scaled per query cannot be moved into the trees.")
    inputs = Inputs.of(schema)
    source, indicator = np.array(inputs.source), np.array(inputs.indicator)
    threshold, missing_left = raw_thresholds(forest.threshold, schema), _fill_goes_left(forest.threshold, schema)
    is_indicator = indicator[forest.feature]
    present_left = forest.threshold >= 0.0
    threshold = np.where(is_indicator, np.where(present_left, LARGEST, -LARGEST), threshold)
    one = _prepared(np.ones(1, np.float32), schema)[0]
    missing_left = np.where(is_indicator, one <= forest.threshold, missing_left)

    def node(place: int) -> Node:
        if place < 0:
            return Leaf(float(forest.value[-1 - place]))
        children = node(int(forest.left[place])), node(int(forest.right[place]))
        feature = int(source[forest.feature[place]])
        return Split(feature, threshold[place], bool(missing_left[place]), *children)

    return [node(int(root)) for root in forest.root]


def raw_thresholds(threshold: NDArray[np.float32], schema: FeatureSchema) -> NDArray[np.float32]:
    """Return the largest float32 x with p(x) <= threshold, for each one; p is log1p if the schema has it, else x.

    By bisection over all float32 in order. Where no number is that small, the smallest one.
    """
    if not schema.log1p:
        return threshold
    low = np.full(len(threshold), _order(np.array([-LARGEST]))[0])
    high = np.full(len(threshold), _order(np.array([LARGEST]))[0])
    while (low < high).any():
        middle = low + (high - low + 1) // 2
        small = _prepared(_number(middle), schema) <= threshold
        low, high = np.where(small, middle, low), np.where(small, high, middle - 1)
    return _number(low)


def splits(tree: Node) -> Iterator[Split]:
    """Yield all nodes of a tree that are not leaves, each before its children, left before right."""
    if isinstance(tree, Split):
        yield tree
        yield from splits(tree.left)
        yield from splits(tree.right)


def leaves(tree: Node) -> Iterator[Leaf]:
    """Yield all leaves of a tree, from left to right."""
    if isinstance(tree, Split):
        yield from leaves(tree.left)
        yield from leaves(tree.right)
    else:
        yield tree


def _prepared(values: NDArray[np.float32], schema: FeatureSchema) -> NDArray[np.float32]:
    out = np.array(values, np.float32)
    if schema.log1p:
        signed_log1p(out, out=out)
    return out


def _fill_goes_left(threshold: NDArray[np.float32], schema: FeatureSchema) -> NDArray[np.bool_]:
    """Whether a missing value goes left at each threshold; where it is an error, as NaN does in a forest."""
    if schema.missing == "error":
        return np.zeros(len(threshold), np.bool_)
    fill = 0.0 if schema.missing == "indicator" else float(schema.missing)
    goes: NDArray[np.bool_] = _prepared(np.array([fill], np.float32), schema)[0] <= threshold
    return goes


def _order(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the place of each float32 among all of them, in order; -0 and 0 follow each other."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.int64)
    return np.where(bits >= SIGN, SIGN - 1 - (bits - SIGN), bits + SIGN)


def _number(order: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the float32 at each place: the inverse of `_order`."""
    bits = np.where(order < SIGN, SIGN - 1 - order + SIGN, order - SIGN)
    return bits.astype(np.uint32).view(np.float32)
