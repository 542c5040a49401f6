"""A log of a small world with known truth, aggregated, and policies to certify on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.types.ranking_data import RankingData
from saferank.features.schema import FeatureSchema
from saferank.lab.raw_log import write_raw_log
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.logs.split import HashSplit
from saferank.policy.policy import Policy, ScorerKind

EXAMINATION = np.array([1.0, 0.5, 0.25])
QUERIES, DOCUMENTS = 40, 6


@dataclass(frozen=True, eq=False)
class SmallLog:
    data: RankingData
    logging_scores: NDArray[np.float32]
    model: PositionBasedModel

    def write(self, path: Path, interactions: int, seed: int = 0, scores: NDArray[np.float32] | None = None) -> None:
        rng = np.random.default_rng(seed)
        write_raw_log(path, self.data, self.logging_scores if scores is None else scores, self.model, interactions, rng)

    def write_features(self, path: Path, *, scores: bool = True) -> None:
        """With the scores of the logging policy as a column, unless told otherwise."""
        assert self.data.query_ids is not None
        ids = {"query_id": np.repeat(self.data.query_ids, self.data.lengths), "document_id": self.data.document_ids}
        columns = {"good": self.data.features[:, 0], "noise": self.data.features[:, 1]}
        more = {"logging_score": self.logging_scores} if scores else {}
        pq.write_table(pa.table(ids | columns | more), path)

    def aggregated(self, path: Path, **options: object) -> AggregatedLog:
        return load_log(path, split=HashSplit(), cutoff=3, **options)  # type: ignore[arg-type]


@cache
def small_log() -> SmallLog:
    """The one feature is the label with noise; the logging policy looks at the noise more than at the label."""
    rng = np.random.default_rng(5)
    size = QUERIES * DOCUMENTS
    labels = rng.integers(0, 5, size).astype(np.float32)
    noise = rng.normal(size=size).astype(np.float32)
    data = RankingData(
        features=np.stack([labels, noise], axis=1),
        offsets=np.arange(0, size + 1, DOCUMENTS),
        labels=labels,
        query_ids=np.array([f"q{q}" for q in range(QUERIES)]),
        document_ids=np.array([f"d{d % DOCUMENTS}" for d in range(size)]),
        feature_names=("good", "noise"),
        source="made up",
    )
    model = PositionBasedModel(EXAMINATION, relevance_slope=0.15, relevance_noise=0.1)
    return SmallLog(data, 0.5 * noise, model)


def linear_policy(good: float, noise: float, manifest: dict[str, object] | None = None) -> Policy:
    """Scores that weigh the two features like this."""
    kind = ScorerKind("linear")
    weights = {"layer.weight": np.array([[good, noise]], np.float32)}
    schema = FeatureSchema(("good", "noise"), log1p=False, scaling="none", missing="error")
    return Policy(kind, weights, schema, EXAMINATION, manifest or {})
