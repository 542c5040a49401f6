"""How good a ranking is, given labels: by score, or as expected of a policy. One value per query."""

from typing import TYPE_CHECKING

from saferank.engine.lazy import lazy_names

if TYPE_CHECKING:
    from saferank.engine.metrics.ndcg import (
        dcg_by_score,
        discounts,
        expected_dcg,
        expected_ndcg,
        gains,
        ideal_dcg,
        ndcg_by_score,
    )
    from saferank.engine.metrics.precision import expected_precision, precision_by_score
    from saferank.engine.metrics.reciprocal_rank import expected_reciprocal_rank, reciprocal_rank_by_score

__all__ = [
    "dcg_by_score",
    "discounts",
    "expected_dcg",
    "expected_ndcg",
    "expected_precision",
    "expected_reciprocal_rank",
    "gains",
    "ideal_dcg",
    "ndcg_by_score",
    "precision_by_score",
    "reciprocal_rank_by_score",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "dcg_by_score": "ndcg",
        "discounts": "ndcg",
        "expected_dcg": "ndcg",
        "expected_ndcg": "ndcg",
        "expected_precision": "precision",
        "expected_reciprocal_rank": "reciprocal_rank",
        "gains": "ndcg",
        "ideal_dcg": "ndcg",
        "ndcg_by_score": "ndcg",
        "precision_by_score": "precision",
        "reciprocal_rank_by_score": "reciprocal_rank",
    },
)
