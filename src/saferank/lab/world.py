"""The semi-synthetic world of the paper's experiments: labelled data, a logging policy, a click model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.datasets.dataset import Dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.objectives.skyline import skyline
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.checkpoint import load_checkpoint, save_checkpoint
from saferank.learning.training_loop import TrainingSettings, fit
from saferank.policy.scorers import make_scorer, score

PARTS = ("train", "validation", "test")
LOGGING = TrainingSettings(epochs=10, learning_rate=1e-3)
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
    """Of the documents of each part."""

    def relevance(self, part: str) -> NDArray[np.float64]:
        """The chance that an examined document of this part is clicked."""
        data: RankingData = getattr(self, part)
        return self.click_model.relevance(data.require_labels())


def prepare(dataset: Dataset) -> Dataset:
    """Tame heavy tails and scale per query; leave out test queries without a relevant document.

    The code that the paper's authors published later keeps such queries, with an NDCG of 0.
    """
    train, validation = (part.log1p().scaled_per_query() for part in (dataset.train, dataset.validation))
    return Dataset(dataset.name, train, validation, dataset.test.with_relevant_document().log1p().scaled_per_query())


def make_world(
    dataset: Dataset,
    *,
    seed: int,
    scorer: str = "mlp",
    fraction: float = 0.03,
    click_model: PositionBasedModel | None = None,
    saved: Path | None = None,
) -> World:
    """Train a logging policy on the labels of a fraction of the (prepared) training queries.

    Early stopping looks at the same fraction of the validation queries. The production ranker of the experiments:
    trusted, but far from the best that the features allow. With `saved`, it is read from there, or written there.
    """
    model = click_model or PositionBasedModel()
    rng = np.random.default_rng([seed, 1])
    train, validation = (
        part.subset(np.sort(rng.choice(part.queries, max(1, round(fraction * part.queries)), replace=False)))
        for part in (dataset.train, dataset.validation)
    )
    logging_scorer = make_scorer(scorer, dataset.train.features.shape[1], seed=seed)
    made_as = {"dataset": dataset.name, "scorer": scorer, "seed": seed, "fraction": fraction}
    found = None if saved is None else load_checkpoint(saved)
    if found is not None and found[1] == made_as:
        logging_scorer.load_state_dict(found[0])
    else:
        train_on_labels(logging_scorer, train, validation, model, replace(LOGGING, seed=seed))
        if saved is not None:
            save_checkpoint(saved, logging_scorer.state_dict(), made_as)
    scores = {part: score(logging_scorer, getattr(dataset, part).features) for part in PARTS}
    return World(dataset.train, dataset.validation, dataset.test, model, logging_scorer, scores)


def train_on_labels(
    scorer: torch.nn.Module,
    train: RankingData,
    validation: RankingData,
    click_model: PositionBasedModel,
    settings: TrainingSettings,
) -> None:
    """Fit the scorer to the true relevance: the logging policy on few queries, the skyline on all."""
    objectives = [skyline(click_model.relevance(part.require_labels()), part.offsets) for part in (train, validation)]
    fit(
        scorer,
        train,
        objectives[0],
        click_model.examination,
        validation=(validation, objectives[1]),
        settings=settings,
    )
