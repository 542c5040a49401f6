"""Policies with many random trees, whose features have missing values, categories and indicators as asked for."""

from typing import Any

import lightgbm
import numpy as np

from saferank.features.schema import FeatureSchema
from saferank.learning.lightgbm_trees import forest_of
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import make_scorer, weights_of
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.trees import Trees

NAMES = ("price", "list price", "stock", "age")


def grown(features: int, *, log1p: bool, scaled: bool, trees: int = 20, seed: int = 0) -> Forest:
    """Trees that LightGBM grows on features as a schema prepares them, the first few features read most."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2000, features)) * 10.0 ** rng.uniform(-2, 3, size=(2000, features))
    x = np.sign(x) * np.log1p(np.abs(x)) if log1p else x
    x = (rng.random(x.shape) if scaled else x).astype(np.float32)
    target = np.sin(x).sum(axis=1) + rng.normal(size=len(x))
    booster = lightgbm.train({"verbose": -1, "num_leaves": 15, "num_threads": 1}, lightgbm.Dataset(x, target), trees)
    return forest_of(booster)


def policy(scorer: str, *, trees: int = 20, **schema: Any) -> Policy:
    """A policy of a scorer, or of trees on a start: trees, trees+linear, trees+mlp, trees+column."""
    start = scorer.removeprefix("trees").removeprefix("+") or "none"
    names = schema.pop("names", NAMES)
    made = FeatureSchema(names, base="live score" if start == "column" else None, **schema)
    width = len(made.columns)
    if not scorer.startswith("trees"):
        kind = ScorerKind(scorer, {"hidden": [6, 5]} if scorer == "mlp" else {})
        return Policy(kind, weights_of(kind.make(width, seed=1)), made, np.ones(3))
    on = Trees.on(make_scorer(start, width, seed=1), width) if start in ("mlp", "linear") else Trees(width, start)
    on.grow(grown(len(names), log1p=made.log1p, scaled=made.scaling == "per-query", trees=trees))
    return Policy(ScorerKind("gbdt", on.settings), weights_of(on), made, np.ones(3))
