"""From an aggregated log and raw features to a policy that can be kept, with all that it came from."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from saferank.engine.delta import checked_delta
from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import FLOOR
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.ranking_data import RankingData, content_hash
from saferank.features.schema import FeatureSchema
from saferank.files.json_values import finite
from saferank.learning.comparison import ComparedPolicy, compare
from saferank.learning.learn_from_log import METHODS, LearningSettings, LoggedParts, learn_from_log
from saferank.learning.training_loop import Epoch, FitResult
from saferank.logs.aggregated_log import AggregatedLog
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import score

LOGGING = "logging policy"
USED_PARTS = ("train", "validation")
NOTE = "These clicks chose the epoch: the bound is that of a policy fixed beforehand, and not a certificate."
FASTEST = 10
"""Learning rate beyond which weights leave what float32 holds."""
LIBRARIES = ("numpy", "numba", "torch", "safetensors", "pyarrow")


@dataclass(frozen=True)
class PolicySettings:
    """What to learn, with which scorer, from which features."""

    learning: LearningSettings = field(default_factory=LearningSettings)
    scorer: ScorerKind = field(default_factory=ScorerKind)
    log1p: bool = True
    scaling: Literal["per-query", "none"] = "per-query"
    missing: float | Literal["error"] = "error"
    baselines: bool = True
    """Whether the other methods are learned too, for comparison."""
    without_features: Literal["error", "drop"] = "error"
    """What becomes of shown documents without features."""


@dataclass(frozen=True)
class Step:
    """Where the work stands after an epoch."""

    method: str
    epoch: Epoch
    click_rate: float
    """Clicks per interaction of the logging policy, on the same part of the log as the epoch's estimate."""


@dataclass(frozen=True, eq=False)
class FittedPolicy:
    """A policy, and how it compares with the logging policy and with what other methods learn."""

    policy: Policy
    comparison: tuple[ComparedPolicy, ...]
    left_out: int
    """Shown pairs of query and document that have no features."""


def fit_policy(
    log: AggregatedLog,
    data: RankingData,
    examination: NDArray[np.float64],
    settings: PolicySettings = PolicySettings(),  # noqa: B008 (frozen)
    *,
    logging_scores: NDArray[np.float32] | None = None,
    origin: dict[str, Any] | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[Step], None] | None = None,
) -> FittedPolicy:
    """Learn a policy from the parts `train` and `validation` of a log; the part `certify` is not looked at.

    `logging_scores`: of the Plackett-Luce policy that made the log, one a document of `data`, if they are known.
    `origin` goes into the manifest. `checkpoint` is a folder in which an interrupted run leaves where it stood.
    """
    learning = settings.learning
    checked_delta(learning.delta)
    if not 0 < learning.training.learning_rate <= FASTEST:
        raise UsageError(f"learning rate {learning.training.learning_rate:g}: must be above 0, and at most {FASTEST}.")
    left_out = _check_pairs(log, data, settings.without_features)
    schema = FeatureSchema.of(data, log1p=settings.log1p, scaling=settings.scaling, missing=settings.missing)
    parts = LoggedParts.of(
        log.statistics("train", data), log.statistics("validation", data), examination, logging_scores=logging_scores
    )
    prepared, content = schema.prepare(data), content_hash(data)
    click_rate = parts.click_rate("train")

    def learn(method: str) -> tuple[torch.nn.Module, FitResult, ComparedPolicy]:
        scorer = settings.scorer.make(len(schema.names), seed=learning.training.seed)
        result = learn_from_log(
            scorer,
            prepared,
            parts,
            replace(learning, method=method),
            checkpoint=None if checkpoint is None else checkpoint / f"{method}-{content[:16]}.safetensors",
            progress=None if progress is None else lambda epoch: progress(Step(method, epoch, click_rate)),
        )
        if not all(bool(torch.isfinite(tensor).all()) for tensor in scorer.state_dict().values()):
            raise UsageError(f"{method} went out of bounds in training; choose a lower learning rate.")
        shown = exposure(score(scorer, prepared.features), prepared.offsets, parts.examination).astype(np.float64)
        return scorer, result, compare(method, shown, parts, delta=learning.delta, bound=learning.bound)

    logging = compare(LOGGING, parts.logging_exposure, parts, delta=learning.delta, bound=learning.bound)
    scorer, result, chosen = learn(learning.method)
    others = [method for method in METHODS if method != learning.method] if settings.baselines else []
    rows = {learning.method: chosen} | {method: learn(method)[2] for method in others}
    comparison = (logging, *(rows[method] for method in METHODS if method in rows))
    manifest = {
        "inputs": {
            "log": log.manifest,
            "features": {
                "source": data.source,
                "sha256": content,
                "queries": data.queries,
                "documents": data.documents,
            },
            "shown_pairs_without_features": left_out,
            **(origin or {}),
        },
        "used_parts": list(USED_PARTS),
        "settings": {
            **asdict(learning),
            "clip": training_clip(parts.train.total_interactions),
            "floor": FLOOR,
            "logging_exposure": "counted" if logging_scores is None else "known",
        },
        "training": {"best_epoch": result.best_epoch, "history": [asdict(epoch) for epoch in result.history]},
        "comparison": {"note": NOTE, "part": "validation", "policies": [asdict(row) for row in comparison]},
        "libraries": {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES},
    }
    policy = Policy(settings.scorer, scorer, schema, parts.examination, finite(manifest))
    return FittedPolicy(policy, comparison, left_out)


def _check_pairs(log: AggregatedLog, data: RankingData, without_features: str) -> int:
    learned_from = pc.is_in(log.impressions["part"], value_set=pa.array(USED_PARTS, pa.string()))
    missing = replace(log, impressions=log.impressions.filter(learned_from)).missing_pairs(data)
    if len(missing) and without_features == "error":
        first = missing.sort_by([("shown_sum", "descending")]).slice(0, 1).to_pylist()[0]
        raise DataError(
            f"lacks {len(missing):,} of the pairs that {log.source} shows, such as query {first['query_id']}, document "
            f"{first['document_id']} (shown {first['shown_sum']:,} times); add their features, or leave "
            "them out (--on-bad-rows drop).",
            file=data.source,
        )
    return len(missing)
