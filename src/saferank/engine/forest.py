"""Decision trees as arrays, which can be stored and checked, and their compiled evaluation."""

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
    """A sum of decision trees: s(x) = sum over trees of the value of the leaf that x falls into.

    A node sends x to `left` if x[feature] <= threshold, and to `right` otherwise (also if x[feature] is NaN). Entries
    of `left`, `right` and `root` that are 0 or more are nodes; -1 - i is leaf i. A node comes before its children, so
    every walk ends. Checked on construction; a `DataError` has the name of the array as its column and the entry as
    its row.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    """Value of each leaf."""
    root: NDArray[np.int32]
    """Root of each tree."""

    def __post_init__(self) -> None:
        for name, kind in TYPES.items():
            object.__setattr__(self, name, _checked(name, getattr(self, name), kind))
        nodes, leaves = len(self.feature), len(self.value)
        for name in ("threshold", "left", "right"):
            if len(getattr(self, name)) != nodes:
                raise DataError(f"has {len(getattr(self, name))} entries for {nodes} nodes.", column=name)
        if nodes and self.feature.min() < 0:
            raise DataError("features count from 0.", column="feature", row=int(self.feature.argmin()))
        node = np.arange(nodes)
        for name, parent in (("left", node), ("right", node), ("root", np.full(len(self.root), -1))):
            child = getattr(self, name)
            bad = np.flatnonzero((child >= nodes) | (child < -leaves) | ((child >= 0) & (child <= parent)))
            if len(bad):
                raise DataError(
                    f"got {child[bad[0]]}, but it must be a later one of {nodes} nodes, or -1 - i for one of {leaves} "
                    "leaves.", column=name, row=int(bad[0]),
                )  # fmt: skip

    @classmethod
    def empty(cls) -> Forest:
        """Return a forest without trees: every score is 0."""
        return cls(*(np.zeros(0, kind) for kind in TYPES.values()))

    @classmethod
    def joined(cls, forests: Sequence[Forest]) -> Forest:
        """Return one forest of all their trees: its scores are the sums of theirs."""
        nodes = np.cumsum([0] + [len(one.feature) for one in forests])
        leaves = np.cumsum([0] + [len(one.value) for one in forests])

        def moved(child: Array, place: int) -> Array:
            out: Array = np.where(child >= 0, child + nodes[place], child - leaves[place])
            return out

        parts: dict[str, Array] = {}
        for name in TYPES:
            arrays = [getattr(one, name) for one in forests]
            if name in ("left", "right", "root"):
                arrays = [moved(array, place) for place, array in enumerate(arrays)]
            parts[name] = np.concatenate(arrays) if arrays else np.zeros(0, TYPES[name])
        return cls(**parts)

    def times(self, factor: float) -> Forest:
        """Return a forest whose scores are `factor` times these."""
        return replace(self, value=self.value * np.float32(factor))

    @property
    def trees(self) -> int:
        """Number of trees."""
        return len(self.root)

    @property
    def features_read(self) -> int:
        """Smallest number of features that rows must have."""
        return int(self.feature.max(initial=-1)) + 1

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by name, in the order of `TYPES`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def scores(self, features: Array) -> NDArray[np.float32]:
        """Return one score per row of a table of features, computed in float32."""
        if features.ndim != 2 or features.shape[1] < self.features_read:
            raise DataError(f"trees that read {self.features_read} features were given shape {features.shape}.")
        rows = np.ascontiguousarray(features, np.float32)
        out: NDArray[np.float32] = _leaf_sums(rows, *self.arrays().values())
        return out


def _checked(name: str, values: Array, kind: Any) -> Array:
    """Return a flat array of the given type, or raise if that changes more than the precision of a number."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise DataError(f"must be flat, got shape {given.shape}.", column=name)
    with np.errstate(over="ignore", invalid="ignore"):
        array: Array = np.ascontiguousarray(given, kind)
    bad = np.flatnonzero(~np.isfinite(array) if issubclass(kind, np.floating) else array != given)
    if len(bad):
        expected = "a finite number" if issubclass(kind, np.floating) else "a whole number of 32 bits"
        raise DataError(f"got {given[bad[0]]}, but it must be {expected}.", column=name, row=int(bad[0]))
    return array


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
