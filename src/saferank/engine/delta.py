"""The chance that a bound may fail."""

from saferank.engine.errors import UsageError

LEAST_DELTA = 1e-9
"""Smaller ones are beyond what floating point can tell from 0."""


def checked_delta(delta: float) -> float:
    """Return delta, or raise unless it is below 1 and at least LEAST_DELTA."""
    if not LEAST_DELTA <= delta < 1.0:
        raise UsageError(
            f"delta is the chance that the bound may fail, below 1 and at least {LEAST_DELTA:g}; got {delta}."
        )
    return delta
