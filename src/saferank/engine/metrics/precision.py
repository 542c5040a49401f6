"""Precision: of the ranking by score, and its exact expectation under a policy.

    P@k = (relevant documents in the top k) / k

A document is relevant if its label is at least `threshold`. A list shorter than k is still divided by k,
as trec_eval does: the ranks it leaves empty hold nothing relevant. One value per query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.metrics.by_score import (
    Ties,
    checked,
    checked_cutoff,
    exposure_by_score,
    longest_list,
    sum_per_query,
)


def precision_by_score(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    threshold: float = 1.0,
    ties: Ties = "average",
) -> NDArray[np.float64]:
    """P@cutoff of each query, ranked by descending score; for `ties` see `ndcg_by_score`."""
    scores, labels, offsets = checked(scores, labels, offsets)
    exposure = exposure_by_score(scores, offsets, _equal_weights(cutoff), ties)
    return sum_per_query(exposure * (labels >= threshold), offsets)


def expected_precision(
    scores: ArrayLike,
    labels: ArrayLike,
    offsets: ArrayLike,
    cutoff: int = 5,
    *,
    threshold: float = 1.0,
) -> NDArray[np.float64]:
    """Expected P@cutoff of each query under the Plackett-Luce policy with these scores.

    Linear in the placement of documents, so an exposure: with examination 1/cutoff at every rank.
    """
    from saferank.engine.plackett_luce import exposure

    scores, labels, offsets = checked(scores, labels, offsets)
    rho = exposure(scores, offsets, _equal_weights(cutoff)[: longest_list(offsets)])
    return sum_per_query(rho * (labels >= threshold), offsets)


def _equal_weights(cutoff: int) -> NDArray[np.float64]:
    return np.full(checked_cutoff(cutoff), 1.0 / cutoff)
