"""The form that every exposure-based objective has: linear in exposure, minus the root of a sum of squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ExposureObjective:
    """A value to maximise, as a function of exposure.

        value(rho) = sum_d reward(d) rho(d) - sqrt( sum_d spread(d) rho(d)^2 )

    Each method of this package is a choice of `reward` and `spread`, one file each. Written as sums over documents
    so that a mini-batch of queries gives an unbiased part of either sum.
    """

    offsets: NDArray[np.int64]
    reward: NDArray[np.float64]
    """What a unit of exposure of each document is worth."""
    spread: NDArray[np.float64] | None = None
    """What its square adds to the squared risk; None: no risk term."""

    @property
    def active(self) -> NDArray[np.int64]:
        """Queries on which the value depends; the log says nothing of the others."""
        weight = np.abs(self.reward) if self.spread is None else np.abs(self.reward) + self.spread
        return np.flatnonzero(np.add.reduceat(weight, self.offsets[:-1]) > 0)

    def estimate(self, exposure: Array, rows: Any = slice(None)) -> float:
        """Return the linear part, over the given documents."""
        return float(self.reward[rows] @ exposure)

    def squared_risk(self, exposure: Array, rows: Any = slice(None)) -> float:
        """Return the sum under the root, over the given documents."""
        return 0.0 if self.spread is None else float(self.spread[rows] @ np.square(exposure, dtype=np.float64))

    def slope(self, exposure: Array, root_slope: float, rows: Any = slice(None)) -> Array:
        """Return d value / d exposure of the given documents, the root replaced by `root_slope` times its argument.

        sqrt(A) = min over lam > 0 of lam A + 1 / (4 lam), attained at lam = 1 / (2 sqrt(A)): with lam held, the
        objective is a plain sum over queries, and a mini-batch's part of it has no bias.
        """
        slope: Array = self.reward[rows]
        return slope if self.spread is None else slope - 2.0 * root_slope * self.spread[rows] * exposure

    def value_and_slope(self, exposure: Array) -> tuple[float, Array]:
        """Return the value and its derivative with respect to the exposure of every document."""
        squared = self.squared_risk(exposure)
        return self.estimate(exposure) - math.sqrt(squared), self.slope(exposure, root_slope(squared))


def root_slope(squared_risk: float) -> float:
    """d sqrt(A) / d A = 1 / (2 sqrt(A)); 0 where there is no risk."""
    return 0.5 / math.sqrt(squared_risk) if squared_risk > 0 else 0.0
