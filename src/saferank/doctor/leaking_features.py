"""Whether a feature knows the held-out clicks: a click-through rate over the whole log, say.

A model with such a feature has seen what it is judged by, and no verdict on this log holds for it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.engine.jit import jit
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SIGNIFICANT = 5.0
"""Normal deviate from which a feature is believed to know clicks, which allows for hundreds of features."""
LEAST_SIZE = 0.1
"""Correlation below which a feature does little harm: one that holds the clicks of a quarter of a year besides those of
a log of two weeks has 0.07."""
FEWEST = 50
"""Pairs of neighbours below which nothing is tested."""
WINDOWS = (1, 2, 3, 5, 7, 10, 14, 21, 28)
"""Days at the end of the log whose clicks a feature may know, besides those of the whole log."""
WIDEST = 3.0
"""Standard deviations at which single differences are cut off, so that a few documents do not decide."""
MOST_ROWS = 100_000
NO_DIVISOR = -1
"""For clicks alone, in place of the column of what they are divided by."""
MOST_REPEATED = 0.9
"""Share of distinct documents among the rows up to which they are also tested across queries."""


@dataclass(frozen=True)
class Leak:
    """A feature that knows the held-out clicks."""

    feature: str
    z: float
    """Normal deviate, negative."""
    correlation: float
    """Of clicks in the training parts and held out, among rows with nearly the same value."""
    days: int | None = None
    """The last days of the log that it knows best; None for the whole log."""


def leaking_features(log: AggregatedLog, data: RankingData, rng: np.random.Generator) -> tuple[Leak, ...]:
    """Return the features that know the held-out clicks, the worst first.

    Among documents for which a feature has the same value, those with more clicks than others in the training parts
    have at least as many more in the held-out part: both depend on their relevance, and otherwise on chance. If they
    have fewer, the feature fixes the sum of the two, so it was computed from the held-out clicks too. Rows are sorted
    by the feature, and neighbours compared: a and b are the differences of click-through in the two parts, each over
    its standard deviation. Their correlation is 0 or more for every honest feature, up to chance (1 / sqrt(n - 1)
    for n pairs of neighbours), also for one that was computed from the training parts alone. The
    same holds for clicks per expected click at the document's ranks, and for clicks alone, so all three are tested;
    for documents over all queries, where a feature does not depend on the query; and for the last days of the log,
    because a feature of the last week fixes the sum of that week only.
    """
    windows = list(_windows(log, data))
    rows = windows[0].rows
    if len(rows) < 2 * FEWEST:
        return ()
    document = np.unique(np.asarray(data.require_ids()[1])[rows], return_inverse=True)[1]
    several = int(document.max()) + 1 <= MOST_REPEATED * len(rows)
    first = np.unique(document, return_index=True)[1]
    by_document = [window.by(document) for window in windows] if several else []
    found = []
    for column, name in enumerate(data.feature_names or [str(number) for number in range(data.features.shape[1])]):
        value = data.features[rows, column]
        tests = _tests(value, windows, rng)
        if several and np.array_equal(value, value[first][document], equal_nan=True):
            tests += _tests(value[first], by_document, rng)
        correlation, z, days = min(tests, default=(0.0, 0.0, None), key=lambda test: test[:2])
        if correlation < 0.0:
            found.append(Leak(name, z, correlation, days))
    return tuple(sorted(found, key=lambda leak: leak.correlation))


@dataclass(frozen=True, eq=False)
class _Window:
    """The whole log, or the last days of it: what is known of rows that both parts show."""

    days: int | None
    rows: Integers
    """Of the features; the same in all windows."""
    tables: tuple[Floats, Floats]
    """Of the training parts and of the held-out part: clicks, times shown and expected clicks of each row."""

    @property
    def compared(self) -> NDArray[np.bool_]:
        return np.asarray((self.tables[0][:, 1] > 0) & (self.tables[1][:, 1] > 0))

    def by(self, document: Integers) -> Self:
        """Return the sums over the rows of each document."""
        sums = [
            np.column_stack([np.bincount(document, column).astype(np.float64) for column in table.T])
            for table in self.tables
        ]
        return replace(self, tables=(sums[0], sums[1]))


def _windows(log: AggregatedLog, data: RankingData) -> Iterator[_Window]:
    """Yield the whole log, and the last days of it."""
    periods, rows = len(log.periods), None
    for days in (None, *(days for days in WINDOWS if days < periods)):
        part = log
        if days is not None:
            within = pc.greater_equal(log.shown_counts["period"], periods - days)
            part = replace(log, shown_counts=log.shown_counts.filter(within))
        train, held_out = (part.statistics(parts, data) for parts in (("train", "validation"), ("certify",)))
        clicks, shown = (train.clicked + held_out.clicked).sum(axis=0), (train.shown + held_out.shown).sum(axis=0)
        rate = clicks / np.maximum(shown, 1)
        if rows is None:
            rows = np.flatnonzero((train.times_shown > 0) & (held_out.times_shown > 0))
            if len(rows) > MOST_ROWS:
                rows = np.sort(rows[np.argsort(-held_out.times_shown[rows], kind="stable")[:MOST_ROWS]])
        tables = [np.column_stack([one.clicks, one.times_shown, one.shown @ rate])[rows] for one in (train, held_out)]
        yield _Window(days, rows, (tables[0].astype(np.float64), tables[1].astype(np.float64)))


def _tests(
    value: NDArray[np.float32], windows: list[_Window], rng: np.random.Generator
) -> list[tuple[float, float, int | None]]:
    """Return correlation, normal deviate and days of each test that says that a feature knows clicks.

    Tested are clicks per shown, per expected click at the rank, and clicks alone, in each window.
    """
    shuffled = rng.permutation(len(value))  # so that equal values are in a random order
    order = shuffled[np.argsort(value[shuffled], kind="stable")]
    found: list[tuple[float, float, int | None]] = []
    for window in windows:
        kept = order[window.compared[order]]
        pairs = len(kept) // 2
        if pairs < FEWEST:
            continue
        for divisor in (1, 2, NO_DIVISOR):
            correlation = _correlation(kept, *window.tables, divisor)
            z = correlation * math.sqrt(pairs - 1.0)
            if z < -SIGNIFICANT and correlation < -LEAST_SIZE:
                found.append((correlation, z, window.days))
    return found


@jit
def _correlation(kept: Integers, train: Floats, held_out: Floats, divisor: int) -> float:
    """Return the correlation of the differences between neighbours in the two parts; 0 if one does not vary."""
    a, b = _differences(kept, train, divisor), _differences(kept, held_out, divisor)
    if not (_standardise(a) and _standardise(b)):
        return 0.0
    total = 0.0
    for pair in range(len(a)):
        total += a[pair] * b[pair]
    return total / len(a)


@jit
def _differences(kept: Integers, part: Floats, divisor: int) -> Floats:
    """Return the difference of each two rows, over its standard deviation up to a factor."""
    out = np.empty(len(kept) // 2)
    for pair in range(len(out)):
        one, other = kept[2 * pair], kept[2 * pair + 1]
        if divisor == NO_DIVISOR:
            out[pair] = (part[one, 0] - part[other, 0]) / math.sqrt(part[one, 1] + part[other, 1])
            continue
        first, second = max(part[one, divisor], 1e-12), max(part[other, divisor], 1e-12)
        out[pair] = (part[one, 0] / first - part[other, 0] / second) / math.sqrt(1.0 / first + 1.0 / second)
    return out


@jit
def _standardise(values: Floats) -> bool:
    """Give values the mean 0 and the variance 1, in place, those that were far off cut; False if they are all equal."""
    for far_off in (WIDEST, np.inf):
        mean, square, count = 0.0, 0.0, len(values)
        for value in values:
            mean += value / count
        for value in values:
            square += (value - mean) ** 2 / count
        deviation = math.sqrt(square)
        if deviation <= 1e-12 * abs(mean):
            return False
        for place in range(count):
            values[place] = min(max(values[place] - mean, -far_off * deviation), far_off * deviation)
            if far_off == np.inf:
                values[place] /= deviation
    return True
