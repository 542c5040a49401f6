"""Whether the lists of a query come in kinds: a filter, a second page, a sort order or stock decides what can be shown.

A new ranker cannot change such limits, but a verdict would credit it with showing its best documents every time.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.hour_of_day import buckets
from saferank.doctor.log_arrays import SampledImpressions, place_within
from saferank.engine.jit import jit
from saferank.engine.types.ranking_data import RankingData

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
SIGNIFICANT = 4.5
"""Normal deviate from which kinds are believed; its standard deviation rests on REPLICATES redrawn samples."""
LEAST_SIZE = 0.01
"""Excess below which kinds do little harm. In logs of rankers that draw from scores it is within 0.002 of 0."""
MOST_IMPRESSIONS = 10_000
PAIRINGS, REPLICATES, FIRST_ROUNDS, ROUNDS = 15, 25, 12, 2
"""Partners per list whose overlap is measured; redrawn samples; rounds of trades before the first, and between two."""
LEAST_RANDOM, LEAST_TIMES, UNEVEN = 50, 1.0, 2.0
"""Unusual lists from which they may be a share of random rankings; times that documents are in those of a query, on
average, to be compared; normal deviate from which they are not equally often there."""
FEW_REPLICATES = 6
"""Redrawn samples that are enough where the excess is small."""


@dataclass(frozen=True)
class ListKinds:
    """How much more unevenly the lists of a query overlap than if one ranker chose them all."""

    z: float = 0.0
    """Normal deviate."""
    size: float = 0.0
    """Excess of the pairs of documents that two lists of a query share, relative to what one ranker would make."""
    impressions: int = 0
    """Those with another list of the same query and length to compare with."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance, and large enough to matter."""
        return self.z > SIGNIFICANT and self.size > LEAST_SIZE


def list_kinds(
    sample: SampledImpressions | None, pairs: RankingData, rng: np.random.Generator, *, by_period: bool
) -> ListKinds:
    """Test whether documents are shown together, or not at all, more often than independent draws from scores would.

    The statistic is the mean of O (O - 1) / 2 over pairs of lists of a query, O being the number of documents that the
    two share. If lists come in kinds, some pairs share nearly all and others nearly nothing, which raises it. Chance is
    all ways to fill the lists that keep each list's length and how often each document is shown (the null model of
    Strona et al. 2014, "A fast and unbiased procedure to randomize ecological binary matrices with fixed row and column
    totals", Nat. Commun. 5): two lists trade the documents that only one of them has. Lists of different lengths, as on
    small screens, are not compared; nor are lists of different periods, with `by_period`. A ranker that changes once a
    day, but not at midnight, makes kinds as well; if they vanish within a few hours, it is that, and no harm. So does a
    share of random rankings, which is left out; see `_at_random`.
    """
    if sample is None:
        return ListKinds()
    lists, cell, hour = _lists(sample, pairs, rng, by_period=by_period)
    found, error = _excess(lists, cell, rng)
    if not math.isfinite(error) or found <= max(SIGNIFICANT * error, LEAST_SIZE):
        return ListKinds(_deviate(found, error), found, len(cell))
    random = _at_random(lists, cell, rng)
    if random.any():
        lists, cell, hour = lists[~random], cell[~random], None if hour is None else hour[~random]
        found, error = _excess(lists, cell, rng)
        if not math.isfinite(error) or found <= max(SIGNIFICANT * error, LEAST_SIZE):
            return ListKinds(_deviate(found, error), found, len(cell))
    if hour is not None:
        within, error_within = _excess(lists, np.unique(cell * 24 + hour, return_inverse=True)[1], rng)
        if math.isfinite(error_within) and within + 3.0 * error_within < found / 2.0:
            return ListKinds(_deviate(within, error_within), within, len(cell))
    return ListKinds(_deviate(found, error), found, len(cell))


def _deviate(found: float, error: float) -> float:
    return found / error if 0.0 < error < math.inf else 0.0


def _lists(
    sample: SampledImpressions, pairs: RankingData, rng: np.random.Generator, *, by_period: bool
) -> tuple[Integers, Integers, Integers | None]:
    """Return documents of each list (padded with -1), the number of its cell, and its bucket of the day."""
    lengths, first = np.diff(sample.offsets), sample.offsets[:-1]
    period = sample.period[first] if by_period else np.zeros(len(first), np.int64)
    query = pairs.query_of_document[sample.document[first]]
    key = (query * (int(period.max(initial=0)) + 1) + period) * (int(lengths.max(initial=0)) + 1) + lengths
    chosen = np.arange(len(first))
    if len(chosen) > MOST_IMPRESSIONS:
        cells, size = np.unique(key, return_counts=True)  # whole cells, so that lists keep their partners
        order = rng.permutation(len(cells))
        kept = order[: max(int(np.searchsorted(np.cumsum(size[order]), MOST_IMPRESSIONS)), 1)]
        chosen = np.flatnonzero(np.isin(key, cells[kept]))[:MOST_IMPRESSIONS]
    row = np.full((len(chosen), int(lengths[chosen].max(initial=0))), -1, np.int64)
    filled = np.arange(row.shape[1]) < lengths[chosen][:, None]
    row[filled] = sample.document[(first[chosen][:, None] + np.arange(row.shape[1]))[filled]]
    hour = None if sample.hour is None else buckets(sample.hour[first[chosen]])
    return row, np.unique(key[chosen], return_inverse=True)[1], hour


