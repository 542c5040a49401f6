"""A ranking policy: features in, scores and exposure out."""

import math
from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.ranking_data import RankingData
from saferank.features.schema import FeatureSchema
from saferank.policy.scorers import make_scorer, scale_scores, score
from saferank.policy.scorers.trees import Trees


@dataclass(frozen=True)
class ScorerKind:
    """How to build the scorer that the weights belong to: its name, and its settings other than the features."""

    name: str = "mlp"
    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, features: int, *, seed: int) -> torch.nn.Module:
        """Return a new scorer with random weights drawn from `seed`."""
        return make_scorer(self.name, features, seed=seed, **self.settings)


@dataclass(frozen=True, eq=False)
class Policy:
    """A Plackett-Luce policy over the scores of a scorer, with the examination of the ranks that it was learned for."""

    kind: ScorerKind
    scorer: torch.nn.Module
    schema: FeatureSchema
    examination: NDArray[np.float64]
    manifest: dict[str, Any] = field(default_factory=dict)
    """How it was made: inputs, settings, what training reported. Must be valid JSON."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "examination", np.ascontiguousarray(self.examination, np.float64))
        if self.examination.ndim != 1 or len(self.examination) == 0:
            raise UsageError(f"examination of shape {self.examination.shape}: must be one number per rank.")

    @property
    def cutoff(self) -> int:
        """Number of ranks that are shown."""
        return len(self.examination)

    @property
    def inputs(self) -> dict[str, Any]:
        """What the policy was learned from, as far as the manifest says."""
        found = self.manifest.get("inputs")
        return found if isinstance(found, dict) else {}

    def scores(self, data: RankingData, *, ignore: Collection[str] = ()) -> NDArray[np.float32]:
        """Return the scores of documents with these raw features; for `ignore` see `FeatureSchema.prepare`."""
        return score(self.scorer, self.schema.prepare(data, ignore=ignore).features)

    def exposure(self, data: RankingData) -> NDArray[np.float64]:
        """Return the expected examination of each document, rankings being drawn from the policy."""
        return exposure(self.scores(data), data.offsets, self.examination).astype(np.float64)

    def at_temperature(self, temperature: float) -> "Policy":
        """Return the policy whose scores are these, divided by a temperature: above 1, drawn rankings vary more."""
        if not 0.0 < temperature < math.inf:
            raise UsageError(f"a temperature is a positive number; got {temperature}.")
        scorer = deepcopy(self.scorer)
        scale_scores(scorer, 1.0 / temperature)
        settings = scorer.settings if isinstance(scorer, Trees) else self.kind.settings
        return replace(
            self,
            kind=replace(self.kind, settings=settings),
            scorer=scorer,
            manifest=self.manifest | {"temperature": temperature * self.manifest.get("temperature", 1.0)},
        )

    def save(self, folder: str | Path) -> None:
        """Write the policy as a folder, atomically; a policy that is already there is replaced."""
        from saferank.policy.model_folder import write_policy

        write_policy(self, Path(folder))

    @staticmethod
    def load(folder: str | Path) -> "Policy":
        """Read what `save` wrote."""
        from saferank.policy.model_folder import read_policy

        return read_policy(Path(folder))
