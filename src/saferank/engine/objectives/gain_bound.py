"""A lower bound on the gain over a reference policy, normally the logging policy: zero there, with a kink."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import total_examination
from saferank.engine.delta import checked_delta
from saferank.engine.errors import UsageError
from saferank.engine.objectives.exposure_crm import FLOOR
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.objective import Array
from saferank.engine.ragged import flat_rows, within_queries
from saferank.engine.types.log_statistics import LogStatistics

Variance = Literal["clicks", "worst-case"]
"""Relevance in the variance: estimated from clicks, or 1, the largest that it can be."""
PRIOR_CLICKS = 1.0
"""Clicks that each document is given beforehand, on as many examinations as the log needs on average for them."""
AT_THE_REFERENCE = 1e-6
"""Relative difference of exposures that counts as none; float32 computes exposure about as accurately."""
SMALLEST_WEIGHT = 1e-200
"""Risk weight by which to divide instead of 0."""


@dataclass(frozen=True, eq=False)
class GainBound(ExposureObjective):
    """value = sum_d reward(d) g(d) - sqrt( sum_d risk_weight(d) g(d)^2 ),   g(d) = rho(d) - reference(d).

    At the reference the value is 0 and has no derivative. Its slope there is the smallest supergradient, that of
    steepest ascent: 0 unless the rewards outweigh the kink (see `evidence`).

    Compute the reference with `view`, from the scores of the reference policy: exposure of another accuracy is not
    exactly equal to it at the start.
    """

    _: KW_ONLY
    reference: NDArray[np.float64]
    """Exposure of each document under the reference policy."""

    def terms(self, x: Array, queries: Array) -> Array:
        """Return each given query's part of the estimated gain and of the squared risk."""
        return super().terms(self._moved(x, queries), queries)

    def slope(self, x: Array, sums: Array, queries: Array) -> Array:
        """Return d value / d rho; at the reference a supergradient."""
        if self.risk_weight is None or sums[1] > self._no_risk:
            return super().slope(self._moved(x, queries), sums, queries)
        kept = max(0.0, 1.0 - 1.0 / math.sqrt(self.evidence)) if self.evidence > 0 else 0.0
        slope: Array = kept * self._centred_reward[flat_rows(self.offsets, queries)]
        return slope

    @cached_property
    def evidence(self) -> float:
        """How far the rewards outweigh the kink: the reference maximises the value if this is at most 1.

            sum_q min_b sum_d (reward(d) - b)^2 / risk_weight(d)

        Moving exposure within queries by g raises the value at the rate sum_d reward(d) g(d) - sqrt(sum_d
        risk_weight(d) g(d)^2). As g sums to 0 over a query, adding a constant b to its rewards changes nothing, and
        Cauchy-Schwarz gives the condition. That is for a policy free to move each document by itself, and chance alone
        makes it as large as documents / (z^2 c) for n = N. The reference may well be the best that a scorer with few
        parameters can reach even if this is above 1. It is infinite without a risk term.
        """
        if self.risk_weight is None:
            return math.inf
        return float(np.sum(self._centred_reward**2 / np.maximum(self.risk_weight, SMALLEST_WEIGHT)))

    @cached_property
    def _centred_reward(self) -> Array:
        """Reward less its mean over the query, weighted by 1 / risk_weight: the b that `evidence` is least at."""
        if self.risk_weight is None:
            return self.reward
        return within_queries(self.reward, self.offsets, 1.0 / np.maximum(self.risk_weight, SMALLEST_WEIGHT))

    @cached_property
    def _no_risk(self) -> float:
        """Squared risk up to which the policy counts as the reference."""
        assert self.risk_weight is not None
        return AT_THE_REFERENCE**2 * float(self.risk_weight @ self.reference**2)

    def _moved(self, x: Array, queries: Array) -> Array:
        moved: Array = x - self.reference[flat_rows(self.offsets, queries)]
        return moved


def cantelli(delta: float) -> float:
    """Return z = sqrt((1 - delta) / delta).

    Cantelli's inequality: whatever its distribution, an estimate exceeds its expectation by more than z standard
    deviations with a chance of at most delta.
    """
    return math.sqrt((1.0 - checked_delta(delta)) / delta)


