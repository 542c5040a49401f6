"""Trees as policies: any objective, by LightGBM with the exact gradient of the scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.objective import Objective
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.lightgbm_trees import (
    ALWAYS,
    MANY,
    built,
    can_split,
    first_features,
    forest_of,
    give_memory_back,
    threads_for,
)
from saferank.learning.training_loop import Epoch, FitResult
from saferank.policy.scorers import score
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.trees import Trees

LEAST_CURVATURE = 0.05
"""Share of the largest slope: where the slope is small, the curvature is taken to be this, and not nearly nothing."""
PARAMETERS: dict[str, Any] = ALWAYS | {
    "learning_rate": 0.1,
    "num_leaves": 31,
    "min_data_in_leaf": 50,
    "min_sum_hessian_in_leaf": 0.1,
    "boost_from_average": False,
    "metric": "None",
}
MOST_TREES = 500
PATIENCE = 20
"""Trees without a better validation value after which no more are grown."""
LONG_STEPS: dict[str, Any] = {"learning_rate": 0.5, "min_sum_hessian_in_leaf": 1e-3}
"""Parameters with the curvature of `Objective.slope_and_curvature`: as it is larger, a step of one unit is rarer."""
ON_MANY: dict[str, Any] = {"learning_rate": 1.0, "feature_fraction": 0.3}
"""Of tables with MANY values, in addition: on synthetic:mslr10k@101, 13% less time than with all features and 0.8, and
0.001 more NDCG on the validation labels. On synthetic:small@201 to @208 it is 0.011 less."""
LEAST_EXACT_CURVATURE = 1e-3
"""Share of the largest curvature below which none is taken to be, with long steps."""
SHORT_PATIENCE = 10
"""With long steps and a value that is not estimated from clicks, and so hardly noisy."""


def boost(
    scorer: Trees,
    data: RankingData,
    objective: Objective,
    *,
    validation: tuple[RankingData, Objective],
    most_trees: int = MOST_TREES,
    long_steps: bool = False,
    seed: int = 0,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Maximise `objective` by growing trees on top of the scorer's start, and leave it with the best number of them.

    Best is what has the highest value of the validation objective; no tree at all competes too. The curvature that
    LightGBM needs is the absolute slope, floored: a Newton step is then of one unit where the slope is large, whatever
    the weight of its query. With `long_steps` it is that of `Objective.slope_and_curvature`, and steps are five
    times as long (ten times on large tables): on labels that takes a third of the trees, and better ones. Whether it
    helps on clicks is not known.
    """
    import lightgbm

    read = data.features[:, : scorer.read]
    if not can_split(read):
        return FitResult(0, ())
    starts = [score(scorer, part.features) for part in (data, validation[0])]
    judge = validation[1]
    history: list[Epoch] = []

    def newton(added: NDArray[np.float64], _: lightgbm.Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scores = (starts[0] + added).astype(np.float32)
        if long_steps:
            return scaled_step(*objective.slope_and_curvature(scores), LEAST_EXACT_CURVATURE)
        return newton_step(objective.value_and_slope(scores)[1])

    def value(added: NDArray[np.float64], _: lightgbm.Dataset) -> tuple[str, float, bool]:
        queries = np.arange(validation[0].queries)
        found = judge.value(judge.sums(judge.view((starts[1] + added).astype(np.float32), queries)))
        history.append(Epoch(len(history) + 1, found, 0.0, found))
        if progress is not None:
            progress(history[-1])
        return "value", found, True

    tables = [first_features(part.features, scorer.read) for part in (data, validation[0])]
    steps = {} if not long_steps else LONG_STEPS if read.size < MANY else LONG_STEPS | ON_MANY
    parameters = PARAMETERS | steps | {"seed": seed} | threads_for(*read.shape)
    table = built(lightgbm.Dataset(tables[0], np.zeros(data.documents), params=parameters))
    held_out = table.create_valid(tables[1], np.zeros(validation[0].documents), params=parameters)
    built(held_out, data.features, validation[0].features)
    at_start = value(np.zeros(validation[0].documents), held_out)[1]
    history.clear()
    booster = lightgbm.train(
        parameters | {"objective": newton},
        table,
        most_trees,
        valid_sets=[held_out],
        feval=value,
        callbacks=[lightgbm.early_stopping(SHORT_PATIENCE if long_steps else PATIENCE, verbose=False)],
    )
    best = booster.best_iteration
    if not history or history[best - 1].validation <= at_start:
        best = 0
    added = forest_of(booster, best) if best else Forest.empty()
    del booster, table, held_out
    give_memory_back()
    scorer.grow(Forest.joined([scorer.forest, added]))
    return FitResult(best, tuple(history))


def newton_step(slope: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return gradient and curvature for LightGBM, which minimises: the slope and its absolute value, floored."""
    return scaled_step(slope, np.abs(slope), LEAST_CURVATURE)


def scaled_step(
    slope: NDArray[Any], curvature: NDArray[Any], least: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return them for LightGBM, divided by the largest curvature, none of which is then below `least`."""
    largest = max(float(curvature.max(initial=0.0)), np.finfo(np.float32).tiny)
    gradient: NDArray[np.float64] = -slope / largest
    floored: NDArray[np.float64] = np.maximum(curvature / largest, least)
    return gradient, floored
