"""From an aggregated log and raw features to a policy that can be kept, with all that it came from."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import FLOOR
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.objectives.risk import Risk
from saferank.engine.plackett_luce import exposure
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure, known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData, content_hash
from saferank.features.schema import FeatureSchema
from saferank.files.json_format import finite
from saferank.learning.compare_policies import ComparedPolicy, compare
from saferank.learning.learn import learn
from saferank.learning.methods import FROM_COUNTS, LoggedPart, method_named
from saferank.learning.settings import FitSettings
from saferank.learning.training_loop import Epoch, FitResult
from saferank.logs.aggregated_log import AggregatedLog
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import score

LOGGING_POLICY = "current ranker"
USED_PARTS = ("train", "validation")
NOTE = "These clicks chose the epoch: the bound is that of a policy fixed beforehand, and not a certificate."
LIBRARIES = ("numpy", "numba", "torch", "safetensors", "pyarrow")


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
    settings: FitSettings = FitSettings(),  # noqa: B008 (frozen)
    *,
    logging_scores: NDArray[np.float32] | None = None,
    start: Policy | None = None,
    origin: dict[str, Any] | None = None,
    progress: Callable[[Step], None] | None = None,
) -> FittedPolicy:
    """Learn a policy from the parts `train` and `validation` of a log; the part `certify` is not read.

    `logging_scores`: of the Plackett-Luce policy that made the log, one per document of `data`, if they are known.
    `start`: a policy with the same scorer and features whose weights training begins with. `origin` goes into the
    manifest.
    """
    left_out = _check_pairs(log, data, settings.without_features)
    schema = FeatureSchema.of(data, log1p=settings.log1p, scaling=settings.scaling, missing=settings.missing)
    logs = [log.statistics(part, data) for part in USED_PARTS]
    train, validation = logged_parts(schema.prepare(data), logs[0], logs[1], examination, settings.risk, logging_scores)
    ever_shown = logs[0].times_shown + logs[1].times_shown > 0
    click_rate = float(train.log.clicks.sum() / train.log.total_interactions)

    def learned_by(method: str) -> tuple[torch.nn.Module, FitResult, ComparedPolicy]:
        scorer = ScorerKind(settings.scorer).make(len(schema.names), seed=settings.training.seed)
        if start is not None:
            scorer.load_state_dict(start.scorer.state_dict())
        result = learn(
            scorer,
            method_named(method),
            train,
            validation,
            training=settings.training,
            progress=None if progress is None else lambda epoch: progress(Step(method, epoch, click_rate)),
        )
        if not all(bool(torch.isfinite(tensor).all()) for tensor in scorer.state_dict().values()):
            raise UsageError(f"{method} went out of bounds in training; choose a lower learning rate.")
        scores = score(scorer, train.data.features)
        shown = exposure(scores, data.offsets, validation.examination).astype(np.float64)
        return scorer, result, compare(method, shown, validation, ever_shown)

    logging = compare(LOGGING_POLICY, validation.logging_exposure, validation, ever_shown)
    scorer, result, chosen = learned_by(settings.method)
    others = [method for method in FROM_COUNTS if method != settings.method] if settings.baselines else []
    rows = {settings.method: chosen} | {method: learned_by(method)[2] for method in others}
    comparison = (logging, *(rows[method] for method in FROM_COUNTS if method in rows))
    manifest = {
        "inputs": {
            "log": log.manifest,
            "features": {
                "source": data.source,
                "sha256": content_hash(data),
                "queries": data.queries,
                "documents": data.documents,
            },
            "shown_pairs_without_features": left_out,
            **(origin or {}),
        },
        "used_parts": list(USED_PARTS),
        "settings": {
            "method": settings.method,
            "delta": settings.delta,
            "constant": settings.constant,
            "training": asdict(settings.training),
            "clip": training_clip(train.log.total_interactions),
            "floor": FLOOR,
            "logging_exposure": "counted" if logging_scores is None else "known",
        },
        "training": {"best_epoch": result.best_epoch, "history": [asdict(epoch) for epoch in result.history]},
        "comparison": {"note": NOTE, "part": "validation", "policies": [asdict(row) for row in comparison]},
        "libraries": {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES},
    }
    policy = Policy(ScorerKind(settings.scorer), scorer, schema, train.examination, finite(manifest))
    return FittedPolicy(policy, comparison, left_out)


def logged_parts(
    data: RankingData,
    train: LogStatistics,
    validation: LogStatistics,
    examination: NDArray[np.float64],
    risk: Risk = Risk(),  # noqa: B008 (frozen)
    logging_scores: NDArray[np.float32] | None = None,
) -> tuple[LoggedPart, LoggedPart]:
    """Return both parts of a log with the logging exposure of both together.

    They are of the same queries, and one policy showed the documents, so where its scores are not known its exposure
    is counted from both: more data, and no document that one part shows counts as never shown in the other.
    """
    for name, log in zip(USED_PARTS, (train, validation), strict=True):
        if log.total_interactions == 0:
            raise DataError(f"part '{name}' of the log has no interaction with these queries; log more of them.")
        if log.clicks.sum() == 0:
            raise DataError(f"part '{name}' of the log has no click on these documents; there is nothing to learn.")
    examination = np.asarray(examination, np.float64)
    if logging_scores is None:
        logging_exposure = estimated_logging_exposure(train.merge(validation), examination)
    else:
        logging_exposure = known_logging_exposure(logging_scores, train.offsets, examination)
    first, second = (LoggedPart(data, log, examination, logging_exposure, risk=risk) for log in (train, validation))
    return first, second


def _check_pairs(log: AggregatedLog, data: RankingData, without_features: str) -> int:
    learned_from = pc.is_in(log.shown_counts["part"], value_set=pa.array(USED_PARTS, pa.string()))
    missing = replace(log, shown_counts=log.shown_counts.filter(learned_from)).missing_pairs(data)
    if len(missing) and without_features == "error":
        first = missing.sort_by([("shown_sum", "descending")]).slice(0, 1).to_pylist()[0]
        raise DataError(
            f"lacks {len(missing):,} of the pairs that {log.source} shows, such as query {first['query_id']}, document "
            f"{first['document_id']} (shown {first['shown_sum']:,} times); add their features, or leave "
            "them out (--on-bad-rows drop).",
            file=data.source,
        )
    return len(missing)
