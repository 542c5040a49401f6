"""Exposure IPS divided, query by query, by the mean of its weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import total_examination
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.objective import Array
from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.ragged import flat_rows, offsets_of, query_sums
from saferank.engine.types.log_statistics import LogStatistics


@dataclass(frozen=True, eq=False)
class SelfNormalised(ExposureObjective):
    """value = sum_q sum_d reward(d) rho(d) / w_q,    w_q = sum_d normaliser(d) rho(d) / Z_q."""

    _: KW_ONLY
    normaliser: NDArray[np.float64]
    """Weight of a unit of each document's exposure in the mean weight of its query; above 0."""

    def terms(self, x: Array, queries: Array) -> Array:
        """Return each given query's part of the value; there is no risk."""
        estimate, weight = self._ratio(x, queries)
        return np.stack([estimate / weight, np.zeros(len(queries))])

    def slope(self, x: Array, sums: Array, queries: Array) -> Array:  # noqa: ARG002
        """Return d value / d rho, by the quotient rule."""
        rows, lengths = flat_rows(self.offsets, queries), np.diff(self.offsets)[queries]
        estimate, weight = self._ratio(x, queries)
        per_weight = estimate / weight / total_examination(self.examination, lengths)
        moved = self.reward[rows] - np.repeat(per_weight, lengths) * self.normaliser[rows]
        slope: Array = moved / np.repeat(weight, lengths)
        return slope

    def _ratio(self, x: Array, queries: Array) -> tuple[Array, Array]:
        """Return IPS and the mean weight of each given query."""
        rows, lengths = flat_rows(self.offsets, queries), np.diff(self.offsets)[queries]
        offsets = offsets_of(lengths)
        weight = query_sums(self.normaliser[rows] * x, offsets) / total_examination(self.examination, lengths)
        return query_sums(self.reward[rows] * x, offsets), weight


def self_normalised_ips(
    log: LogStatistics,
    logging_exposure: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    clip: float = 0.0,
) -> SelfNormalised:
    """Self-normalised exposure IPS (after Swaminathan & Joachims 2015), for a known logging exposure.

        (1/N) sum_q sum_d rho(d) clicks(d) / max(rho_0(d), clip) / w_q

        w_q = (1/Z_q) sum_d rho(d) examined(d) / (N_q rho_0(d)),    examined(d) = sum_k examination[k] shown(d, k)

    w_q has mean 1: it says how much more, or less, often than expected the log examined what the policy exposes. So
    without clipping the value of a query is Z_q times a weighted mean of clicks(d) / examined(d), however small rho_0
    is. It is consistent, not unbiased.

    In w_q a document that was never examined counts as if it had been as often as expected, with the weight 1. With
    the weight 0 that the equation gives it, a policy would rank such documents first at no cost. For the counted
    logging exposure every weight is then 1, and the value that of exposure IPS: counting is self-normalisation per
    document.
    """
    estimate = exposure_ips(log, logging_exposure, examination, clip=clip)
    times = examined(log, examination)
    expected = log.interactions[log.query_of_document] * logging_exposure
    normaliser = np.divide(times, expected, out=np.ones(log.documents), where=(times > 0) & (expected > 0))
    return SelfNormalised(log.offsets, estimate.reward, examination=estimate.examination, normaliser=normaliser)