def _excess(lists: Integers, cell: Integers, rng: np.random.Generator) -> tuple[float, float]:
    """Return the relative excess of the statistic over its mean in redrawn samples, and its standard error."""
    order = np.argsort(cell, kind="stable")
    place = np.arange(len(cell)) - np.searchsorted(cell[order], cell[order])
    second = np.flatnonzero(place % 2)
    if len(second) == 0:
        return 0.0, math.inf

    def partners() -> tuple[Integers, Integers]:
        """Lists two by two, at random within each cell; each list at most once."""
        _shuffle(order, place, rng.random(len(order)))
        return order[second - 1], order[second]

    one, other = np.concatenate([partners() for _ in range(PAIRINGS)], axis=1)
    observed, redrawn, drawn = _shared_pairs(lists, one, other), [], lists.copy()
    for replicate in range(REPLICATES):
        for _ in range(ROUNDS if replicate else FIRST_ROUNDS):
            _trade(drawn, *partners(), rng.random((len(second), 2 * drawn.shape[1])))
        redrawn.append(_shared_pairs(drawn, one, other))
        if replicate + 1 == FEW_REPLICATES and observed <= (1.0 + LEAST_SIZE) * float(np.mean(redrawn)):
            break
    mean, deviation = float(np.mean(redrawn)), float(np.std(redrawn, ddof=1))
    if mean <= 0.0 or deviation <= 1e-12 * mean:  # rankings never vary
        return 0.0, math.inf
    return observed / mean - 1.0, deviation / mean


def _at_random(lists: Integers, cell: Integers, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the lists that share at most half with what their cell usually shows, if they seem to be drawn at random.

    That is, if they have no kinds themselves, and if all usual documents are in them equally often, and all others too,
    as far as chance goes (chi-square): on a second page, the higher a document usually is the less often it stands.
    """
    row, place = np.nonzero(lists >= 0)
    document, size = lists[row, place], int(lists.max()) + 1
    keys, entry = np.unique(cell[row] * size + document, return_inverse=True)
    of, length = keys // size, (lists >= 0).sum(axis=1)
    of_cell = np.zeros(int(cell.max()) + 1, np.int64)
    of_cell[cell] = length  # lists of a cell have the same length
    usual = place_within(of, -np.bincount(entry)) < of_cell[of]
    unusual = 2 * np.bincount(row, usual[entry], len(lists)) <= length
    nothing = np.zeros(len(lists), np.bool_)
    if unusual.sum() < LEAST_RANDOM:
        return nothing
    times, group = np.bincount(entry, unusual[row], len(keys)), 2 * of + usual
    alike = np.bincount(group)
    mean = np.bincount(group, times) / np.maximum(alike, 1)
    compared = (mean >= LEAST_TIMES) & (alike > 1)
    chance = mean / np.maximum(np.bincount(cell, unusual)[np.arange(len(mean)) // 2], 1)  # that a list has one of them
    variance = mean * (1.0 - chance) * alike / np.maximum(alike - 1, 1)  # drawn without replacement
    squares = np.bincount(group, np.square(times - mean[group])) / np.maximum(variance, 1e-300)
    freedom = float((alike - 1)[compared].sum())
    uneven = float(squares[compared].sum()) - freedom > UNEVEN * math.sqrt(2.0 * freedom)
    found, error = _excess(lists[unusual], cell[unusual], rng)
    kinds = math.isfinite(error) and found > max(SIGNIFICANT * error, LEAST_SIZE)
    return nothing if kinds or uneven or freedom == 0.0 else unusual


@jit
def _shuffle(values: Integers, place: Integers, chance: Floats) -> None:
    """Shuffle values within stretches, in place; `place` counts from 0 within each, `chance` is uniform."""
    for last in range(len(values)):
        drawn = last - place[last] + int(chance[last] * (place[last] + 1))
        values[last], values[drawn] = values[drawn], values[last]


@jit
def _shared_pairs(lists: Integers, one: Integers, other: Integers) -> float:
    """Return the mean number of pairs of documents that two lists share."""
    total = 0
    for pair in range(len(one)):
        shared = 0
        for document in lists[one[pair]]:
            if document >= 0 and _has(lists[other[pair]], document):
                shared += 1
        total += shared * (shared - 1) // 2
    return total / len(one)


@jit
def _trade(lists: Integers, one: Integers, other: Integers, chance: Floats) -> None:
    """Let two lists deal out anew, at random, the documents that only one of them has; in place."""
    length = lists.shape[1]
    rows, places, documents = np.empty((3, 2 * length), np.int64)
    for pair in range(len(one)):
        traded = 0
        for row, partner in ((one[pair], other[pair]), (other[pair], one[pair])):
            for place in range(length):
                if not _has(lists[partner], lists[row, place]):
                    rows[traded], places[traded], documents[traded] = row, place, lists[row, place]
                    traded += 1
        _shuffle(documents[:traded], np.arange(traded), chance[pair])
        for i in range(traded):
            lists[rows[i], places[i]] = documents[i]


@jit
def _has(documents: Integers, document: int) -> bool:
    for one in documents:  # noqa: SIM110, a loop is what compiles
        if one == document:
            return True
    return False
