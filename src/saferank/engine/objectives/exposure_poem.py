"""Exposure IPS minus the width of a bound with its sample variance, in place of a divergence: POEM's risk."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.delta import checked_delta
from saferank.engine.objectives.action_ips import stands_for
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.objective import Array
from saferank.engine.ragged import flat_rows, offsets_of, query_sums
from saferank.engine.types.log_statistics import LogStatistics


@dataclass(frozen=True, eq=False)
class SampleVariance(ExposureObjective):
    """value = U - sqrt( sum_i risk_weight_i X_i^2 - shrink U^2 ),    U = sum_d reward(d) rho(d),  X_i of interaction i.

    Rows of `risk_weight` are interactions with a click, query after query; a click is a document in one of them.
    """

    _: KW_ONLY
    interaction_offsets: NDArray[np.int64]
    """The interactions of query q are interaction_offsets[q]:interaction_offsets[q + 1]."""
    click_offsets: NDArray[np.int64]
    """The clicks of query q are click_offsets[q]:click_offsets[q + 1]."""
    clicked: NDArray[np.int64]
    """Document of each click, counted from the query's first."""
    interaction: NDArray[np.int64]
    """Interaction of each click, counted from the query's first."""
    inverse: NDArray[np.float64]
    """1 / propensity of each click's document."""
    shrink: float
    """What the square of U takes off the second moment."""

    @property
    def active(self) -> NDArray[np.int64]:
        """Queries with a click; the others add nothing to either sum."""
        return np.flatnonzero(query_sums((self.reward != 0).astype(np.int64), self.offsets) > 0)

    def terms(self, x: Array, queries: Array) -> Array:
        """Return each given query's part of the estimate and of the weighted second moment."""
        lengths = np.diff(self.offsets)[queries]
        parts = np.zeros((2, len(queries)))
        parts[0] = query_sums(self.reward[flat_rows(self.offsets, queries)] * x, offsets_of(lengths))
        if self.risk_weight is not None:
            weights = self.risk_weight[flat_rows(self.interaction_offsets, queries)]
            squares = weights * self._weighted_clicks(x, queries)[2] ** 2
            parts[1] = query_sums(squares, offsets_of(np.diff(self.interaction_offsets)[queries]))
        return parts

    def value(self, sums: Array) -> float:
        """Return the estimate minus the width."""
        return self.estimate(sums) - self._risk(sums)

    def slope(self, x: Array, sums: Array, queries: Array) -> Array:
        """Return d value / d rho of the given queries' documents, with the sums held."""
        slope: Array = self.reward[flat_rows(self.offsets, queries)]
        risk = self._risk(sums)
        if self.risk_weight is None or risk <= 0:
            return slope
        weights = self.risk_weight[flat_rows(self.interaction_offsets, queries)]
        documents, interactions, weighted = self._weighted_clicks(x, queries)
        inverse = self.inverse[flat_rows(self.click_offsets, queries)]
        second = np.bincount(documents, (weights * weighted)[interactions] * inverse, minlength=len(x))
        moved: Array = slope * (1.0 + self.shrink * sums[0] / risk) - second / risk
        return moved

    def _risk(self, sums: Array) -> float:
        return 0.0 if self.risk_weight is None else math.sqrt(max(sums[1] - self.shrink * sums[0] ** 2, 0.0))

    def _weighted_clicks(self, x: Array, queries: Array) -> tuple[Array, Array, Array]:
        """Return the document and the interaction of each click, counted among the given queries', and every X_i."""
        clicks = flat_rows(self.click_offsets, queries)
        counts = np.diff(self.click_offsets)[queries]
        kept = offsets_of(np.diff(self.interaction_offsets)[queries])
        documents = self.clicked[clicks] + np.repeat(offsets_of(np.diff(self.offsets)[queries])[:-1], counts)
        interactions = self.interaction[clicks] + np.repeat(kept[:-1], counts)
        weighted = np.bincount(interactions, x[documents] * self.inverse[clicks], minlength=int(kept[-1]))
        return documents, interactions, weighted


def exposure_poem(
    log: LogStatistics,
    logging_exposure: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    delta: float = 0.01,
    clip: float = 0.0,
) -> SampleVariance:
    """Exposure IPS with the risk of POEM (Swaminathan & Joachims, ICML 2015), the sample variance of its terms.

        U-hat(rho) - sqrt( ((1-delta)/delta) V / N ),    V = (1/N) sum_i X_i^2 - U-hat^2

        X_i = sum_d rho(d) c_i(d) / max(rho_0(d), clip)

    POEM has a free factor before the root; here it is that of exposure CRM, so that only the variance differs: as
    sampled, in place of the divergence that bounds it. The sum of squares goes over the single interactions that the
    log retains, each standing for N_q / M_q. A policy that the log says nothing about has a sample variance of 0, so
    this is no bound.
    """
    rankings = log.require_rankings(in_order=True)
    estimate = exposure_ips(log, logging_exposure, examination, clip=clip)
    scale = (1.0 - checked_delta(delta)) / delta
    total = max(log.total_interactions, 1)
    some = rankings.clicks.any(axis=1)
    query, at = rankings.query[some], rankings.clicks[some]
    offsets = offsets_of(np.bincount(query, minlength=log.queries))
    which, rank = np.nonzero(at)
    document = rankings.ranking[some][which, rank].astype(np.int64)
    propensity = np.maximum(logging_exposure, clip)[log.offsets[:-1][query[which]] + document]
    return SampleVariance(
        log.offsets,
        estimate.reward,
        scale / total**2 * stands_for(log)[some],
        examination=examination,
        interaction_offsets=offsets,
        click_offsets=offsets_of(np.bincount(query[which], minlength=log.queries)),
        clicked=document,
        interaction=which - offsets[:-1][query[which]],
        inverse=1.0 / propensity,
        shrink=scale / total,
    )
