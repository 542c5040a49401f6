"""Trust bias: users click what they would not otherwise, because the ranker placed it at the top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TrustBias:
    """Clicks that are affine in relevance at each rank (Agarwal et al., WWW 2019; Vardasbi et al., CIKM 2020).

        P(C = 1 | d, k) = alpha[k] R(d) + beta[k]

    beta = 0 is the position-based model. No log can tell alpha and beta from alpha c and beta + alpha b, with relevance
    (R(d) - b) / c: all clicks are the same. Documents are ranked as by R(d), so any choice will do: see `normalised`.
    """

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]

    @property
    def examination(self) -> NDArray[np.float64]:
        """alpha + beta: the chance of a click if R(d) = 1, what a rank is worth to a relevant document."""
        return self.alpha + self.beta

    def normalised(self) -> TrustBias:
        """Return the same clicks with alpha[0] + beta[0] = 1 and 0 as the smallest beta.

        R(d) = 1 is always clicked at the top, as with a position-based curve that begins with 1; R(d) = 0 is as high as
        it can be without a negative beta. So trust explains as little as possible, nothing where clicks are
        position-based; and a document never shown, with an estimate of 0, is taken to be no poorer than it need be.
        """
        lowest, highest = np.max(-self.beta / self.alpha), (1.0 - self.beta[0]) / self.alpha[0]
        return TrustBias(self.alpha * (highest - lowest), self.beta + self.alpha * lowest)
