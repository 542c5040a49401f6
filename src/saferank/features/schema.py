"""Which features a policy reads, and what becomes of them before the scorer sees them."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData, scale_per_query, signed_log1p
from saferank.features.categories import one_hot_names
from saferank.files.large_table import TableWriter, drop_pages, new_table

Scaling = Literal["per-query", "none"]
Missing = float | Literal["error", "indicator"]
LATER = ("categories", "indicators")
"""Fields that the schema of a policy has only where it uses them; older ones have none of them."""
FILL = "fill it in, or say how to treat missing values (fit --missing indicator, or fit --missing 0)"
BLOCK = 1 << 16
"""Rows prepared at a time: features may be a memory map larger than memory."""


@dataclass(frozen=True)
class FeatureSchema:
    """The features of a policy by name, in order, and how raw ones are prepared.

    First a missing value (NaN) is filled with `missing`, or is an error; then, with `log1p`, x becomes
    sign(x) log(1 + |x|), which tames heavy tails; then features are scaled: `per-query` to [0, 1] over the candidates
    of the query (a feature constant there becomes 0), or not at all. A policy that corrects the scores of another
    ranker reads them, as they are, from the column `base`.

    With `missing="indicator"`, a missing value does not take part in the scaling and is 0 after it, and a further
    feature, 1 where a value is missing, belongs to each feature in `indicators`. Features that stand for a value of a
    column of text (see `categories.py`) and indicators are prepared as all others are.
    """

    names: tuple[str, ...]
    log1p: bool = True
    scaling: Scaling = "per-query"
    missing: Missing = "error"
    base: str | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns of text -> the values that are features."""
    indicators: tuple[str, ...] = ()
    """Features that had missing values when the policy was learned."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "indicators", tuple(self.indicators))
        values = {column: tuple(found) for column, found in self.categories.items()}
        object.__setattr__(self, "categories", values)
        if not self.names:
            raise UsageError("a policy needs at least one feature.")
        if twice := [name for place, name in enumerate(self.columns) if name in self.columns[:place]]:
            raise UsageError(f"feature '{twice[0]}' is named twice; name each one once.")
        if self.scaling not in get_args(Scaling):
            raise UsageError(f"scaling '{self.scaling}' is unknown; choose {' or '.join(get_args(Scaling))}.")
        is_number = isinstance(self.missing, float | int) and math.isfinite(self.missing)
        if self.missing not in ("error", "indicator") and not is_number:
            message = "must be 'error', 'indicator', or the number to use instead of NaN"
            raise UsageError(f"missing={self.missing!r}: {message}.")

    @classmethod
    def of(cls, data: RankingData, **settings: Any) -> Self:
        """Return the schema of a policy that learns from these features; nameless ones are called 1, 2, ..."""
        return cls(feature_names(data), **settings)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns that the policy reads: features first, then `base`, if there is one."""
        return self.names if self.base is None else (*self.names, self.base)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns of numbers that new data needs: all but those that are made from others."""
        made = {*one_hot_names(self.categories), *map(indicator_name, self.indicators)}
        return tuple(name for name in self.columns if name not in made)

    def prepare(self, data: RankingData, *, ignore: Collection[str] = ()) -> RankingData:
        """Return the features as the scorer reads them. They are found by name, and may stand in another order.

        A feature that is not there is an error, and so is one that the schema does not know, unless it is one to
        `ignore`: a column that was renamed, or that leaked in, should not go unnoticed. Nameless features must be as
        many as the schema has, in its order. Indicators are made from the features that they belong to, and a value of
        a column of text that the data does not have is 0.
        """
        columns, gaps, absent = self._columns(data, ignore)
        out = new_table(data.documents, len(self.columns))
        for offsets in _query_blocks(data.offsets):
            rows = slice(offsets[0], offsets[-1])
            raw = data.features[rows][:, columns]
            if gaps or absent:
                raw = raw.copy()
                raw[:, gaps] = np.isnan(raw[:, gaps])
                raw[:, absent] = 0.0
            out[rows] = self._filled(data, raw, offsets)
            block = out[rows, : len(self.names)]
            if self.log1p:
                signed_log1p(block, out=block)
            if self.scaling == "per-query":
                scale_per_query(block, offsets - offsets[0], out=block)
        drop_pages(data.features)
        return replace(data, features=out, feature_names=self.columns)

    def _columns(self, data: RankingData, ignore: Collection[str]) -> tuple[slice | list[int], list[int], list[int]]:
        """Return which column of the data each one is made from, and which are indicators of it, or absent."""
        found, width = data.feature_names, data.features.shape[1]
        if found is None and width != len(self.columns):
            message = f"has {width} features, but the policy reads {len(self.columns)}: {listed(self.columns)}."
            raise DataError(message, file=data.source)
        if found is None or found == self.columns:
            return slice(None), [], []
        indicated = {indicator_name(name): name for name in self.indicators}
        values = {*one_hot_names({name: self.categories[name] for name in self.categories if name in data.categories})}
        columns, gaps, absent = [], [], []
        for place, name in enumerate(self.columns):
            made_from = indicated.get(name, name) if name not in found else name
            if made_from not in found and name not in values:
                message = f"the policy needs this feature; there are {listed(found)}."
                raise DataError(message, file=data.source, column=name)
            gaps += [place] if made_from != name else []
            absent += [place] if made_from not in found else []
            columns.append(found.index(made_from) if made_from in found else 0)
        other_values = {
            *one_hot_names({name: data.categories[name] for name in self.categories if name in data.categories})
        }
        for name in found:
            if name not in self.columns and name not in ignore and name not in other_values:
                message = "the policy does not use this feature; leave the column out, or ignore it (--ignore)."
                raise DataError(message, file=data.source, column=name)
        return columns, gaps, absent

    def _filled(self, data: RankingData, block: NDArray[np.float32], offsets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return some rows of the data, whose queries begin at `offsets`, without missing values."""
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
            raise value_error(data, int(offsets[0]) + row, self.columns[column], f"got {value}; {remedy}.")
        if self.missing != "indicator":
            return np.where(bad, np.float32(self.missing), block)
        filled = block.copy()
        if self.scaling == "per-query":  # by the smallest value of the query, which is scaled to 0
            for place in np.flatnonzero(bad.any(axis=0)):
                smallest = np.fmin.reduceat(block[:, place], offsets[:-1] - offsets[0])
                filled[bad[:, place], place] = np.repeat(smallest, np.diff(offsets))[bad[:, place]]
        return np.nan_to_num(filled, copy=False, nan=0.0)

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        values = asdict(self)
        return {name: value for name, value in values.items() if value or name not in LATER}

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Make a schema of what `as_json` returned; anything else is a `ValueError`."""
        known = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or not known - {"base", *LATER} <= set(values) <= known:
            raise ValueError("must have names, log1p, scaling, missing and base, and no unknown fields")
        categories = values.get("categories", {})
        texts = [
            values["names"],
            values.get("indicators", []),
            *(categories.values() if isinstance(categories, dict) else [0]),
        ]
        fits = all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in texts)
        if not (fits and isinstance(values["log1p"], bool) and isinstance(values.get("base"), str | None)):
            raise ValueError(
                "names, indicators and categories must be lists of texts, log1p true or false, base a text"
            )
        return cls(**values)


def indicator_name(name: str) -> str:
    """Return the name of the feature that is 1 where the feature of this name has no value.

    >>> indicator_name("price")
    'price is missing'
    """
    return f"{name} is missing"


def with_indicators(data: RankingData, *, but: Collection[str] = ()) -> tuple[RankingData, tuple[str, ...]]:
    """Return the data with an indicator of each feature that has missing values, and the names of these features.

    Those in `but` get none: they are no features.
    """
    names, missing = feature_names(data), np.zeros(data.features.shape[1], np.bool_)
    blocks = [slice(first, first + BLOCK) for first in range(0, data.documents, BLOCK)]
    for rows in blocks:
        missing |= np.isnan(data.features[rows]).any(axis=0)
    found = [place for place in np.flatnonzero(missing).tolist() if names[place] not in but]
    if not found:
        return data, ()
    writer = TableWriter(len(names) + len(found))
    for rows in blocks:
        raw = data.features[rows]
        writer.append(np.hstack([raw, np.isnan(raw[:, found]).astype(np.float32)]))
    chosen = tuple(names[place] for place in found)
    named = (*names, *map(indicator_name, chosen))
    return replace(data, features=writer.finish(), feature_names=named, check_finite=False), chosen


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
