"""The position-based click model: a document is clicked if its rank is looked at and it is found relevant."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.errors import UsageError


def inverse_rank(cutoff: int = 5, power: float = 2.0) -> NDArray[np.float64]:
    """Examination 1 / k^power for the ranks k = 1 .. cutoff (the paper: power 2, cutoff 5)."""
    if cutoff < 1:
        raise UsageError(f"got cutoff {cutoff}, but a ranking has at least 1 rank.")
    if not 0.0 <= power < np.inf:
        raise UsageError(f"got power {power}, but examination 1/k^power needs a number from 0 up.")
    return np.arange(1, cutoff + 1, dtype=np.float64) ** -float(power)


def parse_examination(text: str, cutoff: int | None = None) -> NDArray[np.float64]:
    """Examination as a user writes it: `inverse-rank:POWER` (2 if left out), or a probability a rank: `1,0.5,0.3`.

    A list says how many ranks there are, and a cutoff must agree with it; for `inverse-rank` it is 5 unless given.
    """
    kind, _, power = text.partition(":")
    try:
        if kind == "inverse-rank":
            return inverse_rank(5 if cutoff is None else cutoff, float(power or 2))
        listed = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(
            f"examination {text}: write inverse-rank:POWER, with a power from 0 up, "
            "or a probability for each rank, such as 1,0.5,0.3."
        ) from error
    if cutoff not in (None, len(listed)):
        raise UsageError(f"examination {text} is for {len(listed)} ranks, but the cutoff is {cutoff}: leave it out.")
    return check_probabilities("examination", listed)


@dataclass(frozen=True, eq=False)
class PositionBasedModel:
    """Clicks independent given the ranking, with chance examination of the rank times relevance of the document.

        P(C = 1 | d, k) = examination[k] * relevance(d),    relevance(d) = relevance_slope * label(d) + relevance_noise

    The defaults are the paper's (Gupta et al., SIGIR 2023, section 6), for labels 0 .. 4.
    """

    examination: NDArray[np.float64] = field(default_factory=inverse_rank)
    """P(E = 1 | k), one a rank."""
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


def check_probabilities(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return values as a flat float64 array, or raise if one is not in [0, 1]."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise UsageError(f"{name} must be flat, got shape {array.shape}.")
    bad = np.flatnonzero(~((array >= 0.0) & (array <= 1.0)))
    if len(bad):
        raise UsageError(f"{name}[{bad[0]}] is {array[bad[0]]:g}, but a probability lies between 0 and 1.")
    return array