def gain_bound(
    estimate: ExposureObjective,
    log: LogStatistics,
    logging_exposure: NDArray[np.float64],
    *,
    z: float,
    reference: NDArray[np.float64] | None = None,
    variance: Variance = "clicks",
    largest_relevance: float = 1.0,
    verdict_interactions: int | None = None,
    prior_clicks: float = PRIOR_CLICKS,
    floor: float = FLOOR,
) -> GainBound:
    """Estimated gain over the reference minus z standard errors, as the verdict on it will have them.

        sum_d reward(d) g(d) - z sqrt( (1/n) sum_d c v(d) g(d)^2 ),    g(d) = rho(d) - reference(d)

        v(d) = (N_q/N) relevance(d) / rho_0(d),    c = min(K, 1 + Z * largest relevance)

    The rewards are those of `estimate`, linear in rho: exposure IPS, doubly robust or direct method. `reference` is
    the logging exposure unless given, n the interactions of the verdict (those of the log unless given), and K and Z
    are of the ranks that a query's list fills. With variance="worst-case", relevance(d) is the largest relevance, 1
    unless a smaller one is known. With variance="clicks" it is estimated, m being the clicks of the whole log per
    expected examination:

        relevance(d) = (clicks(d) + prior_clicks) / (N_q rho_0(d) + prior_clicks / m)

    so v(d) = clicks(d) / (N rho_0(d)^2) for prior_clicks = 0; with more, a document without clicks is not free of risk.
    A log without any click says nothing about it: relevance(d) is then the largest.

    The root is at least the standard error: X = sum_d w(d) c(d), w = g / rho_0, has the gain as its mean, and if
    clicks are position-based and independent given the ranking y, E[X^2] <= c sum_d relevance(d) w(d)^2 rho_0(d).
    (Split E[X^2 | y] into the variance and the squared mean, and use Cauchy-Schwarz on the latter with the weights
    examination * relevance; c = K is Cauchy-Schwarz over at most K clicks.)

    The value is a lower bound of the gain on the logged queries, failing with a chance of at most delta, if
    z = cantelli(delta), variance="worst-case" and n = N; the rewards are exposure IPS without clipping; the logging
    exposure is known, at least `floor`, and positive wherever g is not 0; and policy and reference were fixed before
    the data was seen. Clipping would lower the rewards of documents that lose exposure too, and so understate losses.
    """
    if not estimate.linear:
        raise UsageError("a gain bound needs an estimate that is linear in exposure and has no risk term of its own.")
    if variance not in get_args(Variance):
        raise UsageError(f"variance {variance!r} is unknown; choose from: {', '.join(get_args(Variance))}.")
    if not 0.0 <= z < math.inf:
        raise UsageError(f"z is how many standard errors to subtract, 0 or more; got {z}.")
    if not 0.0 < largest_relevance <= 1.0:
        raise UsageError(f"largest_relevance is a probability above 0; got {largest_relevance}.")
    if not 0.0 <= prior_clicks < math.inf:
        raise UsageError(f"prior_clicks is a number of clicks, 0 or more; got {prior_clicks}.")
    n = log.total_interactions if verdict_interactions is None else verdict_interactions
    if verdict_interactions is not None and n < 1:
        raise UsageError(f"verdict_interactions is how many interactions the verdict will have, 1 or more; got {n}.")
    raised = np.maximum(logging_exposure, floor)
    if raised.min(initial=1.0) <= 0:
        raise UsageError("some documents have no logging exposure at all; their variance needs a floor above 0.")
    issued = log.interactions[log.query_of_document] / max(log.total_interactions, 1)
    known = variance == "clicks" and log.clicks.any()
    relevance = _smoothed_relevance(log, raised, prior_clicks) if known else largest_relevance
    c = np.repeat(_constant(estimate.examination, np.diff(log.offsets), largest_relevance), np.diff(log.offsets))
    return GainBound(
        log.offsets,
        estimate.reward,
        z**2 / max(n, 1) * c * issued * relevance / raised,
        examination=estimate.examination,
        accuracy=estimate.accuracy,
        reference=np.asarray(logging_exposure if reference is None else reference, np.float64),
    )


def _constant(
    examination: NDArray[np.float64], documents: NDArray[np.int64], largest_relevance: float
) -> NDArray[np.float64]:
    """Return min(K, 1 + Z * largest relevance) of queries with so many documents."""
    ranks = np.minimum(documents, len(examination))
    constant: NDArray[np.float64] = np.minimum(
        ranks, 1.0 + largest_relevance * total_examination(examination, documents)
    )
    return constant


def _smoothed_relevance(
    log: LogStatistics, logging_exposure: NDArray[np.float64], prior_clicks: float
) -> NDArray[np.float64]:
    """Return clicks per expected examination of each document, drawn towards that of the whole log."""
    expected = log.interactions[log.query_of_document] * logging_exposure
    examinations = expected + prior_clicks * expected.sum() / log.clicks.sum()
    smoothed: NDArray[np.float64] = np.divide(
        log.clicks + prior_clicks, examinations, out=np.zeros(log.documents), where=examinations > 0
    )
    return smoothed
