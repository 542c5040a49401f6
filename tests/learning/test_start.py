"""A model of the logging policy, against the policy itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from saferank.engine.objectives.imitation import imitation
from saferank.engine.plackett_luce import exposure
from saferank.engine.propensity.logging_exposure import known_logging_exposure
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.simulate import simulate
from saferank.learning import start, training_loop
from saferank.learning.logged_parts import logged_parts
from saferank.learning.methods import LoggedPart
from saferank.learning.start import logging_model
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees
from tests.learning.problem import EXAMINATION, Part, only_first_queries, parameters


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LINEAR", "MLP"):
        monkeypatch.setattr(start, name, replace(getattr(start, name), epochs=30, least_steps=20))


def logged(part: Part, *, known: bool, interactions: int = 4_000) -> tuple[LoggedPart, LoggedPart]:
    logs = [
        simulate(part.logging_scores, part.data.offsets, part.relevance, EXAMINATION, size, np.random.default_rng(seed))
        for seed, size in ((1, interactions), (2, interactions // 2))
    ]
    scores = part.logging_scores.astype(np.float32) if known else None
    return logged_parts(part.data, logs[0], logs[1], EXAMINATION, logging_scores=scores)


def shown_by(scorer: torch.nn.Module, data: RankingData) -> Any:
    return exposure(score(scorer, data.features), data.offsets, EXAMINATION).astype(np.float64)


def scaled(features: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(features / np.maximum(np.abs(features).max(axis=0), 1), np.float32)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kind", ["gbdt", "mlp", "linear"])
def test_it_shows_documents_as_the_logging_policy_does(kind: str, known: bool, train: Part, validation: Part) -> None:
    """Also for queries that it has not seen: the scores of the policy are a weighted sum of features."""
    model = logging_model(kind, *logged(train, known=known), seed=3)
    for part in (train, validation):
        truth = known_logging_exposure(part.logging_scores, part.data.offsets, EXAMINATION)
        found, flat = shown_by(model, part.data), shown_by(Trees(4), part.data)
        assert np.abs(found - truth).mean() < 0.25 * np.abs(flat - truth).mean()
        many = simulate(
            part.logging_scores, part.data.offsets, part.relevance, EXAMINATION, 100_000, np.random.default_rng(9)
        )
        likelihood = imitation(many, EXAMINATION)
        values = [likelihood.value(likelihood.sums(rho)) for rho in (flat, found, truth)]
        assert values[1] - values[0] > 0.8 * (values[2] - values[0]) > 0


@pytest.mark.parametrize("kind", ["gbdt", "mlp", "linear"])
def test_features_that_nobody_scaled_are_no_harder(kind: str, train: Part) -> None:
    large = np.array([1e5, 1, 1e3, 1], np.float32)
    parts = [
        replace(part, data=replace(part.data, features=part.data.features * large))
        for part in logged(train, known=True)
    ]
    truth = known_logging_exposure(train.logging_scores, train.data.offsets, EXAMINATION)
    flat = shown_by(Trees(4), train.data)
    found = shown_by(logging_model(kind, *parts, seed=3), parts[0].data)
    assert np.abs(found - truth).mean() < 0.25 * np.abs(flat - truth).mean()


def test_trees_take_what_a_linear_model_cannot(train: Part) -> None:
    """A policy that prefers documents with a feature near 0: no weighted sum of features says so."""
    near = replace(train, logging_scores=np.where(np.abs(train.data.features[:, 0]) < 0.7, 2.0, 0.0))
    parts = logged(near, known=False, interactions=20_000)
    truth = known_logging_exposure(near.logging_scores, near.data.offsets, EXAMINATION)
    errors = {
        kind: np.abs(shown_by(logging_model(kind, *parts), train.data) - truth).mean() for kind in ("linear", "gbdt")
    }
    assert errors["gbdt"] < 0.5 * errors["linear"]


def test_few_queries_are_chosen_from_many_and_only_those_that_were_issued(
    train: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "MOST_QUERIES", 12)
    seen: list[RankingData] = []
    fit = training_loop.fit

    def told(scorer: torch.nn.Module, data: RankingData, *rest: Any, **more: Any) -> Any:
        seen.extend([data, more["validation"][0]])
        return fit(scorer, data, *rest, **more)

    monkeypatch.setattr(start, "fit", told)
    parts = logged(train, known=False)
    models = [logging_model("linear", *parts, seed=seed) for seed in (0, 0, 1)]
    assert [data.queries for data in seen] == [12] * 6
    assert parameters(models[0]) == parameters(models[1]) != parameters(models[2])
    seen.clear()
    few = [replace(part, log=only_first_queries(part.log, 5)) for part in parts]
    logging_model("linear", few[0], few[1])
    rows = train.data.features[: train.data.offsets[5]]
    for data in seen:
        np.testing.assert_array_equal(data.features, scaled(rows))


def test_all_queries_are_used_where_they_are_not_too_many(train: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = logged(train, known=False)
    seen: list[RankingData] = []
    monkeypatch.setattr(start, "fit", lambda _scorer, data, *_, **__: seen.append(data))
    logging_model("linear", *parts)
    (data,) = seen
    np.testing.assert_array_equal(data.features, scaled(train.data.features))
