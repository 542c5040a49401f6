"""A ranking policy: features in, scores, ranks and exposure out. Scoring and ranking need NumPy alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.arrays import read_arrays
from saferank.features.schema import FeatureSchema
from saferank.policy.scorers import make_scorer, scale_scores, weights_of
from saferank.policy.scorers.parts import ScorerParts
from saferank.policy.serve import ServeAs, Served, serve, shown_examination

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ScorerKind:
    """How to build the scorer that the weights belong to: its name, and its settings other than the features."""

    name: str = "mlp"
    settings: dict[str, Any] = field(default_factory=dict)

    def make(self, features: int, *, seed: int) -> torch.nn.Module:
        """Return a new scorer with random weights drawn from `seed`."""
        return make_scorer(self.name, features, seed=seed, **self.settings)


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """A Plackett-Luce policy over the scores of a scorer, with the examination curve that it was learned for."""

    kind: ScorerKind
    weights: Mapping[str, NDArray[Any]]
    """The weights of the scorer, by their PyTorch names."""
    schema: FeatureSchema
    examination: NDArray[np.float64]
    manifest: dict[str, Any] = field(default_factory=dict)
    """How it was made: inputs, settings, what training reported. Must be valid JSON."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "examination", np.ascontiguousarray(self.examination, np.float64))
        if self.examination.ndim != 1 or len(self.examination) == 0:
            raise UsageError(f"examination of shape {self.examination.shape}: must be one number per rank.")

    def __repr__(self) -> str:
        names = self.schema.columns
        more = "" if len(names) <= 5 else ", ..."
        return f"Policy({self.kind.name}, {len(names)} features: {', '.join(names[:5])}{more}; {self.cutoff} ranks)"

    @cached_property
    def parts(self) -> ScorerParts:
        """The scorer as arrays; raises a `DataError` if the weights do not fit it."""
        return ScorerParts.of(self.kind.name, self.kind.settings, self.weights, len(self.schema.columns))

    @cached_property
    def scorer(self) -> torch.nn.Module:
        """The scorer as a PyTorch module, for further training of a copy."""
        import torch

        scorer = self.kind.make(len(self.schema.columns), seed=0)
        scorer.load_state_dict({name: torch.tensor(array) for name, array in self.weights.items()})
        return scorer

    @property
    def cutoff(self) -> int:
        """Number of ranks that are shown."""
        return len(self.examination)

    @property
    def inputs(self) -> dict[str, Any]:
        """What the policy was learned from, if the manifest says so."""
        found = self.manifest.get("inputs")
        return found if isinstance(found, dict) else {}

    @property
    def id_columns(self) -> dict[str, str]:
        """The names of `query_id` and `document_id` in the log that the policy was learned from."""
        named = (self.inputs.get("log") or {}).get("columns") or {}
        return {name: str(named.get(name) or name) for name in ("query_id", "document_id")}

    def scores(self, data: RankingData, *, ignore: Collection[str] = ()) -> NDArray[np.float32]:
        """Return the scores of documents with these raw features; for `ignore` see `FeatureSchema.prepare`."""
        return self.parts.scores(self.schema.prepare(data, ignore=ignore).features)

    def rank(
        self,
        features: ArrayLike | Mapping[str, ArrayLike] | RankingData,
        offsets: ArrayLike | None = None,
        *,
        serve_as: ServeAs = "deterministic",
        seed: int | np.random.Generator | None = None,
        cutoff: int | None = None,
    ) -> Served:
        """Return the rank of each document, as a service needs it.

        Args:
            features: raw features of the candidates of one query: an array with one row per document and one column
                per number that the policy reads, in the order of `schema.numbers`; or column -> values, for columns of
                text too. Other columns are ignored.
            offsets: `offsets[q]:offsets[q + 1]` are the documents of query q, if there are several.
            serve_as: `deterministic` ranks by score, `sampled` draws rankings from the policy.
            seed: reproduces sampled rankings, or a generator to draw with; by default every call draws new rankings.
            cutoff: number of documents shown, by default all ranks whose examination the policy knows.
        """
        if isinstance(features, RankingData) and offsets is not None:
            raise UsageError("RankingData has offsets of its own; leave offsets out.")
        data = features if isinstance(features, RankingData) else read_arrays(self.schema, features, offsets)
        examination = shown_examination(self.examination, cutoff)
        scores = self.scores(data, ignore=data.feature_names or ())
        rng = np.random.default_rng(seed) if serve_as == "sampled" else None
        return serve(scores, data.offsets, examination, serve_as=serve_as, rng=rng)

    def exposure(self, data: RankingData) -> NDArray[np.float64]:
        """Return the expected examination of each document, with rankings drawn from the policy."""
        from saferank.engine.plackett_luce import exposure

        return exposure(self.scores(data), data.offsets, self.examination).astype(np.float64)

    def at_temperature(self, temperature: float) -> Policy:
        """Return the policy with its scores divided by a temperature: above 1, drawn rankings vary more."""
        if not 0.0 < temperature < math.inf:
            raise UsageError(f"a temperature must be a positive number; got {temperature}.")
        from saferank.policy.scorers.trees import Trees

        scorer = deepcopy(self.scorer)
        scale_scores(scorer, 1.0 / temperature)
        settings = scorer.settings if isinstance(scorer, Trees) else self.kind.settings
        return replace(
            self,
            kind=replace(self.kind, settings=settings),
            weights=weights_of(scorer),
            manifest=self.manifest | {"temperature": temperature * self.manifest.get("temperature", 1.0)},
        )

    def save(self, folder: str | Path) -> None:
        """Write the policy as a folder, atomically; a policy that is already there is replaced."""
        from saferank.policy.model_folder import write_policy

        write_policy(self, Path(folder))

    @staticmethod
    def load(folder: str | Path) -> Policy:
        """Read what `save` wrote."""
        from saferank.policy.model_folder import read_policy

        return read_policy(Path(folder))
