"""What every exposure-based method needs of a click log: how often each document was shown and clicked at each rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import flat_rows, offsets_of, query_indices, query_of_document, query_sums


@dataclass(frozen=True, eq=False)
class LoggedRankings:
    """Single interactions: what was shown, in order, and what was clicked. The action-based methods need them."""

    query: NDArray[np.int32]
    """Index of the query of each interaction."""
    ranking: NDArray[np.int32]
    """(interaction, rank) -> document, counted from the query's first; -1 from the rank on at which the list ends."""
    clicks: NDArray[np.bool_]
    """(interaction, rank)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", np.asarray(self.query, dtype=np.int32))
        object.__setattr__(self, "ranking", np.asarray(self.ranking, dtype=np.int32))
        object.__setattr__(self, "clicks", np.asarray(self.clicks).astype(np.bool_, copy=False))
        if self.query.ndim != 1 or self.ranking.ndim != 2 or len(self.ranking) != len(self.query):
            raise DataError(f"rankings of shape {self.ranking.shape} for queries of shape {self.query.shape}.")
        if self.clicks.shape != self.ranking.shape:
            raise DataError(f"clicks of shape {self.clicks.shape} for rankings of shape {self.ranking.shape}.")
        empty = self.ranking < 0
        bad = np.flatnonzero((self.clicks & empty).any(axis=1))
        if len(bad):
            raise DataError("a click where no document was shown.", row=int(bad[0]))
        bad = np.flatnonzero((empty[:, :-1] & ~empty[:, 1:]).any(axis=1))
        if len(bad):
            raise DataError("the ranking goes on after a rank with no document (-1).", row=int(bad[0]))

    @property
    def interactions(self) -> int:
        """Number of interactions that were kept, of all queries."""
        return len(self.query)

    def rows(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """(interaction, rank) -> row of the shown document in flat arrays; some valid row where there is none."""
        rows: NDArray[np.int64] = offsets[:-1][self.query][:, None] + np.maximum(self.ranking, 0)
        return rows


@dataclass(frozen=True, eq=False)
class LogStatistics:
    """Counts per (query, document, rank), ragged: rows `offsets[q]:offsets[q + 1]` belong to query q.

    Checked on construction: shapes agree, no document is clicked more often than shown, and no rank of a query shows
    more documents than it has interactions. It may show fewer: real lists end early, and documents without features
    are left out.
    """

    offsets: NDArray[np.int64]
    interactions: NDArray[np.int64]
    """N_q: how often each query was issued."""
    shown: NDArray[np.int64]
    """(document, rank): how often the document was shown there."""
    clicked: NDArray[np.int64]
    """(document, rank): how often it was clicked there."""
    rankings: LoggedRankings | None = None
    """Some of the interactions one by one, an equal chance for each, if they were asked for."""

    def __post_init__(self) -> None:
        for name in ("offsets", "interactions", "shown", "clicked"):
            object.__setattr__(self, name, _whole_numbers(name, getattr(self, name)))
        if self.offsets.ndim != 1 or len(self.offsets) < 2 or self.offsets[0] != 0:
            raise DataError("offsets must start at 0 and have one entry more than there are queries.")
        empty = np.flatnonzero(np.diff(self.offsets) < 1)
        if len(empty):
            raise DataError(f"query {empty[0]} has no document; leave such queries out.")
        if self.interactions.shape != (self.queries,):
            raise DataError(f"interactions of shape {self.interactions.shape} for {self.queries} queries.")
        if self.shown.ndim != 2 or self.shown.shape[1] < 1 or len(self.shown) != self.offsets[-1]:
            raise DataError(f"shown has shape {self.shown.shape}, but there are {self.offsets[-1]} documents.")
        if self.clicked.shape != self.shown.shape:
            raise DataError(f"clicked has shape {self.clicked.shape}, but shown has {self.shown.shape}.")
        self._check_counts()
        if self.rankings is not None:
            self._check_rankings(self.rankings)

    def _check_counts(self) -> None:
        for name in ("interactions", "shown", "clicked"):
            counts = getattr(self, name)
            if counts.size and counts.min() < 0:
                place = np.unravel_index(counts.argmin(), counts.shape)[0]
                raise DataError(f"got {counts.min()}, but a count cannot be negative.", row=int(place), column=name)
        too_many = self.clicked > self.shown
        if too_many.any():
            document, rank = (int(index) for index in np.argwhere(too_many)[0])
            clicks, times = self.clicked[document, rank], self.shown[document, rank]
            raise DataError(f"document {document} at rank {rank + 1} was clicked {clicks} times, but shown {times}.")
        per_rank = query_sums(self.shown, self.offsets)
        if (per_rank > self.interactions[:, None]).any():
            query, rank = (int(index) for index in np.argwhere(per_rank > self.interactions[:, None])[0])
            raise DataError(
                f"query {query} has {self.interactions[query]} interactions, "
                f"but {per_rank[query, rank]} documents shown at rank {rank + 1}."
            )

    def _check_rankings(self, rankings: LoggedRankings) -> None:
        if rankings.ranking.shape[1] != self.cutoff:
            raise DataError(f"rankings have {rankings.ranking.shape[1]} ranks, but the counts {self.cutoff}.")
        if rankings.interactions == 0:
            return
        if rankings.query.min() < 0 or rankings.query.max() >= self.queries:
            raise DataError(f"a ranking of a query that is not among the {self.queries}.")
        bad = np.flatnonzero((rankings.ranking >= np.diff(self.offsets)[rankings.query][:, None]).any(axis=1))
        if len(bad):
            raise DataError("the ranking names a document that its query does not have.", row=int(bad[0]))
        over = np.flatnonzero(self.kept > self.interactions)
        if len(over):
            q = over[0]
            raise DataError(f"query {q} has {self.interactions[q]} interactions, but {self.kept[q]} rankings.")

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def documents(self) -> int:
        """Number of documents of all queries together."""
        return len(self.shown)

    @property
    def cutoff(self) -> int:
        """Number of ranks."""
        return int(self.shown.shape[1])

    @cached_property
    def total_interactions(self) -> int:
        """N: interactions of all queries together."""
        return int(self.interactions.sum())

    @cached_property
    def clicks(self) -> NDArray[np.int64]:
        """How often each document was clicked, at whatever rank."""
        return _sum_over_ranks(self.clicked)

    @cached_property
    def times_shown(self) -> NDArray[np.int64]:
        """How often each document was shown, at whatever rank."""
        return _sum_over_ranks(self.shown)

    @cached_property
    def query_of_document(self) -> NDArray[np.int64]:
        """Index of the query that each document belongs to."""
        return query_of_document(self.offsets)

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """How many single interactions of each query `rankings` holds."""
        if self.rankings is None:
            return np.zeros(self.queries, np.int64)
        return np.bincount(self.rankings.query, minlength=self.queries).astype(np.int64)

    def require_rankings(self, *, in_order: bool = False) -> LoggedRankings:
        """Return the single interactions, or raise if there are none (or, `in_order`, not query after query)."""
        if self.rankings is None:
            raise UsageError("this needs single rankings; make the statistics with keep_rankings.")
        if in_order and np.any(np.diff(self.rankings.query) < 0):
            raise UsageError("the log's single rankings must lie query after query; sort them.")
        return self.rankings

    def subset(self, queries: ArrayLike) -> LogStatistics:
        """Return the given queries (indices, in the given order, or a boolean mask) with their documents."""
        chosen = query_indices(queries)
        if len(chosen) == 0:
            raise DataError("a subset of no query at all; choose at least one.")
        rows = flat_rows(self.offsets, chosen)
        return LogStatistics(
            offsets=offsets_of(np.diff(self.offsets)[chosen]),
            interactions=self.interactions[chosen],
            shown=self.shown[rows],
            clicked=self.clicked[rows],
            rankings=None if self.rankings is None else self._rankings_of(self.rankings, chosen),
        )

    def _rankings_of(self, rankings: LoggedRankings, chosen: NDArray[np.int64]) -> LoggedRankings:
        by_query = np.argsort(rankings.query, kind="stable")
        rows = by_query[flat_rows(offsets_of(self.kept), chosen)]
        query = np.repeat(np.arange(len(chosen)), self.kept[chosen])
        return LoggedRankings(query.astype(np.int32), rankings.ranking[rows], rankings.clicks[rows])

    def merge(
        self, other: LogStatistics, *, new_table: Callable[[int, int, type[np.int64]], NDArray[np.int64]] | None = None
    ) -> LogStatistics:
        """Add the counts of another log of the same queries and documents; rankings are kept if both have them.

        `new_table(documents, ranks, np.int64)` returns where counts are put, if not into new arrays.
        """
        if not np.array_equal(self.offsets, other.offsets) or self.cutoff != other.cutoff:
            raise DataError("logs of different queries, documents or numbers of ranks cannot be merged.")
        rankings = None
        if self.rankings is not None and other.rankings is not None:
            query = np.concatenate([self.rankings.query, other.rankings.query])
            order = np.argsort(query, kind="stable")
            rankings = LoggedRankings(
                query[order],
                np.concatenate([self.rankings.ranking, other.rankings.ranking])[order],
                np.concatenate([self.rankings.clicks, other.rankings.clicks])[order],
            )
        shown, clicked = (
            np.add(mine, theirs, out=None if new_table is None else new_table(self.documents, self.cutoff, np.int64))
            for mine, theirs in ((self.shown, other.shown), (self.clicked, other.clicked))
        )
        return LogStatistics(self.offsets, self.interactions + other.interactions, shown, clicked, rankings)


def stacked(logs: Sequence[LogStatistics]) -> LogStatistics:
    """Return one log with the queries of all, those of each log as queries of their own; without rankings."""
    if len(logs) == 1:
        return logs[0]
    interactions, shown, clicked = (
        np.concatenate([getattr(log, name) for log in logs]) for name in ("interactions", "shown", "clicked")
    )
    return LogStatistics(
        offsets_of(np.concatenate([np.diff(log.offsets) for log in logs])), interactions, shown, clicked
    )


def _whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise DataError(f"{name} must be whole numbers, got {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.int64)


def _sum_over_ranks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    total = np.zeros(len(counts), np.int64)
    for rank in range(counts.shape[1]):  # many times as fast as sum(axis=1) over so short an axis
        total += counts[:, rank]
    return total
