"""Whether results are pinned to a slot: an editor, an advertisement or a rule puts them there, whatever their score.

A new ranker cannot move them, but a verdict would credit it with filling these slots.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions, place_within
from saferank.engine.types.ranking_data import RankingData

Integers = NDArray[np.int64]
LEAST_SHARE = 0.02
"""Share of the impressions with a pinned result from which they may turn a verdict."""
LEAST_LISTS = 30
"""Lists of a query from which one is told from a document that happens to be there."""
PINNED = 0.95
"""Share of the lists of a query that have the document at its rank."""
OTHERS = 0.2
"""Share of these that have other documents above it than most have."""
FURTHER = 0.05
"""Share of these that have a third set of documents above it: two rankers that never vary make two sets."""
VARIES = 0.8
"""A rank varies if at most this share of the lists has the same document there."""


@dataclass(frozen=True)
class Pinned:
    """How many results are pinned below the first rank."""

    share: float = 0.0
    """Of the impressions."""
    queries: int = 0

    @property
    def significant(self) -> bool:
        """Whether they are enough to matter."""
        return self.share > LEAST_SHARE


def pinned(sample: SampledImpressions | None, pairs: RankingData, *, by_period: bool) -> Pinned:
    """Find documents that are always at the same rank, below the first, while those above them change.

    If each document's place comes from a score and noise of its own, the number of documents above d is a sum of
    independent 0s and 1s, given the score of d. It can only be the same in nearly every list if they hardly vary; then
    the documents above d are the same ones too. So where they are not, something else holds d in its place. Lists in
    which at most half of the other ranks vary are left out: a slot that is filled at random moves nothing else. What is
    pinned to the first rank looks like a document with a high score.
    """
    if sample is None:
        return Pinned()
    first, lengths = sample.offsets[:-1], np.diff(sample.offsets)
    row = np.repeat(np.arange(len(first)), lengths)
    query = pairs.query_of_document[sample.document[first]]
    periods = int(sample.period.max(initial=0)) + 1
    cell = np.unique(query * periods + sample.period[first] if by_period else query, return_inverse=True)[1]
    place, ranks = np.arange(len(row)) - first[row], int(lengths.max(initial=1))
    at = cell[row] * ranks + place  # a rank of a cell
    cells = int(cell.max(initial=0)) + 1
    same, lists, document = _most_common(at, sample.document, cells * ranks)
    varies = (same <= VARIES * lists) & (lists > 0)
    much = (2 * varies.reshape(cells, ranks).sum(axis=1) > (lists.reshape(cells, ranks) > 0).sum(axis=1) - 1)[cell]
    held = (same >= PINNED * lists)[at] & (document[at] == sample.document) & (lists[at] >= LEAST_LISTS)
    held &= (place > 0) & much[row]
    sign = np.random.default_rng(0).integers(1, 2**40, pairs.documents)[sample.document]
    above = (np.cumsum(sign) - sign) - (np.cumsum(sign) - sign)[first][row]  # the same for the same set
    sets, times = np.unique(np.stack([at[held], above[held]]), axis=1, return_counts=True)
    place_of_set = place_within(sets[0], -times)
    usual, two, every = (np.bincount(sets[0], times * (place_of_set < most), len(lists)) for most in (1, 2, np.inf))
    found = np.unique(np.flatnonzero((usual < (1.0 - OTHERS) * every) & (two < (1.0 - FURTHER) * every)) // ranks)
    return Pinned(share=float(np.isin(cell, found).mean()), queries=len(np.unique(query[np.isin(cell, found)])))


def _most_common(group: Integers, value: Integers, groups: int) -> tuple[Integers, Integers, Integers]:
    """Return by group how often its most common value occurs, how many values it has, and the most common one."""
    size = int(value.max(initial=0)) + 1
    keys, count = np.unique(group * size + value, return_counts=True)
    of = keys // size
    first = place_within(of, -count) == 0
    most, common = np.zeros((2, groups), np.int64)
    most[of[first]], common[of[first]] = count[first], (keys % size)[first]
    return most, np.bincount(group, minlength=groups), common
