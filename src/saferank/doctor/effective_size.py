"""What the clicks of a log are worth for judging another ranking than the logged one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.bounds.differences import effective_number
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics

PROVEN = 1.645 + 0.842
"""Standard errors between 0 and a gain that a one-sided 95% bound proves four times in five."""

CAUTION = 1.645
"""Deviations below the mean: a relevance is higher than the bound with 95% confidence, about."""


@dataclass(frozen=True)
class EffectiveSize:
    """Clicks that count, after weighting each by w = exposure / logging exposure of its document.

        effective clicks = (sum over clicks of w)^2 / (sum over clicks of w^2)      (Kish)

    A weighted estimate from the log is as precise as a plain one from so many clicks; its relative standard error is
    about 1 / sqrt(effective clicks). With relevances alike, this is clicks / d_2, with d_2 the exposure-based
    divergence that the risk of the objectives grows with. Two targets:

    - half-way to random: half the time the logged ranking, half the time the candidates in random order. Any policy
      that is learned lies somewhere on such a way; this one asks of every document a little.
    - by clicks: the documents of a query that were shown, sorted by a lower bound on their relevance. So does a
      cautious learner that knows nothing but the clicks, and it is where learning is headed.

    The logging exposure is counted from the log, so for queries with few interactions it is rough, and the numbers
    flatter.
    """

    clicks: int
    halfway_to_random: float
    by_clicks: float
    provable_gain: float | None
    """Relative gain in clicks that a ranking by clicks needs so that the part `certify` proves it: a one-sided
    95% bound (asymptotic) on the paired difference to the logged ranking, four times in five. None if it is empty."""


def effective_size(
    statistics: LogStatistics,
    examination: NDArray[np.float64],
    *,
    candidates: NDArray[np.int64] | None = None,
    held_out: ClickPatterns | None = None,
) -> EffectiveSize:
    """Measure it. `candidates`: how many documents each query has, where more are known than were shown."""
    logged = estimated_logging_exposure(statistics, examination)
    lengths = np.diff(statistics.offsets)
    candidates = lengths if candidates is None else np.maximum(candidates, lengths)
    total_examination = np.cumsum(examination)[np.minimum(candidates, statistics.cutoff) - 1]
    uniform = (total_examination / candidates)[statistics.query_of_document]
    sorted_by_clicks = _exposure_by_clicks(statistics, logged, examination)
    # A document looked at with chance 0 has no weight; it was not clicked either, unless the curve is wrong.
    ratio = np.divide(1.0, logged, out=np.zeros_like(logged), where=logged > 0)
    return EffectiveSize(
        clicks=int(statistics.clicks.sum()),
        halfway_to_random=effective_number(statistics.clicks, 0.5 + 0.5 * uniform * ratio),
        by_clicks=effective_number(statistics.clicks, sorted_by_clicks * ratio),
        provable_gain=None if held_out is None else _provable_gain(held_out, sorted_by_clicks * ratio),
    )


def _exposure_by_clicks(
    statistics: LogStatistics, logged: NDArray[np.float64], examination: NDArray[np.float64]
) -> NDArray[np.float64]:
    relevance = _lower_relevance(statistics, logged, examination)
    order = np.lexsort((-logged, -relevance, statistics.query_of_document))
    rank = np.arange(len(order)) - np.repeat(statistics.offsets[:-1], np.diff(statistics.offsets))
    exposure = np.zeros(len(order))
    shown = rank < statistics.cutoff
    exposure[order[shown]] = examination[rank[shown]]
    return exposure


def _lower_relevance(
    statistics: LogStatistics, logged: NDArray[np.float64], examination: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bound relevance from below by empirical Bayes: good documents are those whose clicks leave little doubt.

        mean = m (clicks + 1/v) / (m looks + 1/v),    bound = mean - CAUTION * mean / sqrt(clicks + 1/v)

    m is the mean relevance of what stands at the ranks where the document was shown, looks = N_q rho_0, and v the
    variance between documents of relevance / m, by moments (relevance / m ~ Gamma, clicks given it ~ Poisson).
    """
    at_rank = statistics.clicked.sum(axis=0) / np.maximum(statistics.shown.sum(axis=0) * examination, 1e-300)
    typical = (statistics.shown @ at_rank) / np.maximum(statistics.impressions, 1)
    expected = typical * logged * statistics.interactions[statistics.query_of_document]
    excess = float(((statistics.clicks - expected) ** 2 - expected).sum())
    lower: NDArray[np.float64] = typical
    if excess > 0.0:
        trust = float((expected**2).sum()) / excess
        evidence = statistics.clicks + trust
        lower = typical * (evidence - CAUTION * np.sqrt(evidence)) / (expected + trust)
    return lower


def _provable_gain(patterns: ClickPatterns, weight: NDArray[np.float64]) -> float | None:
    """X_i = sum over clicked documents of (w - 1), the paired difference: PROVEN standard errors, over the clicks."""
    n = patterns.total_interactions
    clicks = float(np.diff(patterns.bounds) @ patterns.interactions)
    if n < 2 or clicks == 0:
        return None
    difference = patterns.sums(weight - 1.0)
    mean = difference @ patterns.interactions / n
    variance = float((difference - mean) ** 2 @ patterns.interactions) / (n - 1)
    return PROVEN * float(np.sqrt(variance / n)) / (clicks / n)
