"""What a risk term needs to know: how often its bound may fail, and which constant it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from saferank.engine.click_models.examination import Constant
from saferank.engine.delta import checked_delta
from saferank.engine.errors import UsageError


@dataclass(frozen=True)
class Risk:
    """delta and the constant of a risk term."""

    delta: float = 0.05
    """Chance that the bound may fail, for a policy fixed beforehand."""
    constant: Constant = "proven"

    def __post_init__(self) -> None:
        checked_delta(self.delta)
        checked_constant(self.constant)


def checked_constant(constant: Constant) -> Constant:
    """Return the constant, or raise if there is none of that name."""
    if constant not in get_args(Constant):
        raise UsageError(f"constant {constant!r} is unknown; choose from: {', '.join(get_args(Constant))}.")
    return constant
