"""From an aggregated log and raw features to a policy that can be kept, with all that it came from."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
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
from saferank.engine.types.ranking_data import RankingData, content_hash
from saferank.features.load_features import take_column
from saferank.features.schema import FeatureSchema, feature_names
from saferank.files.json_format import finite
from saferank.learning.compare_policies import ComparedPolicy, compare
from saferank.learning.learn import learn
from saferank.learning.list_lengths import ListLengths
from saferank.learning.logged_parts import USED_PARTS, judged_parts, logged_parts
from saferank.learning.logging_policy import TrainingExposure, check_logging_policy, training_exposure
from saferank.learning.methods import FROM_COUNTS, LoggedPart, method_named
from saferank.learning.relevance import Sample
from saferank.learning.settings import FitSettings
from saferank.learning.start import logging_model
from saferank.learning.training_loop import Epoch, FitResult
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.earlier_logs import check_earlier, described
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import score, weights_of
from saferank.policy.scorers.trees import Trees

LOGGING_POLICY = "current ranker"
NOTE = "These clicks chose the epoch: the bound is that of a policy fixed beforehand, and not a certificate."
LIBRARIES = ("numpy", "numba", "torch", "lightgbm", "safetensors", "pyarrow")


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
    logging_scores: str | NDArray[np.float32] | None = None,
    start: Policy | None = None,
    earlier: Sequence[AggregatedLog] = (),
    origin: dict[str, Any] | None = None,
    progress: Callable[[Step], None] | None = None,
) -> FittedPolicy:
    """Learn a policy from the parts `train` and `validation` of a log; the part `certify` is not read.

    `logging_scores`: of the Plackett-Luce policy that made the log, if they are known: one per document of `data`, or
    the name of a column of it. Trees then begin with that column, and need it when they are served. `start`: a policy
    that learning begins with; the new one reads the same features, prepared alike. Otherwise learning begins with a
    model of the logging policy. `earlier` logs, of whatever rankers, teach about relevance, with all their parts:
    nothing can be certified on them. `origin` goes into the manifest.
    """
    check_logging_policy(settings.logging_policy, known=logging_scores is not None)
    check_earlier(log, earlier)
    left_out = _check_pairs(log, data, settings.without_features)
    left_out_earlier = [_check_pairs(one, data, settings.without_features, PARTS) for one in earlier]
    base, scores = None if start is None else start.schema.base, logging_scores
    if isinstance(scores, str):
        if settings.scorer == "gbdt" and start is None:
            base = scores
        data, scores = take_column(data, scores, keep=scores == base)
    names = tuple(name for name in feature_names(data) if name != base)
    schema = FeatureSchema(names, log1p=settings.log1p, scaling=settings.scaling, missing=settings.missing, base=base)
    if start is not None:
        schema = start.schema
    features_hash = content_hash(data)  # before they are prepared: raw features are not read again
    logs = [log.statistics(part, data) for part in USED_PARTS]
    train, validation = logged_parts(schema.prepare(data), logs[0], logs[1], examination, settings.risk, scores)
    if held_out := int((log.manifest.get("parts") or {}).get("certify", {}).get("interactions") or 0):
        train, validation = (replace(part, verdict_interactions=held_out) for part in (train, validation))
    judged = () if scores is not None else judged_parts(log, data, train.examination)
    train, validation = (replace(part, judged=judged) for part in (train, validation))
    past = [Sample(train.data, one.statistics(PARTS, data), train.examination) for one in earlier]
    begin, start_kind = _start(settings, schema, train, validation, start)
    shown = training_exposure(
        settings.logging_policy, train, validation, begin if scores is None else None, kind=settings.scorer,
        seed=settings.training.seed,
    )  # fmt: skip
    train, validation = (replace(part, training_exposure=shown.exposure) for part in (train, validation))

    learner = _Learner(settings, begin, train, validation, past, progress)
    scorer, result, chosen = learner.learned_by(settings.method)
    others = [method for method in FROM_COUNTS if method != settings.method] if settings.baselines else []
    if settings.scorer != "gbdt":
        others = [method for method in others if method_named(method).objective is not None]
    rows = {settings.method: chosen} | {method: learner.learned_by(method)[2] for method in others}
    comparison = (learner.logging, *(rows[method] for method in FROM_COUNTS if method in rows))
    inputs = {
        "log": log.manifest,
        "features": {
            "source": data.source,
            "sha256": features_hash,
            "queries": data.queries,
            "documents": data.documents,
        },
        "shown_pairs_without_features": left_out,
        "earlier": [
            described(one.manifest) | {"shown_pairs_without_features": dropped}
            for one, dropped in zip(earlier, left_out_earlier, strict=True)
        ],
        **(origin or {}),
    }
    clip = training_clip(train.log.total_interactions)
    manifest = {"inputs": inputs} | _manifest(settings, clip, shown, start_kind, result, comparison)
    kind = ScorerKind(settings.scorer, scorer.settings if isinstance(scorer, Trees) else {})
    policy = Policy(kind, weights_of(scorer), schema, train.examination, finite(manifest))
    return FittedPolicy(policy, comparison, left_out)


@dataclass(frozen=True, eq=False)
class _Learner:
    """What every method begins with and learns from, and what its policy is compared with."""

    settings: FitSettings
    begin: torch.nn.Module
    train: LoggedPart
    validation: LoggedPart
    past: Sequence[Sample]
    progress: Callable[[Step], None] | None

    @cached_property
    def logging(self) -> ComparedPolicy:
        """The logging policy, by its own clicks."""
        return compare(LOGGING_POLICY, self.validation.logging_exposure, self.validation, self.ever_shown)

    @cached_property
    def ever_shown(self) -> NDArray[np.bool_]:
        """Whether each document was shown at all."""
        return self.train.log.times_shown + self.validation.log.times_shown > 0

    @cached_property
    def lengths(self) -> ListLengths:
        """Of the lists on which policies are compared."""
        return ListLengths.of(self.validation.log)

    def learned_by(self, method: str) -> tuple[torch.nn.Module, FitResult, ComparedPolicy]:
        """Return what a method learns, how it came about, and how it compares."""
        scorer, train, validation, progress = deepcopy(self.begin), self.train, self.validation, self.progress
        click_rate = float(train.log.clicks.sum() / train.log.total_interactions)
        result = learn(
            scorer,
            method_named(method),
            train,
            validation,
            earlier=self.past,
            training=self.settings.training,
            keep_start=True,
            progress=None if progress is None else lambda epoch: progress(Step(method, epoch, click_rate)),
        )
        if not all(bool(torch.isfinite(tensor).all()) for tensor in scorer.state_dict().values()):
            raise UsageError(f"{method} went out of bounds in training; choose a lower learning rate.")
        scores = score(scorer, train.data.features) if result.held_out_scores is None else result.held_out_scores
        exposed = self.lengths.exposure(scores, validation.examination)
        compared = compare(method, exposed, validation, self.ever_shown)
        if result.saw_validation and result.chosen is not None:  # its improvement is foreseen, and not seen
            surplus = compared.estimate - (self.logging.estimate + result.chosen.improvement)
            estimate, bound = compared.estimate - surplus, compared.lower_bound - surplus
            compared = replace(compared, estimate=estimate, lower_bound=bound)
        return scorer, result, compared


def _manifest(
    settings: FitSettings,
    clip: float,
    shown: TrainingExposure,
    start: str,
    result: FitResult,
    comparison: Sequence[ComparedPolicy],
) -> dict[str, Any]:
    """Return how a policy came to be, but for its inputs."""
    return {
        "used_parts": list(USED_PARTS),
        "settings": {
            "method": settings.method,
            "delta": settings.delta,
            "constant": settings.constant,
            "training": asdict(settings.training),
            "clip": clip,
            "floor": FLOOR,
            "logging_exposure": shown.kind,
            "logging_policy": {"asked": settings.logging_policy} | shown.as_json(),
            "start": start,
        },
        "training": {
            "best_epoch": result.best_epoch,
            "history": [asdict(epoch) for epoch in result.history],
            "path": [asdict(one) for one in result.path],
            "chosen": None if result.chosen is None else asdict(result.chosen),
        },
        "comparison": {"note": NOTE, "part": "validation", "policies": [asdict(row) for row in comparison]},
        "libraries": {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES},
    }


def _start(
    settings: FitSettings, schema: FeatureSchema, train: LoggedPart, validation: LoggedPart, start: Policy | None
) -> tuple[torch.nn.Module, str]:
    """Return the scorer that learning begins with, and where it comes from."""
    columns = len(schema.columns)
    if start is None and schema.base is not None:
        return Trees(columns, "column"), f"scores in the column {schema.base}"
    if start is None:
        made = logging_model(settings.scorer, train, validation, seed=settings.training.seed)
        return made, "a model of what the log shows"
    if settings.scorer == "gbdt":
        return Trees.on(start.scorer, columns), "a policy"
    scorer = ScorerKind(settings.scorer).make(columns, seed=settings.training.seed)
    scorer.load_state_dict(start.scorer.state_dict())
    return scorer, "a policy"


def _check_pairs(
    log: AggregatedLog, data: RankingData, without_features: str, parts: Sequence[str] = USED_PARTS
) -> int:
    learned_from = pc.is_in(log.shown_counts["part"], value_set=pa.array(parts, pa.string()))
    missing = replace(log, shown_counts=log.shown_counts.filter(learned_from)).missing_pairs(data)
    if len(missing) and without_features == "error":
        first = missing.sort_by([("shown_sum", "descending")]).slice(0, 1).to_pylist()[0]
        raise DataError(
            f"lacks {len(missing):,} of the pairs that {log.source} shows, such as query {first['query_id']}, document "
            f"{first['document_id']} (shown {first['shown_sum']:,} times); add their features, or leave "
            "them out (--on-bad-rows drop, or without_features='drop' of SafeRanker).",
            file=data.source,
        )
    return len(missing)
