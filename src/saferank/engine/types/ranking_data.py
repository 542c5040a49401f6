"""Queries with their candidate documents, ragged: one flat array each, and where each query begins."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.errors import DataError
from saferank.engine.ragged import flat_rows, offsets_of, query_indices, query_of_document

Ids: TypeAlias = NDArray[np.str_] | NDArray[np.object_]
"""Texts: in NumPy's own type all are as wide as the longest, as Python strings they are not."""
BLOCK = 1 << 16
"""Rows that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class RankingData:
    """Documents of all queries, flat; `offsets[q]:offsets[q + 1]` are those of query q.

    Checked on construction: shapes agree, no query is empty, every feature and label is finite.
    """

    features: NDArray[np.float32]
    """One row per document."""
    offsets: NDArray[np.int64]
    labels: NDArray[np.float32] | None = None
    query_ids: Ids | None = None
    document_ids: Ids | None = None
    feature_names: tuple[str, ...] | None = None
    source: str = "memory"
    """Where the data came from: a file or a preset, for messages and manifests."""
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns of text -> their values that are features, called `column=value`."""
    id_types: tuple[str, str] | None = None
    """Types that the ids of queries and documents had where they came from, for messages."""

    check_finite: InitVar[bool] = True
    """False if the features are known to be finite: a memory map then stays on disk until it is used."""

    def __post_init__(self, check_finite: bool) -> None:
        object.__setattr__(self, "features", np.asarray(self.features, dtype=np.float32))
        object.__setattr__(self, "offsets", np.asarray(self.offsets, dtype=np.int64))
        if self.features.ndim != 2:
            dimensions = self.features.ndim
            raise self._error(f"features must be a table of documents by features, got {dimensions} dimension(s).")
        if self.offsets.ndim != 1 or len(self.offsets) < 2 or self.offsets[0] != 0:
            raise self._error("offsets must start at 0 and have one entry more than there are queries.")
        if self.offsets[-1] != len(self.features):
            raise self._error(f"offsets end at {self.offsets[-1]}, but there are {len(self.features)} documents.")
        empty = np.flatnonzero(np.diff(self.offsets) < 1)
        if len(empty):
            raise self._error(f"query {empty[0]} has no document; leave such queries out.")
        if self.labels is not None:
            object.__setattr__(self, "labels", np.asarray(self.labels, dtype=np.float32))
            assert self.labels is not None
            if self.labels.shape != (self.documents,):
                raise self._error(f"{self.labels.shape} labels for {self.documents} documents.")
            bad = np.flatnonzero(~np.isfinite(self.labels))
            if len(bad):
                message = f"got {self.labels[bad[0]]}, but a label must be a finite number."
                raise self._error(message, row=int(bad[0]), column="label")
        if self.query_ids is not None and len(self.query_ids) != self.queries:
            raise self._error(f"{len(self.query_ids)} query ids for {self.queries} queries.")
        if self.document_ids is not None and len(self.document_ids) != self.documents:
            raise self._error(f"{len(self.document_ids)} document ids for {self.documents} documents.")
        if self.feature_names is not None and len(self.feature_names) != self.features.shape[1]:
            raise self._error(f"{len(self.feature_names)} feature names for {self.features.shape[1]} features.")
        if check_finite:
            self._check_finite()

    def _error(self, message: str, *, row: int | None = None, column: str | None = None) -> DataError:
        return DataError(message, file=self.source, row=row, column=column)

    def _check_finite(self) -> None:
        for start in range(0, self.documents, 1 << 16):
            block = self.features[start : start + (1 << 16)]
            with np.errstate(invalid="ignore"):  # inf - inf
                total = block.sum(dtype=np.float64)
            if np.isfinite(total):
                continue
            rows, columns = np.nonzero(~np.isfinite(block))
            if len(rows):
                name = self.feature_names[columns[0]] if self.feature_names else str(columns[0] + 1)
                value = block[rows[0], columns[0]]
                message = f"got {value}, but a feature must be a finite number; fill or drop it first."
                raise self._error(message, row=int(start + rows[0]), column=name)

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @property
    def documents(self) -> int:
        """Number of documents of all queries together."""
        return len(self.features)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of documents of each query."""
        return np.diff(self.offsets)

    @cached_property
    def query_of_document(self) -> NDArray[np.int64]:
        """Index of the query that each document belongs to."""
        return query_of_document(self.offsets)

    def subset(self, queries: ArrayLike) -> RankingData:
        """Return the given queries (indices, in the given order, or a boolean mask) with their documents."""
        chosen = query_indices(queries)
        if len(chosen) == 0:
            raise DataError("a subset of no query at all; choose at least one.", file=self.source)
        rows = flat_rows(self.offsets, chosen)
        return replace(
            self,
            features=self.features[rows],
            offsets=offsets_of(self.lengths[chosen]),
            labels=None if self.labels is None else self.labels[rows],
            query_ids=None if self.query_ids is None else self.query_ids[chosen],
            document_ids=None if self.document_ids is None else self.document_ids[rows],
        )

    def with_relevant_document(self) -> RankingData:
        """Leave out the queries in which no document has a label above 0."""
        labels = self.require_labels()
        return self.subset(np.maximum.reduceat(labels, self.offsets[:-1]) > 0)

    def log1p(self) -> RankingData:
        """Replace features x by sign(x) log(1 + |x|), which tames heavy tails."""
        features = np.empty_like(self.features)
        for first in range(0, self.documents, BLOCK):  # in blocks: one copy of the table, and no more
            rows = slice(first, first + BLOCK)
            signed_log1p(self.features[rows], out=features[rows])
        return replace(self, features=features)

    def scaled_per_query(self) -> RankingData:
        """Scale every feature to [0, 1] within each query (min-max); a feature constant there becomes 0."""
        features = np.empty_like(self.features)
        for first in range(0, self.queries, 256):
            offsets = self.offsets[first : first + 257]
            rows = slice(offsets[0], offsets[-1])
            scale_per_query(self.features[rows], offsets - offsets[0], out=features[rows])
        return replace(self, features=features)

    def require_ids(self) -> tuple[Ids, Ids]:
        """Return the ids of queries and documents, or raise if there are none."""
        if self.query_ids is None or self.document_ids is None:
            raise self._error("has no ids of queries and documents, and a log needs them.")
        return self.query_ids, self.document_ids

    def require_labels(self) -> NDArray[np.float32]:
        """Return the labels, or raise if there are none."""
        if self.labels is None:
            raise self._error("has no labels, and this needs them.")
        return self.labels


def signed_log1p(features: NDArray[np.float32], *, out: NDArray[np.float32]) -> None:
    """Write sign(x) log(1 + |x|) to `out`, which may be the features themselves."""
    np.copysign(np.log1p(np.abs(features)), features, out=out)


def scale_per_query(features: NDArray[np.float32], offsets: NDArray[np.int64], *, out: NDArray[np.float32]) -> None:
    """Write (x - min) / (max - min) over the query to `out`, 0 where max = min; `out` may be the features."""
    low = np.minimum.reduceat(features, offsets[:-1], axis=0)
    span = np.maximum.reduceat(features, offsets[:-1], axis=0) - low
    span[span == 0] = 1.0
    query = query_of_document(offsets)
    np.subtract(features, low[query], out=out)
    out /= span[query]


def content_hash(data: RankingData) -> str:
    """SHA-256 of features, ids and where queries begin: what the data is, wherever it is kept."""
    digest = hashlib.sha256(np.ascontiguousarray(data.offsets).tobytes())
    for start in range(0, data.documents, BLOCK):
        digest.update(np.ascontiguousarray(data.features[start : start + BLOCK]).data)
    for given in (data.query_ids, data.document_ids, data.feature_names):
        names = () if given is None else given
        for start in range(0, len(names), BLOCK):
            digest.update((("\0" if start else "") + "\0".join(names[start : start + BLOCK])).encode())
        digest.update(b"\1")
    return digest.hexdigest()
