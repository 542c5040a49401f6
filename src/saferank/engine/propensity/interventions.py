"""The interventions of a log: query-document pairs that were shown at several ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.types.log_statistics import LogStatistics


@dataclass(frozen=True, eq=False)
class Interventions:
    """Pairs shown at two or more of `ranks` and clicked at least once: all that a log shows about examination.

    With a relevance of its own, a pair shown at one rank only fits any curve, and so does a pair without a click.
    The ranks are those that can be compared with rank 1. Two ranks are compared by a pair that was shown at both; a
    click says at which of the two it was clicked. The likelihood has its maximum at finite ratios only if each rank
    can be reached from every other along such clicks, both ways (Ford 1957, for paired comparisons). So `ranks` are
    those that rank 1 reaches and is reached from.
    """

    ranks: NDArray[np.int64]
    """Ranks, from 0, that can be estimated; the first is rank 0."""
    unclicked: NDArray[np.int64]
    """Ranks, from 0, at which no intervention was ever clicked, though those pairs were clicked at `ranks`."""
    document: NDArray[np.int64]
    """Row of each pair in the statistics."""
    query: NDArray[np.int64]
    """Query of each pair, numbered from 0 without gaps, rising."""
    shown: NDArray[np.float64]
    """(pair, place in `ranks`): how often it was shown there."""
    clicked: NDArray[np.float64]
    """(pair, place in `ranks`)."""
    per_rank: NDArray[np.int64]
    """Rank -> number of pairs that were shown there and at another rank, and clicked at least once."""
    unclicked_shown: NDArray[np.float64]
    """(pair, place in `unclicked`): how often the pair was shown there."""

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.query)

    @property
    def queries(self) -> int:
        """Number of queries that have such a pair."""
        return int(self.query[-1]) + 1 if self.pairs else 0


def find_interventions(statistics: LogStatistics) -> Interventions:
    """Return the pairs of a log from which examination can be estimated, and the ranks that they connect."""
    from scipy.sparse.csgraph import connected_components  # a fifth of a second, so only where it is needed

    seen = np.flatnonzero((np.count_nonzero(statistics.shown, axis=1) >= 2) & (statistics.clicks > 0))
    shown, clicked = statistics.shown[seen].astype(np.float64), statistics.clicked[seen].astype(np.float64)
    was_shown, was_clicked = shown > 0, clicked > 0
    # leads[j, k]: some pair was shown at j and clicked at k
    leads = was_shown.astype(np.float32).T @ was_clicked.astype(np.float32) > 0
    component = connected_components(leads, connection="strong")[1]
    inside = component == component[0]
    unclicked = ~was_clicked.any(axis=0) & leads[:, inside].any(axis=1)
    compares = (np.count_nonzero(was_shown[:, inside | unclicked], axis=1) >= 2) & was_clicked[:, inside].any(axis=1)
    return Interventions(
        ranks=np.flatnonzero(inside),
        unclicked=np.flatnonzero(unclicked),
        document=seen[compares],
        query=np.unique(statistics.query_of_document[seen[compares]], return_inverse=True)[1],
        shown=shown[compares][:, inside],
        clicked=clicked[compares][:, inside],
        per_rank=was_shown.sum(axis=0),
        unclicked_shown=shown[compares][:, unclicked],
    )
