"""How much was logged, and how it spreads over the queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saferank.engine.types.log_statistics import LogStatistics

SIZES = (1, 2, 10, 100, 1_000)
"""Lower ends of the classes of queries, by their interactions."""


@dataclass(frozen=True)
class QueryClass:
    """Queries that were issued about equally often."""

    at_least: int
    at_most: int | None
    queries: int
    interactions: int

    @property
    def name(self) -> str:
        """The interactions of a query of this class, as text: `2-9`."""
        if self.at_most is None:
            return f"{self.at_least:,}+"
        return f"{self.at_least:,}" if self.at_least == self.at_most else f"{self.at_least:,}-{self.at_most:,}"


@dataclass(frozen=True)
class Traffic:
    """Totals, and queries by how often they were issued."""

    interactions: int
    queries: int
    pairs: int
    """Different documents shown, counted for each query by itself."""
    shown: int
    """Documents shown, each time counted."""
    clicks: int
    classes: tuple[QueryClass, ...]

    @property
    def queries_seen_once(self) -> int:
        """Queries with one interaction."""
        return self.classes[0].queries

    def share_in_queries_of(self, interactions: int) -> float:
        """Share of the interactions that belong to queries with at least so many of them (10, 100 or 1000)."""
        return sum(one.interactions for one in self.classes if one.at_least >= interactions) / max(self.interactions, 1)


def traffic(statistics: LogStatistics) -> Traffic:
    """Measure it."""
    per_query = statistics.interactions
    ends = [*(size - 1 for size in SIZES[1:]), None]
    classes = []
    for at_least, at_most in zip(SIZES, ends, strict=True):
        inside = per_query[(per_query >= at_least) & (per_query <= (at_most or np.inf))]
        classes.append(QueryClass(at_least, at_most, len(inside), int(inside.sum())))
    return Traffic(
        interactions=statistics.total_interactions,
        queries=int((per_query > 0).sum()),
        pairs=int((statistics.times_shown > 0).sum()),
        shown=int(statistics.times_shown.sum()),
        clicks=int(statistics.clicks.sum()),
        classes=tuple(classes),
    )
