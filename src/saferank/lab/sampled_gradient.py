"""An exposure objective whose gradient is estimated from sampled rankings, to compare with the exact one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np

from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.objective import Array
from saferank.engine.plackett_luce.sampling import sample_rankings

Estimator = Callable[[Array, Array, Array, Array, Array], Array]
"""`reinforce_gradient` or `pl_rank_3_gradient`."""


@dataclass(frozen=True, eq=False)
class SampledGradient(ExposureObjective):
    """The same value as an exposure objective; its gradient from `samples` rankings per query."""

    _: KW_ONLY
    estimator: Estimator
    samples: int
    rng: np.random.Generator

    @classmethod
    def of(
        cls, objective: ExposureObjective, estimator: Estimator, samples: int, rng: np.random.Generator
    ) -> SampledGradient:
        """Return the objective with sampled gradients."""
        return cls(
            objective.offsets, objective.reward, objective.risk_weight, examination=objective.examination,
            estimator=estimator, samples=samples, rng=rng,
        )  # fmt: skip

    def pull_back(self, scores: Array, x: Array, slope: Array, queries: Array) -> Array:  # noqa: ARG002
        """Return an unbiased estimate of d/d scores of sum_d slope(d) rho(d)."""
        offsets = self._offsets(queries)
        rankings = sample_rankings(scores, offsets, len(self.examination), self.samples, self.rng)
        return self.estimator(scores, offsets, self.examination, slope, rankings)
