"""How good a ranking is, given labels: the ranking by score, or the expectation under a policy. One value per query."""

from saferank.engine.metrics.ndcg import Gain, discounts, expected_ndcg, ndcg_by_score, normalised_gains

__all__ = ["Gain", "discounts", "expected_ndcg", "ndcg_by_score", "normalised_gains"]
