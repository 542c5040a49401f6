"""A policy learned from clicks: the one path of `fit`, `reproduce`, the closed loop and the demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace

import torch

from saferank.engine.errors import UsageError
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.engine.objectives.objective import Objective
from saferank.learning.boosting import boost
from saferank.learning.climb import climb
from saferank.learning.correction import correct
from saferank.learning.evidence import Evidence, find_evidence, with_relevance
from saferank.learning.methods import METHODS, LoggedPart, Method
from saferank.learning.relevance import Sample
from saferank.learning.settings import StopBy, TrainingSettings
from saferank.learning.training_loop import Epoch, FitResult, fit
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees

LIKELY = 0.5
"""Chance of a proof from which on no other way is tried."""


def learn(
    scorer: torch.nn.Module,
    method: Method,
    train: LoggedPart,
    validation: LoggedPart,
    *,
    earlier: Sequence[Sample] = (),
    training: TrainingSettings = TrainingSettings(),  # noqa: B008 (frozen)
    keep_start: bool = False,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Fit the scorer, in place, to the part `train`; the part `validation` chooses the epoch, or the number of trees.

    `correction` and `auto` begin with what the scorer is; see `correct` and `choose`. For the other methods see `fit`
    (or `boost`, for trees). Propensities are clipped up in training, to min(10 / sqrt(N), 1), which limits the weight
    of a lucky click on a rarely shown document; not in validation, where nothing is fitted to them. `earlier` logs, of
    whatever ranker, add to what a regression of relevance is fitted to; methods without one do not use them.
    """
    if method.objective is None:
        if not isinstance(scorer, Trees):
            raise UsageError(f"method '{method.name}' grows trees; choose the scorer gbdt.")
        evidence = find_evidence(scorer, train, validation, earlier=earlier, seed=training.seed, progress=progress)
        if method.name == "correction":
            return correct(scorer, evidence, by_gain=True)
        return choose(scorer, evidence, train, validation, seed=training.seed, progress=progress)
    if method.needs_relevance:
        train, validation = with_relevance(train, validation, earlier=earlier, seed=training.seed)
    objective = method.objective(clipped(for_training(train)))
    judge = validation.data, validation_objective(method, for_training(validation), training.stop_by)
    if isinstance(scorer, Trees):
        return boost(scorer, train.data, objective, validation=judge, seed=training.seed, progress=progress)
    return fit(
        scorer,
        train.data,
        objective,
        validation=judge,
        settings=training,
        keep_start=keep_start,
        progress=progress,
    )


def choose(
    scorer: Trees,
    evidence: Evidence,
    train: LoggedPart,
    validation: LoggedPart,
    *,
    seed: int,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Learn by correction and by a path of trees and, if neither is likely to be proven, by the gain bound.

    Kept is what is worth more. The path of trees is for logs whose queries come again: see `climb`. A correction may
    show what the log never did. No verdict credits it with that, so where rankings hardly vary the gain bound, which
    moves exposure among documents that were shown, can be proven with fewer clicks.
    """
    begin = deepcopy(scorer)
    kept = correct(scorer, evidence)
    if queries_come_again(train, validation):
        grown = deepcopy(begin)
        climbed = climb(grown, evidence, to_beat=kept.worth, seed=seed, progress=progress)
        path = (*kept.path, *climbed.path)
        if climbed.worth > kept.worth:
            scorer.grow(grown.forest)
            kept = climbed
        kept = replace(kept, path=path)
    elif evidence.slopes.correction == 0:
        return kept
    if kept.chosen is not None and kept.chosen.chance >= LIKELY:
        return kept
    bound = METHODS["gain-bound"].objective
    assert bound is not None
    objective, judge = bound(clipped(for_training(train))), bound(for_training(validation))
    other = boost(
        begin, train.data, objective, validation=(validation.data, judge), seed=seed, progress=progress
    )  # fmt: skip
    foreseen = evidence.foresight.of("gain-bound", score(begin, train.data.features))
    path = (*kept.path, foreseen)
    if foreseen.gain <= 0 or foreseen.worth <= kept.worth:
        return replace(kept, path=path)
    scorer.grow(begin.forest)
    return replace(other, path=path, chosen=foreseen)


def queries_come_again(train: LoggedPart, validation: LoggedPart) -> bool:
    """Whether most interactions of the validation part are of queries that the train part has too."""
    if train.data is not validation.data:
        return False
    again = int(validation.log.interactions[train.log.interactions > 0].sum())
    return 2 * again > validation.log.total_interactions


def validation_objective(method: Method, validation: LoggedPart, stop_by: StopBy) -> Objective:
    """Return what chooses the epoch, or the number of trees: one rule for all methods that maximise an objective.

    Kept is the epoch with the highest value on the validation part, with propensities as they are, not clipped.
    `objective`: of what the method maximises in training, risk included. `clicks`: of exposure IPS, the estimated
    clicks, whatever the method maximises; so the paper's "early stopping based on validation clicks" can be read.
    """
    if stop_by == "clicks":
        method = METHODS["exposure-ips"]
    assert method.objective is not None
    return method.objective(validation)


def for_training(part: LoggedPart) -> LoggedPart:
    """Return the part with the logging exposure that objectives are made from."""
    return part if part.training_exposure is None else replace(part, logging_exposure=part.training_exposure)


def clipped(part: LoggedPart) -> LoggedPart:
    """Return the part with the clip of training."""
    return replace(part, clip=training_clip(part.log.total_interactions))
