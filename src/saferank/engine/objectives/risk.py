"""What a risk term needs to know: how often its bound may fail, and which constant it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from saferank.engine.errors import UsageError

Constant = Literal["paper", "proven"]
"""c in the risk term: the paper's 1, or min(K, 1 + Z), with which it is a bound."""


@dataclass(frozen=True)
class Risk:
    """delta and the constant of a risk term."""

    delta: float = 0.05
    """Chance that the bound may fail, for a policy fixed beforehand."""
    constant: Constant = "proven"

    def __post_init__(self) -> None:
        checked_delta(self.delta)


def checked_delta(delta: float) -> float:
    """Return delta, or raise unless it lies strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise UsageError(f"delta is the chance that the bound may fail, between 0 and 1; got {delta}.")
    return delta
