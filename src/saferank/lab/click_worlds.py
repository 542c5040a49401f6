"""Worlds of the experiment besides the paper's: trust in top ranks, an adversary, rare queries, little validation."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.trust_bias import TrustBias
from saferank.lab.world import World

Floats = NDArray[np.float64]
RELEVANT_CLICKED, TRUSTED = 0.98, 0.65
"""Of what is examined: the share of the relevant that is clicked, and of the irrelevant at rank 1; it falls as 1/k."""


@dataclass(frozen=True)
class ClickWorld:
    """How clicks come about, and on which queries. What learners are told stays the same: the examination curve."""

    description: str
    trust: bool = False
    """Examined documents that are not relevant are clicked too, at the top ranks most of all."""
    inverted: bool = False
    """The best labels are clicked as the worst ones should be: an adversary."""
    zipf: float = 0.0
    """The r-th query comes in proportion to r^-zipf."""
    validation: float = 1.0
    """Share of the validation queries that is there."""

    def of(self, world: World) -> World:
        """Return the world with the validation queries that are there."""
        if self.validation == 1.0:
            return world
        few = np.arange(max(1, round(self.validation * world.validation.queries)))
        documents = world.validation.offsets[len(few)]
        scores = world.logging_scores | {"validation": world.logging_scores["validation"][:documents]}
        return replace(world, validation=world.validation.subset(few), logging_scores=scores)

    def clicked(self, world: World, part: str) -> Floats:
        """The relevance that users click by."""
        if not self.inverted:
            return world.relevance(part)
        most = world.train.require_labels().max()
        return world.click_model.relevance(most - getattr(world, part).require_labels())

    def curve(self, world: World) -> TrustBias:
        """How the chance of a click depends on rank and relevance; beta is 0 where clicks are position-based."""
        examination = world.click_model.examination
        if not self.trust:
            return TrustBias(examination, np.zeros(len(examination)))
        trusted = TRUSTED / np.arange(1.0, len(examination) + 1.0)
        return TrustBias(examination * (RELEVANT_CLICKED - trusted), examination * trusted)

    def traffic(self, queries: int) -> Floats | None:
        """Share of the interactions of each query; None if they come equally often."""
        if not self.zipf:
            return None
        shares = np.arange(1.0, queries + 1.0) ** -self.zipf
        return np.asarray(shares / shares.sum())


CLICK_WORLDS = {
    "position-based": ClickWorld("as in the paper: clicks by the position-based model that learners assume"),
    "trust-bias": ClickWorld("users trust the top ranks: what is irrelevant is clicked there too", trust=True),
    "adversarial": ClickWorld("clicks are inverted: what is clicked most is the least relevant", inverted=True),
    "tail": ClickWorld("few queries are frequent and most are rare (Zipf's law)", zipf=1.0),
    "small-validation": ClickWorld("5% of the validation queries", validation=0.05),
}
