"""The parts of any scorer: s(d) = start(d) + trees(d), with a start that is a column, a weighted sum or a network."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.forest import Forest
from saferank.policy.policy import Policy
from saferank.policy.scorers.linear import Linear
from saferank.policy.scorers.mlp import MLP
from saferank.policy.scorers.trees import Trees

StartKind = Literal["none", "column", "linear", "mlp"]
Array = NDArray[np.float32]


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
    def of(cls, policy: Policy) -> Self:
        """Return the parts of the scorer of a policy."""
        scorer = policy.scorer
        scale = 1.0
        if isinstance(scorer, Trees):
            start, forest, scale = scorer.start, scorer.forest, scorer.start_scale
        else:
            start, forest = scorer, Forest.empty()
        if start is None:
            return cls("none", (), forest)
        if isinstance(start, Linear | MLP):
            found = [layer for layer in start.modules() if isinstance(layer, torch.nn.Linear)]
            return cls("linear" if isinstance(start, Linear) else "mlp", tuple(map(_arrays, found)), forest)
        return cls("column", (), forest, scale)


def _arrays(layer: torch.nn.Linear) -> tuple[Array, Array | None]:
    bias = None if layer.bias is None else layer.bias.detach().numpy().astype(np.float32)
    return layer.weight.detach().numpy().astype(np.float32), bias
