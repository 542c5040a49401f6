"""The natural experiments of a log: query-document pairs that were shown at more ranks than one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.types.log_statistics import LogStatistics


@dataclass(frozen=True, eq=False)
class MovedPairs:
    """Pairs shown at two or more of `ranks`, and clicked at least once: all that tells of examination.

    With a relevance of its own, a pair seen at one rank only fits any curve, and so does a pair without a click.
    The ranks are those that can be compared with rank 1. Two ranks are compared by a pair that was shown at both; a
    click says which of the two it was clicked at. The likelihood has its maximum at finite ratios only if each rank
    can be reached from each other along such clicks, both ways (Ford 1957, for paired comparisons). So `ranks` are
    those that rank 1 reaches and is reached from.
    """

    ranks: NDArray[np.int64]
    """Ranks, from 0, that can be estimated; the first is rank 0."""
    unclicked: NDArray[np.int64]
    """Ranks, from 0, at which no pair that moved was ever clicked, though those pairs were clicked at `ranks`."""
    query: NDArray[np.int64]
    """Query of each pair, numbered from 0 without gaps, rising."""
    shown: NDArray[np.float64]
    """(pair, place in `ranks`): how often it was shown there."""
    clicked: NDArray[np.float64]
    """(pair, place in `ranks`)."""
    interventions: NDArray[np.int64]
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


def moved_pairs(statistics: LogStatistics) -> MovedPairs:
    """Find them."""
    seen = np.flatnonzero((np.count_nonzero(statistics.shown, axis=1) >= 2) & (statistics.clicks > 0))
    shown, clicked = statistics.shown[seen].astype(np.float64), statistics.clicked[seen].astype(np.float64)
    was_shown, was_clicked = (counts > 0 for counts in (shown, clicked))
    # leads[j, k]: some pair was shown at j and clicked at k
    leads = was_shown.astype(np.float32).T @ was_clicked.astype(np.float32) > 0
    reach = leads | np.eye(statistics.cutoff, dtype=np.bool_)
    for middle in range(statistics.cutoff):
        reach |= reach[:, [middle]] & reach[[middle], :]
    inside = reach[0] & reach[:, 0]
    unclicked = ~was_clicked.any(axis=0) & leads[:, inside].any(axis=1)
    ranks, without = np.flatnonzero(inside), np.flatnonzero(unclicked)
    interventions = was_shown.sum(axis=0)
    tells = (np.count_nonzero(was_shown[:, inside | unclicked], axis=1) >= 2) & was_clicked[:, inside].any(axis=1)
    return MovedPairs(
        ranks=ranks,
        unclicked=without,
        query=np.unique(statistics.query_of_document[seen[tells]], return_inverse=True)[1],
        shown=shown[tells][:, ranks],
        clicked=clicked[tells][:, ranks],
        interventions=interventions,
        unclicked_shown=shown[tells][:, without],
    )
