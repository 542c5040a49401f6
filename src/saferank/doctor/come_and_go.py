"""How much of a log goes to documents that come and go: new products, and those out of stock."""

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import PeriodCounts

CHANCE = 1e-3
"""Chance below which a document that is never shown in a stretch of time was not there: it would have been shown."""


def come_and_go(counts: PeriodCounts, stretches: NDArray[np.int64]) -> float:
    """Return the share of what was shown, each rank counted as 1 / rank, on documents that are missing in a stretch.

    A document that was shown n times in all, and never in stretches with a share f of its query's interactions, was
    missing there by chance with probability (1 - f)^n. `stretches`: period -> number of the stretch.
    """
    stretch, last = stretches[counts.period], int(stretches.max()) + 1
    at_top = counts.rank == 0
    issued = np.zeros((int(counts.query.max()) + 1, last))
    np.add.at(issued, (counts.query[at_top], stretch[at_top]), counts.shown[at_top])
    document, first = np.unique(counts.document, return_index=True)
    place, shown = np.searchsorted(document, counts.document), np.zeros((len(document), last))
    np.add.at(shown, (place, stretch), counts.shown)
    of_document = issued[counts.query[first]]
    missing = (of_document * (shown == 0)).sum(axis=1) / np.maximum(of_document.sum(axis=1), 1.0)
    with np.errstate(divide="ignore"):
        gone = shown.sum(axis=1) * np.log1p(-missing) < np.log(CHANCE)
    exposed = np.bincount(place, counts.shown / (1.0 + counts.rank))
    return float(exposed[gone].sum() / exposed.sum())
