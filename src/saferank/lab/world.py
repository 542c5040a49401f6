"""The semi-synthetic world of the paper's experiments: labelled data, a logging policy, a click model."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.datasets.dataset import Dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.errors import UsageError
from saferank.engine.objectives.skyline import skyline
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.boosting import boost
from saferank.learning.settings import TrainingSettings
from saferank.learning.training_loop import FitResult, fit
from saferank.policy.scorers import make_scorer, scale_scores, score
from saferank.policy.scorers.trees import Trees

SPLITS = ("train", "validation", "test")
LOGGING_TRAINING = TrainingSettings(epochs=10, learning_rate=1e-3)
"""Few epochs: a policy trained to the end shows little but its first choices, and such a log teaches little."""


@dataclass(frozen=True, eq=False)
class World:
    """One run's world: everything but the clicks is known here, and to nobody who learns from them."""

    train: RankingData
    validation: RankingData
    test: RankingData
    click_model: PositionBasedModel
    logging_scorer: torch.nn.Module
    logging_scores: dict[str, NDArray[np.float32]]
    """Of the documents of each split."""

    def relevance(self, part: str) -> NDArray[np.float64]:
        """The chance that an examined document of this part is clicked."""
        data: RankingData = getattr(self, part)
        return self.click_model.relevance(data.require_labels())


def prepare(dataset: Dataset) -> Dataset:
    """Tame heavy tails and scale per query; leave out test queries without a relevant document."""
    train, validation = (part.log1p().scaled_per_query() for part in (dataset.train, dataset.validation))
    return Dataset(dataset.name, train, validation, dataset.test.with_relevant_document().log1p().scaled_per_query())


def make_world(
    dataset: Dataset,
    *,
    seed: int,
    scorer: str = "mlp",
    fraction: float = 0.03,
    temperature: float = 1.0,
    click_model: PositionBasedModel | None = None,
) -> World:
    """Train a logging policy on the labels of a fraction of the (prepared) training queries.

    Its scores are divided by the temperature: above 1, it explores more.

    Early stopping looks at the same fraction of the validation queries. The current ranker of the experiments:
    trusted, but far from the best that the features allow.
    """
    model = click_model or PositionBasedModel()
    rng = np.random.default_rng([seed, 1])
    train, validation = (
        part.subset(np.sort(rng.choice(part.queries, max(1, round(fraction * part.queries)), replace=False)))
        for part in (dataset.train, dataset.validation)
    )
    logging_scorer = make_scorer(scorer, dataset.train.features.shape[1], seed=seed)
    train_on_labels(logging_scorer, train, validation, model, replace(LOGGING_TRAINING, seed=seed))
    if temperature <= 0:
        raise UsageError(f"a temperature is above 0; got {temperature:g}.")
    scale_scores(logging_scorer, 1.0 / temperature)
    scores = {part: score(logging_scorer, getattr(dataset, part).features) for part in SPLITS}
    return World(dataset.train, dataset.validation, dataset.test, model, logging_scorer, scores)


def train_on_labels(
    scorer: torch.nn.Module,
    train: RankingData,
    validation: RankingData,
    click_model: PositionBasedModel,
    settings: TrainingSettings,
) -> FitResult:
    """Fit the scorer to the true relevance: the logging policy on few queries, the skyline on all."""
    objective, judge = (
        skyline(click_model.relevance(part.require_labels()), part.offsets, click_model.examination)
        for part in (train, validation)
    )
    if isinstance(scorer, Trees):
        return boost(scorer, train, objective, validation=(validation, judge), seed=settings.seed)
    return fit(scorer, train, objective, validation=(validation, judge), settings=settings)
