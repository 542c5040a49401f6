"""A policy learned from clicks: the one path of `fit`, `reproduce`, the closed loop and the demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from saferank.engine.errors import UsageError
from saferank.engine.objectives.exposure_ips import training_clip
from saferank.learning.boosting import boost
from saferank.learning.correction import correct
from saferank.learning.methods import LoggedPart, Method
from saferank.learning.settings import TrainingSettings
from saferank.learning.training_loop import Epoch, FitResult, fit
from saferank.policy.scorers.trees import Trees


def learn(
    scorer: torch.nn.Module,
    method: Method,
    train: LoggedPart,
    validation: LoggedPart,
    *,
    training: TrainingSettings = TrainingSettings(),  # noqa: B008 (frozen)
    keep_start: bool = False,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Fit the scorer, in place, to the part `train`; the part `validation` chooses the epoch, or the number of trees.

    A method without an objective corrects the scorer's start, see `correct`. Propensities are clipped up in training,
    to min(10 / sqrt(N), 1), which limits the weight of a lucky click on a rarely shown document; not in validation,
    where nothing is fitted to them. For the rest see `fit` and `boost`.
    """
    if method.objective is None:
        if not isinstance(scorer, Trees):
            raise UsageError(f"method '{method.name}' grows trees; choose the scorer gbdt.")
        return correct(scorer, train, validation, seed=training.seed, progress=progress)
    clipped = replace(train, clip=training_clip(train.log.total_interactions))
    objective, judge = method.objective(clipped), (validation.data, method.objective(validation))
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
