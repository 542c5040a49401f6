"""A small policy with random weights, candidates for it, and a file of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from saferank.engine.types.ranking_data import RankingData
from saferank.features.schema import FeatureSchema
from saferank.policy.policy import Policy, ScorerKind

NAMES = ("price", "stock", "age")
EXAMINATION = np.array([1.0, 0.5, 0.25])


def make_policy(scorer: str = "mlp", *, seed: int = 3, **schema: Any) -> Policy:
    kind = ScorerKind(scorer, {"hidden": [5, 4]} if scorer == "mlp" else {})
    manifest = {"inputs": {"features": "features.parquet"}, "settings": {"delta": 0.05}}
    return Policy(kind, kind.make(len(NAMES), seed=seed), FeatureSchema(NAMES, **schema), EXAMINATION, manifest)


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
