"""Which features a policy reads, and what becomes of them before the scorer sees them."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.features.columns import FILL
from saferank.files.json_format import checked_json

Scaling = Literal["per-query", "none"]
Missing = float | Literal["error"]
BLOCK = 1 << 16
"""Rows checked at a time: features may be a memory map larger than memory."""


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
        chosen = data.features[:, self._columns(data, ignore)]
        filled = self._filled(data, chosen)
        features = filled if self.base is None else filled[:, :-1]
        prepared = replace(data, features=features, feature_names=self.names)
        if self.log1p:
            prepared = prepared.log1p()
        if self.scaling == "per-query":
            prepared = prepared.scaled_per_query(in_place=self.log1p)
        if self.base is None:
            return prepared
        return replace(
            prepared, features=np.column_stack([prepared.features, filled[:, -1]]), feature_names=self.columns
        )

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

    def _filled(self, data: RankingData, features: NDArray[np.float32]) -> NDArray[np.float32]:
        fill = None if self.missing == "error" else np.float32(self.missing)
        out = features
        for start in range(0, len(features), BLOCK):
            block = features[start : start + BLOCK]
            bad = ~np.isfinite(block)
            if not bad.any():
                continue
            wrong = bad if fill is None else np.isinf(block)
            if self.base is not None:
                wrong[:, -1] = bad[:, -1]  # a score that is missing is not filled
            if wrong.any():
                row, column = (int(index) for index in np.argwhere(wrong)[0])
                value = float(block[row, column])
                remedy = "must be finite" if math.isinf(value) else FILL if column < len(self.names) else "fill it in"
                message = f"got {value}; {remedy}."
                raise value_error(data, start + row, self.columns[column], message)
            if out is features:
                out = features.copy()
            out[start : start + BLOCK][bad] = fill
        return out

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
