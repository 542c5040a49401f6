"""Decision trees as arrays, which can be stored and checked, and their scores, all trees at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError

Array = NDArray[Any]
TYPES = {
    "feature": np.int32,
    "threshold": np.float32,
    "left": np.int32,
    "right": np.int32,
    "value": np.float32,
    "root": np.int32,
}
GROUP = 512
"""Trees that are scored together: their tables grow with the square of it."""
BLOCK_BYTES, SMALLEST_BLOCK = 1 << 18, 256
"""Rows are scored in blocks whose leaves fit into this, so that they stay in the processor's cache."""
DE_BRUIJN = {8: 0x17, 16: 0x09AF, 32: 0x077CB531, 64: 0x03F79D71B4CB0A89}
"""For each width, a number in which every run of log2(width) bits occurs once: a factor that hashes bits perfectly."""


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
        children = np.concatenate([self.left, self.right, self.root]) + leaves
        if (twice := np.bincount(children, minlength=1) > 1).any():
            raise DataError(f"{int(twice.argmax()) - leaves} is named twice; nodes and leaves have one parent.")

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
        out = np.zeros(len(features))
        for group in self._groups:
            group.add_scores(features, out)
        return out.astype(np.float32)

    @cached_property
    def _groups(self) -> list[_Group]:
        return [_Group.of(self, slice(first, first + GROUP)) for first in range(0, self.trees, GROUP)]


@dataclass(frozen=True, eq=False)
class _Group:
    """Some trees, in the form of tables in which a row of features is looked up: no tree is walked.

    The leaves of a tree are bits of one number or, if there are many, of several. The thresholds of a feature, in
    order, cut its values into intervals; `allowed[interval]` has the bits of those leaves that a value in there does
    not rule out. The conjunction over all features leaves the bit of the one leaf that a row falls into (as in
    QuickScorer, Lucchese et al., SIGIR 2015). The first bit is of no leaf, so that numbers without a bit score 0.
    """

    tables: list[tuple[int, Array, Array]]
    """For each feature: its place, its thresholds, and the numbers `allowed` (interval, number)."""
    every: Array
    """Bits of all leaves."""
    value: NDArray[np.float64]
    """(number, hash of a bit), flat: the value of the leaf."""

    @classmethod
    def of(cls, forest: Forest, trees: slice) -> _Group:
        """Return the tables of these trees of a forest."""
        tree, leaf, path, step = _paths(forest, forest.root[trees])
        order, most = np.argsort(tree, kind="stable"), int(np.bincount(tree).max())
        bits = next((bits for bits in DE_BRUIJN if bits > most), max(DE_BRUIJN))
        place = np.empty(len(tree), np.int64)  # of each leaf among those of its tree
        place[order] = np.arange(len(tree)) - np.searchsorted(tree[order], tree[order])
        number = tree * -(-most // (bits - 1)) + place // (bits - 1)
        place, numbers = 1 + place % (bits - 1), int(number.max()) + 1
        bit = np.left_shift(1, place.astype(f"uint{bits}"), dtype=f"uint{bits}")
        every, value = np.zeros(numbers, bit.dtype), np.zeros((numbers, bits))
        np.bitwise_or.at(every, number, bit)
        value[number, _hashed(bit)] = forest.value[leaf]
        tables, read = [], forest.feature[step // 2]
        for feature in np.unique(read):
            mine = read == feature
            threshold, interval = np.unique(forest.threshold[step[mine] // 2], return_inverse=True)
            left, numbered, ruled = step[mine] % 2 == 1, number[path[mine]], bit[path[mine]]
            above, below = np.zeros((2, len(threshold) + 1, numbers), bit.dtype)
            np.bitwise_or.at(above, (interval[left] + 1, numbered[left]), ruled[left])
            np.bitwise_or.at(below, (interval[~left], numbered[~left]), ruled[~left])
            excluded = np.bitwise_or.accumulate(above) | np.bitwise_or.accumulate(below[::-1])[::-1]
            tables.append((int(feature), threshold, ~excluded))
        return cls(tables, every, value.ravel())

    def add_scores(self, features: Array, scores: NDArray[np.float64]) -> None:
        """Add the sum of the leaves of each row to its score."""
        block = max(SMALLEST_BLOCK, BLOCK_BYTES // self.every.nbytes)
        first = np.arange(len(self.every)) * (8 * self.every.itemsize)
        for start in range(0, len(features), block):
            rows = np.asarray(features[start : start + block], np.float32)
            left = np.repeat(self.every[None], len(rows), axis=0)
            for feature, threshold, allowed in self.tables:
                left &= allowed.take(threshold.searchsorted(rows[:, feature]), axis=0)
            place = np.add(_hashed(left), first, dtype=np.int64, casting="unsafe")
            scores[start : start + block] += self.value.take(place).sum(axis=1)


def _paths(forest: Forest, root: Array) -> tuple[Array, Array, Array, Array]:
    """Return the tree and the entry of `value` of each leaf, and all steps to leaves: which leaf, and 2 node + left.

    Of the trees with these roots. `left` is 1 in steps to the left.
    """
    tree, node, trail = np.arange(len(root)), root, np.zeros((len(root), 0), np.int64)
    found, trails = [], []
    while len(node):
        leaf = node < 0
        found.append(np.stack([tree[leaf], -1 - node[leaf], np.full(leaf.sum(), trail.shape[1])]))
        trails.append(trail[leaf].ravel())
        tree, node, trail = tree[~leaf], node[~leaf], trail[~leaf]
        trail = np.vstack([np.column_stack([trail, 2 * node + left]) for left in (0, 1)])
        tree, node = np.tile(tree, 2), np.concatenate([forest.right[node], forest.left[node]])
    trees, leaves, steps = np.hstack(found)
    return trees, leaves, np.repeat(np.arange(len(trees)), steps), np.concatenate(trails)


def _hashed(bit: Array) -> Array:
    """Return a number of its own for each bit of an unsigned type; 0 for the first, and for none at all."""
    bits = 8 * bit.itemsize
    out: Array = bit * bit.dtype.type(DE_BRUIJN[bits]) >> bit.dtype.type(bits + 1 - bits.bit_length())
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
