"""The interactions of some parts of a log, counted by stratum: a query, or a query within a stretch of time."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog, places_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StratumCounts:
    """Counts per cell: a document that was shown in a stratum. Cells of a stratum stand together."""

    pair: Ints
    """Row of the cell's query and document among all pairs."""
    stratum: Ints
    """Of each cell, rising."""
    shown: Ints
    """(cell, rank)."""
    clicked: Ints
    """(cell, rank)."""
    query: Ints
    """Of each stratum."""
    period: Ints
    """Stretch of time of each stratum; 0 if strata are queries."""
    interactions: Ints
    """Of each stratum."""
    patterns: ClickPatterns
    """Sets of cells that were clicked together; their queries are strata."""

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.pair)

    @property
    def strata(self) -> int:
        """Number of strata."""
        return len(self.query)

    @cached_property
    def issued(self) -> Floats:
        """Interactions of each stratum among `patterns`: all of them, unless some patterns were chosen."""
        return np.bincount(self.patterns.query, self.patterns.interactions, self.strata).astype(np.float64)

    @cached_property
    def rewards(self) -> Floats:
        """Of each cell: its clicks, or their rewards."""
        patterns = self.patterns
        each = np.repeat(patterns.interactions, np.diff(patterns.offsets)).astype(np.float64)
        if patterns.rewards is not None:
            each = each * patterns.rewards
        return np.bincount(patterns.documents, each, self.cells).astype(np.float64)

    @cached_property
    def listed(self) -> Ints:
        """(stratum, rank): how often anything was shown there."""
        listed = np.zeros((self.strata, self.shown.shape[1]), np.int64)
        np.add.at(listed, self.stratum, self.shown)
        return listed

    @cached_property
    def filled(self) -> Floats:
        """(stratum, rank): share of its interactions that show something there; some lists end early."""
        return self.listed / np.maximum(self.interactions, 1)[:, None]

    @cached_property
    def seen(self) -> Ints:
        """Strata that showed something."""
        return np.unique(self.stratum)

    @cached_property
    def offsets(self) -> Ints:
        """Where the cells of each stratum in `seen` begin, and where the last ones end."""
        return np.append(np.searchsorted(self.stratum, self.seen), self.cells)

    def exposure(self, examination: Floats) -> Floats:
        """rho_0(d) of each cell, counted: the mean examination of the ranks where its stratum showed it."""
        return (self.shown @ examination) / np.maximum(self.interactions[self.stratum], 1)

    def statistics(self) -> LogStatistics:
        """Return the counts as a log whose queries are the strata in `seen`."""
        return LogStatistics(self.offsets, self.interactions[self.seen], self.shown, self.clicked)


def by_query(log: AggregatedLog) -> bool:
    """Whether whole queries are held out: then a query is the unit, and the promise is about new ones."""
    return (log.manifest.get("split") or {}).get("by") == "query"


def counts_by_stratum(
    log: AggregatedLog, parts: tuple[str, ...], pairs: RankingData, *, strata: Ints | None = None
) -> StratumCounts:
    """Count the given parts by query; and, if `strata` numbers the stretch that each period belongs to, by stretch.

    `pairs` holds all that the log shows.
    """
    stretch = np.zeros(max(len(log.periods), 1), np.int64) if strata is None else strata
    patterns = log.click_patterns(parts, pairs)
    assert patterns.period is not None
    period = stretch[patterns.period]
    periods = int(stretch.max(initial=0)) + 1
    keys, stratum_of_pattern = np.unique(patterns.query * periods + period, return_inverse=True)

    rows = log.shown_counts.filter(pc.is_in(log.shown_counts["part"], value_set=pa.array(parts, pa.string())))
    pair = places_of(pairs).of_pairs(rows["query_id"], rows["document_id"])
    when = stretch[rows["period"].to_numpy()]
    stratum = np.searchsorted(keys, pairs.query_of_document[pair] * periods + when)
    cells, place = np.unique(stratum * pairs.documents + pair, return_inverse=True)
    at_rank = place * log.cutoff + rows["position"].to_numpy() - 1
    shown, clicked = (
        np.bincount(at_rank, rows[name].to_numpy(), len(cells) * log.cutoff).astype(np.int64).reshape(-1, log.cutoff)
        for name in ("shown", "clicked")
    )
    clicked_in = np.repeat(stratum_of_pattern, np.diff(patterns.offsets))
    return StratumCounts(
        pair=cells % pairs.documents,
        stratum=cells // pairs.documents,
        shown=shown,
        clicked=clicked,
        query=keys // periods,
        period=keys % periods,
        interactions=np.bincount(stratum_of_pattern, patterns.interactions, len(keys)).astype(np.int64),
        patterns=replace(
            patterns,
            query=stratum_of_pattern,
            documents=np.searchsorted(cells, clicked_in * pairs.documents + patterns.documents),
        ),
    )
