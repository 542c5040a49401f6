"""Any scorer as arrays: s(d) = start(d) + trees(d), with a start that is a column, a weighted sum or a network.

NumPy alone: nothing that ranks needs PyTorch. `Linear`, `MLP` and `Trees` are the same scorers as it learns them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.policy.scorers.forest import TYPES, Forest

StartKind = Literal["none", "column", "linear", "mlp"]
Array = NDArray[np.float32]
BLOCK = 1 << 16
"""Documents that are scored at a time: features may be a memory map larger than memory."""


@dataclass(frozen=True, eq=False)
class ScorerParts:
    """Arrays of a scorer."""

    start: StartKind
    layers: tuple[tuple[Array, Array | None], ...]
    """Weights (outputs, inputs) and bias of each layer, with ReLU between them: one layer if the start is linear."""
    forest: Forest
    column_scale: float = 1.0
    """What the column is multiplied by, if the start is one."""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], features: int) -> Self:
        """Return the parts of a scorer of this name and these settings; a `DataError` names a wrong array as column."""
        needed = needed_weights(name, settings, features)
        for array in (*needed, *weights):
            if array not in needed or array not in weights:
                raise DataError("is missing." if array in needed else "does not belong to this scorer.", column=array)
            found, (shape, kind) = weights[array], needed[array]
            if found.shape != shape or found.dtype != kind:
                message = f"has shape {found.shape} of {found.dtype}, but must have {shape} of {np.dtype(kind)}."
                raise DataError(message, column=array)
            if not np.isfinite(found).all():
                raise DataError("has values that are not finite.", column=array)
        if name != "gbdt":
            return cls("linear" if name == "linear" else "mlp", _layers(weights, ""), Forest.empty())
        start, forest = settings.get("start", "none"), Forest(**{array: weights[array] for array in TYPES})
        if forest.features_read > (read := features - (start == "column")):
            raise DataError(f"the trees read {forest.features_read} features, but there are {read}.", column="feature")
        return cls(start, _layers(weights, "start."), forest, settings.get("start_scale", 1.0))

    def scores(self, features: Array) -> Array:
        """Return one score per row of prepared features."""
        out = np.empty(len(features), np.float32)
        for first in range(0, len(features), BLOCK):
            rows = np.asarray(features[first : first + BLOCK])
            scores = self._start_scores(rows)
            out[first : first + BLOCK] = scores + self.forest.scores(rows) if self.forest.trees else scores
        return out

    def _start_scores(self, rows: Array) -> Array:
        if self.start == "none":
            return np.zeros(len(rows), np.float32)
        if self.start == "column":
            return rows[:, -1] * np.float32(self.column_scale)
        for place, (weight, bias) in enumerate(self.layers):
            rows = (np.maximum(rows, 0.0) if place else rows) @ weight.T
            rows = rows if bias is None else rows + bias
        return rows[:, 0]


def _layers(weights: Mapping[str, NDArray[Any]], prefix: str) -> tuple[tuple[Array, Array | None], ...]:
    """Return the layers whose names begin like this, in order."""
    names = [name.removesuffix("weight") for name in weights if name.startswith(prefix) and name.endswith(".weight")]
    names.sort(key=lambda name: [int(part) for part in name.split(".") if part.isdigit()])
    return tuple((weights[f"{name}weight"], weights.get(f"{name}bias")) for name in names)


Needed = dict[str, tuple[tuple[int, ...], Any]]


def needed_weights(name: str, settings: Mapping[str, Any], features: int) -> Needed:
    """Return the shape and type of each array of a scorer; an error unless the settings are of such a scorer."""
    if name not in _NEEDED:
        raise UsageError(f"scorer {name!r} is unknown; choose one of: {', '.join(_NEEDED)}.")
    return _NEEDED[name](features, **settings)


def _of_linear(features: int) -> Needed:
    return {"layer.weight": ((1, features), np.float32)}


def _of_mlp(features: int, hidden: Sequence[int] = (64, 32)) -> Needed:
    out: Needed = {}
    for place, (inputs, outputs) in enumerate(pairwise([features, *hidden, 1])):
        out[f"layers.{2 * place}.weight"] = (outputs, inputs), np.float32
        out[f"layers.{2 * place}.bias"] = (outputs,), np.float32
    return out


def _of_trees(
    features: int, start: str = "none", sizes: Mapping[str, int] | None = None, start_scale: float = 1.0
) -> Needed:
    sizes = sizes or {}
    if not all(isinstance(size, int) and size >= 0 for size in sizes.values()):
        raise UsageError(f"sizes {sizes}: must be the lengths of arrays.")
    if not math.isfinite(start_scale):
        raise UsageError(f"start_scale {start_scale}: must be a finite number.")
    if start not in ("none", "column"):
        begin = {f"start.{name}": kind for name, kind in needed_weights(start, {}, features).items()}
    else:
        begin = {}
    return begin | {name: ((sizes.get(name, 0),), kind) for name, kind in TYPES.items()}


_NEEDED: dict[str, Callable[..., Needed]] = {"gbdt": _of_trees, "mlp": _of_mlp, "linear": _of_linear}
