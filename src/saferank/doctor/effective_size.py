"""What the clicks of a log are worth for judging another ranking than the logged one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.ranker_changes import Compared
from saferank.engine.bounds.differences import Differences, effective_number
from saferank.engine.bounds.verdict_choices import WEIGHTS
from saferank.engine.click_models.examination import total_examination
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.ragged import place_in_query
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics

Floats = NDArray[np.float64]

PROVEN = 1.645 + 0.842
"""Standard errors between 0 and a gain that a one-sided 95% bound proves four times in five."""
MOST_WEIGHT = 20.0
"""Largest weight of a click, as `certify` would choose it on the validation part: it tries 2 to 1,000."""
CAUTION = 1.645
"""Standard deviations below the mean: a relevance is above this bound with about 95% confidence."""


@dataclass(frozen=True)
class EffectiveSize:
    """Clicks that count, after weighting each by w = exposure / logging exposure of its document.

        effective clicks = (sum over clicks of w)^2 / (sum over clicks of w^2)      (Kish)

    A weighted estimate from the log is as precise as a plain one from so many clicks; its relative standard error is
    about 1 / sqrt(effective clicks). Weights are limited, as `certify` limits them. With equal relevances and without
    a limit, this is clicks / d_2, with d_2 the exposure-based
    divergence that the risk of the objectives grows with. Two targets:

    - halfway to random: half the time the logged ranking, half the time the candidates in random order. It shows
      every document a little.
    - by clicks: the shown documents of a query, sorted by a lower bound on their relevance, as a cautious learner
      would that knows only the clicks.

    The logging exposure is counted from the log, so it is rough for queries with few interactions, and the numbers
    are then too high.
    """

    clicks: int
    halfway_to_random: float
    by_clicks: float
    provable_gain: float | None
    """Relative gain in clicks that a ranking by clicks needs so that the part `certify` proves it: a one-sided
    95% bound (asymptotic) on the paired difference to the logged ranking, four times in five, plus what the verdict
    allows for if the ranker changed. None if it is empty."""
    drift_allowance: float = 0.0
    """Share of the clicks that this gain has to exceed because demand may have drifted while the ranker changed."""


def effective_size(
    statistics: LogStatistics,
    examination: Floats,
    *,
    candidates: NDArray[np.int64] | None = None,
    held_out: ClickPatterns | None = None,
    judged: Sequence[Compared] = (),
) -> EffectiveSize:
    """Return the effective clicks. `candidates`: the documents of each query, where more are known than were shown.

    `judged`: what a verdict on the held-out part may compare, if the ranker changed.
    """
    logged = estimated_logging_exposure(statistics, examination)
    lengths = np.diff(statistics.offsets)
    candidates = lengths if candidates is None else np.maximum(candidates, lengths)
    uniform = (total_examination(examination, candidates) / candidates)[statistics.query_of_document]
    # A document examined with chance 0 has no weight; it was not clicked either, unless the curve is wrong.
    ratio = np.divide(1.0, logged, out=np.zeros_like(logged), where=logged > 0)
    exposure = exposure_by_clicks(statistics, logged, examination)
    by_clicks = np.minimum(exposure * ratio, MOST_WEIGHT)
    gain, allowance = None if held_out is None else _provable_gain(held_out, by_clicks), 0.0
    if gain is not None and judged:
        gain, allowance = min(_gain_of(one, exposure, by_clicks, examination) for one in judged)
    return EffectiveSize(
        clicks=int(statistics.clicks.sum()),
        halfway_to_random=effective_number(statistics.clicks, 0.5 + 0.5 * uniform * ratio),
        by_clicks=effective_number(statistics.clicks, by_clicks),
        provable_gain=gain,
        drift_allowance=allowance,
    )


def exposure_by_clicks(statistics: LogStatistics, logged: Floats, examination: Floats) -> Floats:
    """Return the exposure when documents are sorted by a lower bound on their relevance, by empirical Bayes.

        mean = m (clicks + 1/v) / (m examined + 1/v),    bound = mean - CAUTION * mean / sqrt(clicks + 1/v)

    m is the mean relevance at the ranks where the document was shown, examined = N_q rho_0, and v the variance between
    documents of relevance / m, by moments (relevance / m ~ Gamma, clicks given it ~ Poisson).
    """
    at_rank = statistics.clicked.sum(axis=0) / np.maximum(statistics.shown.sum(axis=0) * examination, 1e-300)
    typical = (statistics.shown @ at_rank) / np.maximum(statistics.times_shown, 1)
    expected = typical * logged * statistics.interactions[statistics.query_of_document]
    excess = float(((statistics.clicks - expected) ** 2 - expected).sum())
    lower: Floats = typical
    if excess > 0.0:
        trust = float((expected**2).sum()) / excess
        evidence = statistics.clicks + trust
        lower = typical * (evidence - CAUTION * np.sqrt(evidence)) / (expected + trust)
    order = np.lexsort((-logged, -lower, statistics.query_of_document))
    rank = place_in_query(statistics.offsets)
    exposure = np.zeros(len(order))
    shown = rank < statistics.cutoff
    exposure[order[shown]] = examination[rank[shown]]
    return exposure


def _provable_gain(patterns: ClickPatterns, weight: Floats) -> float | None:
    """PROVEN standard errors of the paired difference X_i = sum over clicked documents of (w - 1), over the clicks."""
    clicks = float(np.diff(patterns.offsets) @ patterns.interactions)
    if patterns.total_interactions < 2 or clicks == 0:
        return None
    paired = Differences(patterns.sums(weight - 1.0), patterns.interactions, low=-math.inf, high=math.inf)
    return PROVEN * math.sqrt(paired.variance / paired.terms) / (clicks / paired.terms)


def _gain_of(one: Compared, exposure: Floats, by_clicks: Floats, examination: Floats) -> tuple[float, float]:
    """Return the gain that can be proven if the verdict compares this, and the allowance for drift in it.

    Added to the standard errors are the allowance, and the clicks with which the verdict does not credit the new
    ranking: on what was hardly shown in a stretch of time. The limit of weights is the best of those that it tries.
    """
    counts, clicks = one.counts, one.counts.clicked.sum(axis=1).astype(np.float64)
    logged = counts.exposure(examination)
    ratio = np.divide(exposure[counts.pair], logged, out=np.zeros_like(logged), where=logged > 0)
    found, drifts = [], [drift.of(counts.pair) for drift in one.drifts]
    for limit in WEIGHTS:
        weight = np.minimum(ratio, limit)
        allowance = sum(drift.allowance(weight * clicks) for drift in drifts) / clicks.sum()
        uncredited = max(float(clicks @ (by_clicks[counts.pair] - weight)) / clicks.sum(), 0.0)
        found.append(((_provable_gain(counts.patterns, weight) or 0.0) + allowance + uncredited, allowance))
    return min(found)
