"""What training takes the logging policy to show: known, counted, or counts shrunk towards a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.plackett_luce import placement
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.propensity.modelled_exposure import Explained, explained, shrunk_logging_exposure
from saferank.engine.ragged import flat_rows
from saferank.learning.list_lengths import ListLengths
from saferank.learning.methods import LoggedPart
from saferank.learning.settings import LoggingPolicy
from saferank.learning.start import logging_model, some_queries
from saferank.policy.scorers import score


@dataclass(frozen=True, eq=False)
class TrainingExposure:
    """rho_0 in the objectives of training, and how it was found."""

    kind: Literal["counted", "modelled", "known"]
    exposure: NDArray[np.float64]
    explained: Explained | None = None
    """How well counts that are shrunk towards the model explain the validation part."""

    def as_json(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        return {"kind": self.kind, "modelled": None if self.explained is None else asdict(self.explained)}


def check_logging_policy(wanted: LoggingPolicy, *, known: bool) -> None:
    """Raise if the logging policy is to be known, and is not."""
    if wanted == "known" and not known:
        raise UsageError(
            "the logging policy is not known: name the column with its scores (--logging-scores) or the policy that "
            "drew the rankings (--live), or choose --logging-policy auto."
        )


def training_exposure(
    wanted: LoggingPolicy,
    train: LoggedPart,
    validation: LoggedPart,
    model: torch.nn.Module | None,
    *,
    kind: str,
    seed: int = 0,
) -> TrainingExposure:
    """Return rho_0 for the objectives of both parts, which are of the same documents.

    `auto`: known if it is, else counted, which is unbiased. `modelled`: counts shrunk towards the model, with the
    strength that explains the displays of the validation part best. The model is fitted to the train part (and the
    validation part stops it); if there is none, one of this `kind` is.
    """
    check_logging_policy(wanted, known=train.known)
    if wanted in ("auto", "known") and train.known:
        return TrainingExposure("known", train.logging_exposure)
    if wanted in ("auto", "counted") and not train.known:
        return TrainingExposure("counted", train.logging_exposure)
    both = train.log.merge(validation.log)
    if wanted == "counted":
        return TrainingExposure("counted", estimated_logging_exposure(both, train.examination))
    model = model or logging_model(kind, train, validation, seed=seed)
    scores = score(model, train.data.features)
    queries = some_queries(validation, np.random.default_rng([seed, 6]))
    logs, rows = (train.log.subset(queries), validation.log.subset(queries)), flat_rows(train.log.offsets, queries)
    by_model = explained(*logs, placement(scores[rows], logs[0].offsets, logs[0].cutoff))
    modelled = ListLengths.of(both).exposure(scores, train.examination)
    shrunk = shrunk_logging_exposure(both, train.examination, modelled, by_model.strength)
    return TrainingExposure("modelled", shrunk, by_model)
