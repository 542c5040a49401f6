"""A small policy with random weights, candidates for it, and a file of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from saferank.engine.types.ranking_data import RankingData
from saferank.features.schema import FeatureSchema
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import make_scorer, weights_of
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.trees import Trees

NAMES = ("price", "stock", "age")
EXAMINATION = np.array([1.0, 0.5, 0.25])


def make_policy(scorer: str = "mlp", *, seed: int = 3, **schema: Any) -> Policy:
    kind = ScorerKind(scorer, {"hidden": [5, 4]} if scorer == "mlp" else {})
    manifest = {"inputs": {"features": "features.parquet"}, "settings": {"delta": 0.05}}
    return Policy(
        kind, weights_of(kind.make(len(NAMES), seed=seed)), FeatureSchema(NAMES, **schema), EXAMINATION, manifest
    )


def some_trees() -> Forest:
    """Two trees: one that asks for features 0 and 1, and one that is a leaf."""
    return Forest(
        feature=np.array([0, 1], np.int32),
        threshold=np.array([0.25, -0.5], np.float32),
        left=np.array([1, -1], np.int32),
        right=np.array([-3, -2], np.int32),
        value=np.array([1.0, 2.0, -3.0, 0.5], np.float32),
        root=np.array([0, -4], np.int32),
    )


def make_trees(start: str = "linear", forest: Forest | None = None, **schema: Any) -> Policy:
    """A policy of trees; with a start of kind `column` the last name is that of the base."""
    base = NAMES[-1] if start == "column" else None
    names = NAMES if base is None else NAMES[:-1]
    scorer = Trees.on(make_scorer(start, 3, seed=3), 3) if start in ("mlp", "linear") else Trees(3, start)
    scorer.grow(some_trees() if forest is None else forest)
    kind = ScorerKind("gbdt", scorer.settings)
    return Policy(kind, weights_of(scorer), FeatureSchema(names, base=base, **schema), EXAMINATION)


def make_data(lengths: tuple[int, ...] = (4, 1, 7, 2), seed: int = 0) -> RankingData:
    rng = np.random.default_rng(seed)
    documents = sum(lengths)
    return RankingData(
        rng.normal(scale=20, size=(documents, len(NAMES))).astype(np.float32),
        np.cumsum([0, *lengths]),
        query_ids=np.array([f"q{query}" for query in range(len(lengths))]),
        document_ids=np.array([f"d{place}" for length in lengths for place in range(length)]),
        feature_names=NAMES,
        source="candidates.parquet",
    )


def write_features(path: Path, data: RankingData, **more: object) -> None:
    """Write raw features as Parquet, one row per pair."""
    assert data.query_ids is not None
    assert data.feature_names is not None
    ids = {"query_id": data.query_ids[data.query_of_document], "document_id": data.document_ids}
    numbers = dict(zip(data.feature_names, data.features.T, strict=True))
    pq.write_table(pa.table({**ids, **numbers, **more}), path)
