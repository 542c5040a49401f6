"""Which features a policy reads, and what becomes of them before the scorer sees them."""

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData, scale_per_query, signed_log1p
from saferank.features.columns import FILL
from saferank.files.json_format import checked_json
from saferank.files.large_table import drop_pages, new_table

Scaling = Literal["per-query", "none"]
Missing = float | Literal["error"]
BLOCK = 1 << 16
"""Rows prepared at a time: features may be a memory map larger than memory."""


@dataclass(frozen=True)
class FeatureSchema:
    """The features of a policy by name, in order, and how raw ones are prepared.

    First a missing value (NaN) is filled with `missing`, or is an error; then, with `log1p`, x becomes
    sign(x) log(1 + |x|), which tames heavy tails; then features are scaled: `per-query` to [0, 1] over the candidates
    of the query (a feature constant there becomes 0), or not at all. A policy that corrects the scores of another
    ranker reads them, as they are, from the column `base`.
    """

    names: tuple[str, ...]
    log1p: bool = True
    scaling: Scaling = "per-query"
    missing: Missing = "error"
    base: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if not self.names:
            raise UsageError("a policy needs at least one feature.")
        if twice := [name for place, name in enumerate(self.columns) if name in self.columns[:place]]:
            raise UsageError(f"feature '{twice[0]}' is named twice; name each one once.")
        if self.scaling not in get_args(Scaling):
            raise UsageError(f"scaling '{self.scaling}' is unknown; choose {' or '.join(get_args(Scaling))}.")
        if self.missing != "error" and not (isinstance(self.missing, float | int) and math.isfinite(self.missing)):
            raise UsageError(f"missing={self.missing!r}: must be 'error', or the number that stands for NaN.")

    @classmethod
    def of(cls, data: RankingData, **settings: Any) -> Self:
        """Return the schema of a policy that learns from these features; nameless ones are called 1, 2, ..."""
        return cls(feature_names(data), **settings)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns that the policy reads: features first, then `base`, if there is one."""
        return self.names if self.base is None else (*self.names, self.base)

    def prepare(self, data: RankingData, *, ignore: Collection[str] = ()) -> RankingData:
        """Return the features as the scorer reads them. They are found by name, and may stand in another order.

        A feature that is not there is an error, and so is one that the schema does not know, unless it is one to
        `ignore`: a column that was renamed, or that leaked in, should not go unnoticed. Nameless features must be as
        many as the schema has, in its order.
        """
        columns = self._columns(data, ignore)
        out = new_table(data.documents, len(self.columns))
        for offsets in _query_blocks(data.offsets):
            rows = slice(offsets[0], offsets[-1])
            out[rows] = self._filled(data, data.features[rows][:, columns], int(offsets[0]))
            block = out[rows, : len(self.names)]
            if self.log1p:
                signed_log1p(block, out=block)
            if self.scaling == "per-query":
                scale_per_query(block, offsets - offsets[0], out=block)
        drop_pages(data.features)
        return replace(data, features=out, feature_names=self.columns)

    def _columns(self, data: RankingData, ignore: Collection[str]) -> slice | list[int]:
        found, width = data.feature_names, data.features.shape[1]
        if found is None and width != len(self.columns):
            message = f"has {width} features, but the policy reads {len(self.columns)}: {listed(self.columns)}."
            raise DataError(message, file=data.source)
        if found is None or found == self.columns:
            return slice(None)
        for name in self.columns:
            if name not in found:
                message = f"there is no such feature, and the policy reads it; there are {listed(found)}."
                raise DataError(message, file=data.source, column=name)
        for name in found:
            if name not in self.columns and name not in ignore:
                message = "the policy does not know this feature; leave the column out, or ignore it (--ignore)."
                raise DataError(message, file=data.source, column=name)
        return [found.index(name) for name in self.columns]

    def _filled(self, data: RankingData, block: NDArray[np.float32], first_row: int) -> NDArray[np.float32]:
        """Return some rows of the data without missing values."""
        bad = ~np.isfinite(block)
        if not bad.any():
            return block
        wrong = bad if self.missing == "error" else np.isinf(block)
        if self.base is not None:
            wrong[:, -1] = bad[:, -1]  # a score that is missing is not filled
        if wrong.any():
            row, column = (int(index) for index in np.argwhere(wrong)[0])
            value = float(block[row, column])
            remedy = "must be finite" if math.isinf(value) else FILL if column < len(self.names) else "fill it in"
            raise value_error(data, first_row + row, self.columns[column], f"got {value}; {remedy}.")
        return np.where(bad, np.float32(self.missing), block)

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Make a schema of what `as_json` returned; anything else is a `ValueError`."""
        known = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or not known - {"base"} <= set(values) <= known:
            raise ValueError("must have names, log1p, scaling, missing and base, and nothing else")
        return checked_json(cls, json.dumps(values))


def _query_blocks(offsets: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the offsets of blocks of whole queries, of about BLOCK rows each."""
    first = 0
    while first < len(offsets) - 1:
        last = max(int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1, first + 1)
        yield offsets[first : last + 1]
        first = last


def feature_names(data: RankingData) -> tuple[str, ...]:
    """Return the names of the features; nameless ones are called 1, 2, ... as in LETOR files."""
    return data.feature_names or tuple(str(column + 1) for column in range(data.features.shape[1]))


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the names in a row, the first few if there are many."""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def value_error(data: RankingData, row: int, column: str, message: str) -> DataError:
    """Return the error for a value of a document: with its ids where there are any, which say more than its row."""
    if data.query_ids is None or data.document_ids is None:
        return DataError(message, file=data.source, row=row, column=column)
    pair = f"query {data.query_ids[data.query_of_document[row]]}, document {data.document_ids[row]}"
    return DataError(f"{pair}: {message}", file=data.source, column=column)
