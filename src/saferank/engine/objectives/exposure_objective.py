"""Objectives whose rows are documents: linear in exposure, minus the root of a sum of squares."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine import plackett_luce
from saferank.engine.objectives.objective import Array, Objective
from saferank.engine.ragged import offsets_of

ACCURACY = 1e-3
"""Of exposure and gradient in training. An accuracy, never a fixed number of nodes: scores move apart during training,
and a policy soon learns to exploit the error of a grid that is too coarse for them."""


@dataclass(frozen=True, eq=False)
class ExposureObjective(Objective):
    """A value to maximise, through the exposure rho of each document.

    value = sum_d reward(d) rho(d) - sqrt( sum_d risk_weight(d) rho(d)^2 )
    """

    _: KW_ONLY
    examination: NDArray[np.float64]
    accuracy: float = ACCURACY

    def view(self, scores: Array, queries: Array) -> Array:
        """Return the exposure of the given queries' documents."""
        return plackett_luce.exposure(scores, self._offsets(queries), self.examination, tolerance=self.accuracy)

    def pull_back(self, scores: Array, x: Array, slope: Array, queries: Array) -> Array:  # noqa: ARG002
        """Return d/d scores of sum_d slope(d) rho(d), exactly."""
        return plackett_luce.exposure_vjp(
            scores, self._offsets(queries), self.examination, slope, tolerance=self.accuracy
        )

    def slope_and_curvature(self, scores: Array) -> tuple[Array, Array]:
        """Return the derivative with respect to every score, and the curvature of `exposure_vjp_with_curvature`."""
        slope = self.reward
        if not self.linear:
            slope = self.value_and_row_slope(self.view(scores, np.arange(len(self.offsets) - 1)))[1]
        return plackett_luce.exposure_vjp_with_curvature(
            scores, self.offsets, self.examination, slope, tolerance=self.accuracy
        )

    @property
    def linear(self) -> bool:
        """Whether the value is linear in exposure, so that its slope is the reward whatever the policy."""
        return type(self) is ExposureObjective and self.risk_weight is None

    def _offsets(self, queries: Array) -> Array:
        return offsets_of(np.diff(self.offsets)[queries])
