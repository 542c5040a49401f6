"""The position-based click model: a document is clicked if its rank is examined and it is found relevant."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.click_models.examination import check_probabilities, inverse_rank
from saferank.engine.errors import UsageError

__all__ = ["PositionBasedModel", "check_probabilities", "inverse_rank"]


@dataclass(frozen=True, eq=False)
class PositionBasedModel:
    """Clicks independent given the ranking, with chance examination of the rank times relevance of the document.

        P(C = 1 | d, k) = examination[k] * relevance(d),    relevance(d) = relevance_slope * label(d) + relevance_noise

    The defaults are the paper's (Gupta et al., SIGIR 2023, section 6), for labels 0 .. 4.
    """

    examination: NDArray[np.float64] = field(default_factory=inverse_rank)
    """P(E = 1 | k), one per rank."""
    relevance_slope: float = 0.025
    relevance_noise: float = 0.2

    def __post_init__(self) -> None:
        object.__setattr__(self, "examination", check_probabilities("examination", self.examination))
        if len(self.examination) == 0:
            raise UsageError("examination needs at least one rank.")

    @property
    def cutoff(self) -> int:
        """Number of ranks."""
        return len(self.examination)

    def relevance(self, labels: ArrayLike) -> NDArray[np.float64]:
        """P(R = 1 | q, d) of documents with these labels."""
        values = self.relevance_slope * np.asarray(labels, dtype=np.float64) + self.relevance_noise
        return check_probabilities("relevance", values)
