"""How good a ranking is, given labels: the ranking by score, or the expectation under a policy. One value per query."""

from saferank.engine.metrics.ndcg import discounts, expected_ndcg, ndcg_by_score, normalised_gains

__all__ = ["discounts", "expected_ndcg", "ndcg_by_score", "normalised_gains"]
