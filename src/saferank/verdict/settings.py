"""What to ask of a certificate."""

import math
from dataclasses import dataclass

from saferank.engine.bounds.registry import check_bound
from saferank.engine.errors import UsageError


@dataclass(frozen=True)
class CertifySettings:
    """What to ask of a certificate; the defaults of `certify` and of `saferank certify`."""

    delta: float = 0.05
    """Accepted probability of a wrong DEPLOY."""
    tolerance: float = 0.0
    """Accepted loss, in clicks per interaction."""
    bound: str = "one-look"
    """Name of the confidence bound: see `engine.bounds.registry`."""
    clip: float = 0.0
    """Smallest logging exposure; lower values are raised to it, which lowers the estimate and its variance."""
    most_weight: float | None = None
    """Largest weight of a click; chosen on the validation part if None."""
    trust_examination: bool = False
    """Whether to trust a given curve that the log cannot check."""
    trust_stability: bool = False
    """Whether to trust that ranker and demand did not change, if the log has no timestamps."""
    trust_candidates: bool = False
    """Whether to trust that any candidate could be shown in every impression, though lists look otherwise."""
    random_per_unit: bool = False
    """Whether rankings that differ between users were drawn at random, and not personalised."""
    most_per_unit: int | None = None
    """Interactions that a user, or another unit, counts with at most; all of them if None."""
    spent: float = 1.0
    """Share of delta for this look: see `Ledger`."""
    look: int = 1
    explore: bool = False
    """Whether to try flatter policies too, if rankings are drawn and the verdict is DEPLOY."""
    details: bool = True
    """Whether to add what the verdict does not need: other bounds, curves and deltas, and segments."""

    def __post_init__(self) -> None:
        check_bound(self.bound, self.delta)
        if not 0.0 <= self.tolerance < math.inf:
            raise UsageError(f"tolerance is an accepted loss and must be 0 or more; got {self.tolerance}.")
        if self.clip < 0.0:
            raise UsageError(f"clip is an exposure and must be 0 or more; got {self.clip}.")
        if self.most_weight is not None and not self.most_weight >= 1.0:
            raise UsageError(f"the largest weight must be 1 or more; got {self.most_weight}.")
        if self.most_per_unit is not None and self.most_per_unit < 1:
            raise UsageError(f"the most interactions per unit must be 1 or more; got {self.most_per_unit}.")
