"""Where learning begins: with the logging policy, or with a model of it, and never with nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.objectives.imitation import Imitation, imitation
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.boosting import boost
from saferank.learning.methods import LoggedPart
from saferank.learning.settings import TrainingSettings
from saferank.learning.training_loop import fit
from saferank.policy.scorers import make_scorer
from saferank.policy.scorers.trees import Trees

MOST_QUERIES, MOST_DOCUMENTS = 2000, 100_000
"""That a model of the logging policy is fitted to; more add time, and little else."""
LINEAR = TrainingSettings(epochs=100, patience=5, learning_rate=3e-2)
MLP = TrainingSettings(epochs=100, patience=5, learning_rate=2e-3)
MOST_TREES = 100


def logging_model(kind: str, train: LoggedPart, validation: LoggedPart, *, seed: int = 0) -> torch.nn.Module:
    """Return a scorer of this kind whose policy shows documents as the logged one did, as far as the features tell.

    Maximises the likelihood of what was shown (`imitation`) on the train part; the validation part stops it. A
    `gbdt` is a linear model, which a hundred rankings determine, and trees on top where they explain more.
    """
    rng = np.random.default_rng([seed, 5])
    parts = [part.of(some_queries(part, rng)) for part in (train, validation)]
    (data, objective), judge = [(part.data, _objective(part)) for part in parts]
    features = data.features.shape[1]
    simple = make_scorer("linear" if kind == "gbdt" else kind, features, seed=seed)
    settings = MLP if kind == "mlp" else LINEAR
    _fit_scaled(simple, (data, objective), judge, settings)
    if kind != "gbdt":
        return simple
    trees = Trees.on(simple, features)
    boost(trees, data, objective, validation=judge, most_trees=MOST_TREES, seed=seed)
    return trees


def _fit_scaled(
    scorer: torch.nn.Module,
    train: tuple[RankingData, Imitation],
    validation: tuple[RankingData, Imitation],
    settings: TrainingSettings,
) -> None:
    """Fit the scorer to features divided by their largest value, if that is above 1, and give it their scale after.

    Features that nobody has scaled, in thousands, would make the first scores so large that no step leads back.
    """
    scale = np.maximum(np.abs(train[0].features).max(axis=0, initial=1.0), 1.0)
    data, judged = (replace(part, features=part.features / scale) for part, _ in (train, validation))
    fit(scorer, data, train[1], validation=(judged, validation[1]), settings=settings)
    first = next(layer for layer in scorer.modules() if isinstance(layer, torch.nn.Linear))
    with torch.no_grad():
        first.weight.div_(torch.from_numpy(scale))


def _objective(part: LoggedPart) -> Imitation:
    known = part.logging_exposure if part.known else None
    return imitation(part.log, part.examination, logging_exposure=known)


def some_queries(part: LoggedPart, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return queries that the part has interactions of, in order: all, or some if there are many."""
    issued = rng.permutation(np.flatnonzero(part.log.interactions))[:MOST_QUERIES]
    few_enough = np.cumsum(np.diff(part.data.offsets)[issued]) <= MOST_DOCUMENTS
    few_enough[:1] = True
    chosen: NDArray[np.int64] = np.sort(issued[few_enough])
    return chosen
