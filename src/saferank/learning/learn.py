"""A policy learned from clicks: the one path of `fit`, `reproduce`, the closed loop and the demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from saferank.engine.objectives.exposure_ips import training_clip
from saferank.learning.methods import LoggedPart, Method
from saferank.learning.settings import TrainingSettings
from saferank.learning.training_loop import Epoch, FitResult, fit


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
    """Fit the scorer, in place, to the part `train`; the part `validation` chooses the epoch.

    Propensities are clipped up in training, to min(10 / sqrt(N), 1), which limits the weight of a lucky click on a
    rarely shown document; not in validation, where nothing is fitted to them. For the rest see `fit`.
    """
    clipped = replace(train, clip=training_clip(train.log.total_interactions))
    return fit(
        scorer,
        train.data,
        method.objective(clipped),
        validation=(validation.data, method.objective(validation)),
        settings=training,
        keep_start=keep_start,
        progress=progress,
    )
