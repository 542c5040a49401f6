"""What of the candidates the log has seen, and what of the log the features know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog, Places


@dataclass(frozen=True)
class Coverage:
    """Log and features held against each other. Candidates are the documents of queries that both have."""

    candidates: int
    never_shown: int
    never_shown_by_chance: float
    """Chance that a candidate drawn at random, for an interaction drawn at random, was never shown for its query: what
    share of a uniformly random policy's exposure the log knows nothing of."""
    queries_in_both: int
    queries_without_features: int
    interactions_without_features: float
    """Share of the interactions, of queries that the features lack."""
    queries_without_log: int
    pairs_without_features: int
    """Query-document pairs that were shown and have no features."""
    shown_without_features: float
    """Share of all documents shown, each time counted."""

    @property
    def never_shown_share(self) -> float:
        """Share of the candidates that were never shown."""
        return self.never_shown / max(self.candidates, 1)


def coverage(aggregated: AggregatedLog, shown: RankingData, data: RankingData) -> Coverage:
    """Compare the log, whose own pairs are `shown`, with the features."""
    statistics = aggregated.statistics(PARTS, data)
    own = aggregated.statistics(PARTS, shown)
    assert shown.query_ids is not None
    known = Places(data).of_queries(pa.array(shown.query_ids, pa.string())) >= 0
    missing = aggregated.missing_pairs(data)
    in_both = statistics.interactions > 0
    candidate = in_both[data.query_of_document]
    never = candidate & (statistics.times_shown == 0)
    never_of_query = np.add.reduceat(never, data.offsets[:-1], dtype=np.int64) / data.lengths
    interactions = statistics.total_interactions
    return Coverage(
        candidates=int(candidate.sum()),
        never_shown=int(never.sum()),
        never_shown_by_chance=float(never_of_query @ statistics.interactions / interactions) if interactions else 0.0,
        queries_in_both=int(in_both.sum()),
        queries_without_features=int((~known).sum()),
        interactions_without_features=float(own.interactions[~known].sum() / max(own.total_interactions, 1)),
        queries_without_log=int((~in_both).sum()),
        pairs_without_features=missing.num_rows,
        shown_without_features=float(np.sum(missing["shown_sum"].to_numpy()) / max(own.times_shown.sum(), 1)),
    )
