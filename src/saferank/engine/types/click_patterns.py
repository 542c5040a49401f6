"""What a variance needs of a click log: which documents of an interaction were clicked together, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.engine.ragged import offsets_of, query_of_document
from saferank.engine.types.log_statistics import LoggedRankings


@dataclass(frozen=True, eq=False)
class ClickPatterns:
    """Counts per (query, set of clicked documents): a pattern seen a million times is one entry.

    Documents are rows of the flat arrays of the features; `offsets[p]:offsets[p + 1]` are those of pattern p. The
    interactions without a click are patterns too, with no document.
    """

    query: NDArray[np.int64]
    """Index of the query of each pattern."""
    offsets: NDArray[np.int64]
    documents: NDArray[np.int64]
    interactions: NDArray[np.int64]
    """How often each pattern was seen."""
    segment: NDArray[np.str_] | NDArray[np.object_] | None = None
    """Value of the segment column, if the log was aggregated with one."""
    period: NDArray[np.int64] | None = None
    """Period of each pattern, if patterns are counted by period."""
    unit: NDArray[np.int64] | None = None
    """Number of the user or session of each pattern, if the log was aggregated with such units."""
    rewards: NDArray[np.float64] | None = None
    """Reward of each click, beside `documents`; 1 each if None."""

    def __post_init__(self) -> None:
        for name in ("query", "offsets", "documents", "interactions"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=np.int64))
        if self.offsets.shape != (len(self.query) + 1,) or self.interactions.shape != self.query.shape:
            raise DataError(
                f"{len(self.query)} patterns with {len(self.offsets)} offsets and {len(self.interactions)} counts."
            )
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.documents) or (np.diff(self.offsets) < 0).any():
            raise DataError(f"offsets of patterns must rise from 0 to the {len(self.documents)} clicked documents.")
        bad = np.flatnonzero(self.interactions < 1)
        if len(bad):
            raise DataError(f"got {self.interactions[bad[0]]}, but a pattern was seen at least once.", row=int(bad[0]))
        for name, wanted in (
            ("segment", self.query),
            ("period", self.query),
            ("unit", self.query),
            ("rewards", self.documents),
        ):
            values = getattr(self, name)
            if values is not None and len(values) != len(wanted):
                raise DataError(f"{len(values)} values of {name} for {len(wanted)}.")

    @classmethod
    def of_rankings(cls, rankings: LoggedRankings, offsets: NDArray[np.int64]) -> ClickPatterns:
        """Return the patterns of single interactions: one each, but those without a click are counted by query."""
        clicks = rankings.clicks.sum(axis=1)
        some = np.flatnonzero(clicks)
        without = np.bincount(rankings.query[clicks == 0], minlength=len(offsets) - 1)
        silent = np.flatnonzero(without)
        lengths = np.concatenate([clicks[some], np.zeros(len(silent), np.int64)])
        return cls(
            query=np.concatenate([rankings.query[some], silent]),
            offsets=offsets_of(lengths),
            documents=rankings.rows(offsets)[some][rankings.clicks[some]],
            interactions=np.concatenate([np.ones(len(some), np.int64), without[silent]]),
        )

    @property
    def patterns(self) -> int:
        """Number of distinct patterns."""
        return len(self.query)

    @property
    def total_interactions(self) -> int:
        """N: how many interactions the patterns stand for."""
        return int(self.interactions.sum())

    def subset(self, chosen: NDArray[np.bool_]) -> ClickPatterns:
        """Return the patterns that a mask chooses."""
        lengths = np.diff(self.offsets)
        return ClickPatterns(
            query=self.query[chosen],
            offsets=offsets_of(lengths[chosen]),
            documents=self.documents[np.repeat(chosen, lengths)],
            interactions=self.interactions[chosen],
            segment=None if self.segment is None else self.segment[chosen],
            period=None if self.period is None else self.period[chosen],
            unit=None if self.unit is None else self.unit[chosen],
            rewards=None if self.rewards is None else self.rewards[np.repeat(chosen, lengths)],
        )

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return for each pattern the sum over its clicks of the document's value (times the click's reward)."""
        pattern = query_of_document(self.offsets)
        weights = np.asarray(values, np.float64)[self.documents]
        if self.rewards is not None:
            weights = weights * self.rewards
        sums: NDArray[np.float64] = np.bincount(pattern, weights, self.patterns).astype(np.float64, copy=False)
        return sums
