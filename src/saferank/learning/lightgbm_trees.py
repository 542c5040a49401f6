"""LightGBM, as far as this package uses it: the trees of a booster as arrays."""

from __future__ import annotations

import ctypes
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # noqa: F401 (brings libgomp, which LightGBM needs and slim machines lack)
from numpy.typing import NDArray

from saferank.engine.ragged import thread_count
from saferank.files.large_table import drop_pages
from saferank.policy.scorers.forest import Forest

if TYPE_CHECKING:
    import lightgbm

ALWAYS = {"verbose": -1, "deterministic": True, "force_col_wise": True, "feature_pre_filter": False, "max_bin": 63}
"""Parameters of every booster. The same data gives the same trees, whatever the number of threads. With 63 bins trees
are as good as with 255, in two thirds of the time. By columns, a booster needs no second copy of its bins."""
BLOCK = 1 << 14
"""Rows that are read at a time."""
MANY = 10_000_000
"""Values in a table from which on a second thread pays."""


def threads_for(rows: int, features: int) -> dict[str, int]:
    """Return the parameter for the number of threads: on a small table, a second one mostly waits."""
    return {"num_threads": thread_count() if rows * features >= MANY else 1}


def can_split(features: NDArray[np.float32]) -> bool:
    """Whether any feature has two values. LightGBM stops with an error if none has."""
    blocks = range(0, len(features), BLOCK)
    return any(bool((features[first : first + BLOCK] != features[0]).any()) for first in blocks)


def built(table: lightgbm.Dataset, *features: NDArray[np.float32]) -> lightgbm.Dataset:
    """Return the table after LightGBM has read it: from then on it needs only its own bins, and not the features."""
    give_memory_back()  # what NumPy has freed
    table.construct()
    give_memory_back()
    for one in features:
        drop_pages(one)
    return table


def give_memory_back() -> None:
    """Return to the operating system what was freed: the C library would keep most of it."""
    if sys.platform.startswith("linux") and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def first_features(features: NDArray[np.float32], read: int) -> NDArray[np.float32] | lightgbm.Sequence:
    """Return the first features of all rows, for LightGBM to read: of a slice it would make a copy."""
    return features if read == features.shape[1] else rows_of(features, np.arange(len(features)), read)


def rows_of(features: NDArray[np.float32], rows: NDArray[np.int64], read: int) -> lightgbm.Sequence:
    """Return some rows of the first features, for LightGBM to read in blocks: no copy of the table is made."""
    import lightgbm

    class Rows(lightgbm.Sequence):
        batch_size = BLOCK

        def __getitem__(self, places: Any) -> NDArray[np.float64]:
            return features[rows[places], :read].astype(np.float64)

        def __len__(self) -> int:
            return len(rows)

    return Rows()


def forest_of(booster: lightgbm.Booster, trees: int | None = None) -> Forest:
    """Return the first so many trees of a booster. Features must be finite and not categorical, as they are here.

    Thresholds are rounded down to float32, so that float32 features take the same way as in LightGBM.
    """
    text = booster.model_to_string(num_iteration=trees)
    blocks = re.split(r"\nTree=\d+\n", text.split("\nend of trees")[0])[1:]
    return Forest.joined([_tree(dict(line.split("=", 1) for line in block.splitlines() if line)) for block in blocks])


def _tree(lines: dict[str, str]) -> Forest:
    def numbers(name: str, kind: Any) -> NDArray[Any]:
        return np.array(lines.get(name, "").split(), kind)

    value = numbers("leaf_value", np.float64)
    single = len(value) == 1
    return Forest(
        feature=numbers("split_feature", np.int32),
        threshold=rounded_down(numbers("threshold", np.float64)),
        left=numbers("left_child", np.int32),
        right=numbers("right_child", np.int32),
        value=value.astype(np.float32),
        root=np.array([-1 if single else 0], np.int32),
    )


def rounded_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 that is not above each value."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)
