"""Decision trees on top of a start."""

from typing import Any, Self

import numpy as np
import torch

from saferank.engine.errors import UsageError
from saferank.policy.scorers.forest import TYPES, Forest
from saferank.policy.scorers.linear import Linear
from saferank.policy.scorers.mlp import MLP


class LastColumn(torch.nn.Module):
    """s(d) = the last column, times `scale`: the scores of a ranker that is not part of the policy."""

    def __init__(self, features: int, scale: float = 1.0) -> None:
        super().__init__()
        self.features, self.scale = features, scale

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return one score per row."""
        return features[:, -1] * self.scale


STARTS: dict[str, type[torch.nn.Module]] = {"mlp": MLP, "linear": Linear, "column": LastColumn}


class Trees(torch.nn.Module):
    """s(d) = start(d) + sum of trees(d).

    The start is that of a policy which the trees correct: `mlp` or `linear`, `column` for the last column of the
    features, which the trees do not read, or `none`. Trees are not trained by gradients with respect to parameters:
    they are grown by LightGBM, and set with `grow`.
    """

    def __init__(
        self, features: int, start: str = "none", sizes: dict[str, int] | None = None, start_scale: float = 1.0
    ) -> None:
        super().__init__()
        if start != "none" and start not in STARTS:
            raise UsageError(f"a start of kind '{start}' is unknown; choose from: none, {', '.join(STARTS)}.")
        self.features, self.start_kind = features, start
        self.start = None if start == "none" else STARTS[start](features)
        if isinstance(self.start, LastColumn):
            self.start.scale = float(start_scale)
        for name, kind in TYPES.items():
            empty = np.zeros((sizes or {}).get(name, 0), kind)
            self.register_buffer(name, torch.from_numpy(empty))
        self._forest: Forest | None = None

    @classmethod
    def on(cls, scorer: torch.nn.Module, features: int) -> Self:
        """Return trees that begin with the scores of this scorer; those of `Trees` with a copy of its trees."""
        if isinstance(scorer, Trees):
            copied = cls(features, scorer.start_kind, start_scale=scorer.start_scale)
            if copied.start is not None and scorer.start is not None:
                copied.start.load_state_dict(scorer.start.state_dict())
            copied.grow(scorer.forest)
            return copied
        copied = cls(features, next(name for name, kind in STARTS.items() if type(scorer) is kind))
        assert copied.start is not None
        copied.start.load_state_dict(scorer.state_dict())
        return copied

    @property
    def start_scale(self) -> float:
        """What the last column is multiplied by, if that is the start."""
        return self.start.scale if isinstance(self.start, LastColumn) else 1.0

    @property
    def read(self) -> int:
        """Number of features that trees may read, the first ones."""
        return self.features - (self.start_kind == "column")

    @property
    def forest(self) -> Forest:
        """The trees; raises if the arrays are not trees that read these features."""
        if self._forest is None:
            self._forest = self._checked(Forest(**{name: getattr(self, name).numpy() for name in TYPES}))
        return self._forest

    @property
    def settings(self) -> dict[str, Any]:
        """What `Trees` must be made with, apart from the number of features, before its weights are loaded."""
        scale = {} if self.start_scale == 1.0 else {"start_scale": self.start_scale}
        return {"start": self.start_kind, "sizes": {name: len(getattr(self, name)) for name in TYPES}} | scale

    def grow(self, forest: Forest) -> None:
        """Put these trees in place of those that are there."""
        self._forest = self._checked(forest)
        for name, array in forest.arrays().items():
            setattr(self, name, torch.from_numpy(array))

    def _checked(self, forest: Forest) -> Forest:
        if forest.features_read > self.read:
            raise UsageError(f"the trees read {forest.features_read} features, but there are {self.read}.")
        return forest

    def start_scores(self, features: torch.Tensor) -> torch.Tensor:
        """Return the scores of the start alone."""
        if self.start is None:
            return torch.zeros(len(features))
        scores: torch.Tensor = self.start(features)
        return scores

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return one score per row."""
        scores = self.start_scores(features)
        return scores + torch.from_numpy(self.forest.scores(features.numpy())) if self.forest.trees else scores
