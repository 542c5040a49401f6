"""Decision trees as arrays: data that can be kept in a file and checked, and a sum of leaves that is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.jit import jit

Array = NDArray[Any]
TYPES = {
    "feature": np.int32,
    "threshold": np.float32,
    "left": np.int32,
    "right": np.int32,
    "value": np.float32,
    "root": np.int32,
}


@dataclass(frozen=True, eq=False)
class Forest:
    """s(x) = the sum, over the trees, of the value of the leaf that x falls into.

    A node sends x to `left` if x[feature] <= threshold, else to `right`. A child, or the root of a tree, of at least 0
    is a node; -1 - i is leaf i.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    """Of each leaf."""
    root: NDArray[np.int32]
    """Of each tree."""

    def __post_init__(self) -> None:
        for name, kind in TYPES.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), kind))
        nodes, leaves = len(self.feature), len(self.value)
        if not len(self.threshold) == len(self.left) == len(self.right) == nodes:
            raise DataError(f"trees of {nodes} nodes have another number of thresholds or children.")
        if not (np.isfinite(self.threshold).all() and np.isfinite(self.value).all()):
            raise DataError("trees have thresholds or values that are not finite.")
        if nodes and self.feature.min() < 0:
            raise DataError("a node of a tree asks for a feature below 0.")
        place = np.arange(nodes)
        for child, parent in ((self.left, place), (self.right, place), (self.root, np.full(len(self.root), -1))):
            if ((child >= nodes) | (child < -leaves) | ((child >= 0) & (child <= parent))).any():
                raise DataError("a node of a tree has a child that is not there, or that stands before it.")

    @classmethod
    def empty(cls) -> Forest:
        """Return no trees: every score is 0."""
        return cls(*(np.zeros(0, kind) for kind in TYPES.values()))

    @classmethod
    def joined(cls, forests: Sequence[Forest]) -> Forest:
        """Return the trees of all of them: their scores add up."""
        nodes = np.cumsum([0] + [len(one.feature) for one in forests])
        leaves = np.cumsum([0] + [len(one.value) for one in forests])

        def moved(child: Array, place: int) -> Array:
            return np.where(child >= 0, child + nodes[place], child - leaves[place])

        parts: dict[str, Array] = {}
        for name in TYPES:
            arrays = [getattr(one, name) for one in forests]
            if name in ("left", "right", "root"):
                arrays = [moved(array, place) for place, array in enumerate(arrays)]
            parts[name] = np.concatenate(arrays) if arrays else np.zeros(0, TYPES[name])
        return cls(**parts)

    def times(self, factor: float) -> Forest:
        """Return the forest whose scores are so many times these."""
        return replace(self, value=self.value * np.float32(factor))

    @property
    def trees(self) -> int:
        """Number of trees."""
        return len(self.root)

    @property
    def features_read(self) -> int:
        """Number of features that it needs at least."""
        return int(self.feature.max(initial=-1)) + 1

    def arrays(self) -> dict[str, Array]:
        """Return its arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def scores(self, features: Array) -> NDArray[np.float32]:
        """Return one score per row."""
        if features.shape[1] < self.features_read:
            raise DataError(f"trees that read {self.features_read} features were given {features.shape[1]}.")
        rows = np.ascontiguousarray(features, np.float32)
        out: NDArray[np.float32] = _leaf_sums(rows, *self.arrays().values())
        return out


@jit
def _leaf_sums(
    features: Array, feature: Array, threshold: Array, left: Array, right: Array, value: Array, root: Array
) -> Array:
    out = np.empty(len(features), np.float32)
    for row in range(len(features)):
        total = 0.0
        for tree in range(len(root)):
            node = root[tree]
            while node >= 0:
                node = left[node] if features[row, feature[node]] <= threshold[node] else right[node]
            total += value[-1 - node]
        out[row] = total
    return out
