"""The relevance of each document after its own clicks: a prediction, moved as far as those clicks are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics

Floats = NDArray[np.float64]
LEAST, MOST = 0.02, 0.95
"""A prediction is taken to be within them where the variance of a click is computed from it."""


@dataclass(frozen=True, eq=False)
class PosteriorRelevance:
    """Relevance of each document, and how far it differs from what was predicted."""

    relevance: Floats
    between_queries: float
    """Variance of the mean error of the prediction of a query."""
    between_documents: float
    """Variance of the error around that mean."""


def posterior_relevance(log: LogStatistics, examination: Floats, predicted: Floats) -> PosteriorRelevance:
    """Return the mean of the relevance given the clicks on the document and on its query (empirical Bayes).

        relevance(d) = predicted(d) + b(q) + u(d),    b ~ (0, v_q),    u ~ (0, v_d)

    with r(d) = clicks(d) / examined(d) - predicted(d) observed with the noise of position-based clicks,

        noise(d) = sum_k shown(d, k) e_k p (1 - e_k p) / examined(d)^2,    p = predicted(d)
        b(q)     = v_q sum_d r(d) / (v_d + noise(d)) / (1 + v_q sum_d 1 / (v_d + noise(d)))
        u(d)     = v_d / (v_d + noise(d)) * (r(d) - b(q))

    v_q and v_d are estimated by the method of moments: v_q from products of errors of two documents of a query, and
    v_q + v_d from squared errors less their noise. The prediction must not depend on the clicks on the query. What was
    never examined is taken to be as predicted, plus b(q). Clicks of several rankers may be added up.
    """
    times, squared = examined(log, examination), examined(log, np.square(examination))
    seen = times > 0
    chance = np.clip(predicted, LEAST, MOST)
    safe = np.where(seen, times, 1.0)
    error = np.where(seen, log.clicks / safe - predicted, 0.0)
    noise = chance * (1 - chance * squared / safe) / safe
    weighted = times * error
    squares = query_sums(np.square(weighted), log.offsets)
    pairs = float(np.sum(np.square(query_sums(times, log.offsets)) - query_sums(np.square(times), log.offsets)))
    products = float(np.sum(np.square(query_sums(weighted, log.offsets)) - squares))
    v_q = max(products / pairs, 0.0) if pairs > 0 else 0.0
    total = float(times.sum())
    v_d = max(float(times @ (np.square(error) - noise)) / total - v_q, 0.0) if total > 0 else 0.0
    precision = np.where(seen, 1 / (v_d + noise), 0.0)
    sums = query_sums(np.stack([precision, precision * error], axis=1), log.offsets)
    shift = (v_q * sums[:, 1] / (1 + v_q * sums[:, 0]))[log.query_of_document]
    relevance = predicted + shift + v_d * precision * (error - shift)
    return PosteriorRelevance(np.clip(relevance, 0.0, 1.0), v_q, v_d)
