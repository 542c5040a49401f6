"""A policy learned from a click log, by any of the methods that need no more of it than its counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.objectives.exposure_crm import Bound, exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips, training_clip
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.naive import naive
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure, known_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.training_loop import Epoch, FitResult, TrainingSettings, fit

METHODS = ("naive", "exposure-ips", "exposure-crm")


@dataclass(frozen=True)
class LearningSettings:
    """What to learn, and how."""

    method: str = "exposure-crm"
    delta: float = 0.05
    """Chance that the bound may fail, for a policy fixed beforehand."""
    bound: Bound = "proven"
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"method '{self.method}' is unknown; choose from: {', '.join(METHODS)}.")


@dataclass(frozen=True, eq=False)
class LoggedParts:
    """What a policy learns from: clicks to train on, clicks to choose the epoch by, and how they came about.

    `logging_exposure` is that of both parts. They are of the same queries, and one policy showed the documents, so
    where its scores are not known its exposure is counted from both together: more data, and no document that one
    part shows counts as never shown in the other.
    """

    train: LogStatistics
    validation: LogStatistics
    examination: NDArray[np.float64]
    logging_exposure: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        train: LogStatistics,
        validation: LogStatistics,
        examination: NDArray[np.float64],
        *,
        logging_scores: NDArray[np.float32] | None = None,
    ) -> LoggedParts:
        """Count the logging exposure, or compute it where the scores of the logging policy are known."""
        for name, part in (("train", train), ("validation", validation)):
            if part.total_interactions == 0:
                raise DataError(f"part '{name}' of the log has no interaction with these queries; log more of them.")
            if part.clicks.sum() == 0:
                raise DataError(f"part '{name}' of the log has no click on these documents; there is nothing to learn.")
        if logging_scores is None:
            exposure = estimated_logging_exposure(train.merge(validation), examination)
        else:
            exposure = known_logging_exposure(logging_scores, train.offsets, examination)
        return cls(train, validation, np.asarray(examination, np.float64), exposure)

    @property
    def ever_shown(self) -> NDArray[np.bool_]:
        """Whether a document was shown at all, in either part."""
        shown: NDArray[np.bool_] = (self.train.times_shown + self.validation.times_shown) > 0
        return shown

    def click_rate(self, part: str) -> float:
        """Clicks per interaction: an estimate of the logging policy's utility that needs no assumption."""
        log: LogStatistics = getattr(self, part)
        return float(log.clicks.sum() / log.total_interactions)

    def objective(self, part: str, settings: LearningSettings, *, clip: float) -> ExposureObjective:
        """Return the method's objective on one of the parts."""
        log: LogStatistics = getattr(self, part)
        if settings.method == "naive":
            return naive(log)
        if settings.method == "exposure-ips":
            return exposure_ips(log, self.logging_exposure, clip=clip)
        delta, bound = settings.delta, settings.bound
        return exposure_crm(log, self.logging_exposure, self.examination, delta=delta, bound=bound, clip=clip)


def learn_from_log(
    scorer: torch.nn.Module,
    data: RankingData,
    parts: LoggedParts,
    settings: LearningSettings,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Fit the scorer, in place, to the training part; the validation part chooses the epoch.

    `data` are prepared features. Propensities are clipped up in training, to min(10 / sqrt(N), 1), which keeps the
    weight of a lucky click on a rarely shown document in bounds; not in validation, where nothing is fitted to them.
    For `checkpoint` and `progress` see `fit`.
    """
    clip = training_clip(parts.train.total_interactions)
    return fit(
        scorer,
        data,
        parts.objective("train", settings, clip=clip),
        parts.examination,
        validation=(data, parts.objective("validation", settings, clip=0.0)),
        settings=settings.training,
        checkpoint=checkpoint,
        progress=progress,
    )
