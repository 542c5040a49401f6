"""Logs of single impressions as arrays, and the tables that aggregating them gives, without any SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank.logs.aggregated_log import PARTS, AggregatedLog
from tests.log_tables import log_table

if TYPE_CHECKING:
    from tests.shops import Shop

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

START = 1_767_571_200
"""The first second of every log: 2026-01-05, midnight UTC."""
DAY, HOUR = 86_400, 3_600
SAMPLED = 50_000


@dataclass(frozen=True, eq=False)
class ShopLog:
    """Single impressions, in the order of time."""

    shop: Shop
    second: Ints
    """Since the first midnight."""
    query: Ints
    unit: Ints
    ranking: Ints
    """Document numbers within the query, of (impression, rank)."""
    clicks: NDArray[np.bool_]

    @property
    def day(self) -> Ints:
        return self.second // DAY

    @property
    def slot(self) -> Ints:
        return self.second * self.shop.per_day // DAY

    @property
    def units(self) -> int:
        return int(self.unit.max()) + 1

    @property
    def rows(self) -> Ints:
        """Rows of `Shop.data` that were shown, of (impression, rank)."""
        return self.query[:, None] * self.shop.documents + self.ranking

    @cached_property
    def wanted(self) -> Array:
        """Relevance of what was shown, of (impression, rank)."""
        return self.shop.relevance[self.slot[:, None], self.query[:, None], self.ranking]

    def without_most_shown(self) -> NDArray[np.bool_]:
        """Return which rows of `Shop.data` are left without the most shown document of every second query."""
        shape = self.shop.queries, self.shop.documents
        shown = np.bincount(self.rows.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
        kept = np.ones(shape, np.bool_)
        kept[np.arange(0, shape[0], 2), shown[::2].argmax(axis=1)] = False
        return kept.ravel()

    def table(self) -> pa.Table:
        """One row per shown document, as a raw log holds it."""
        impressions, ranks = self.ranking.shape
        impression = np.repeat(np.arange(impressions), ranks)
        return pa.table(
            {
                "impression_id": pa.array(impression),
                "timestamp": pa.array(START + self.second[impression]).cast(pa.timestamp("s")),
                "user_id": _taken(_unit_ids(self.units), self.unit[impression]),
                "query_id": _taken(self.shop.query_ids, self.query[impression]),
                "document_id": _taken(self.shop.document_ids, self.rows.ravel()),
                "position": pa.array(np.tile(np.arange(1, ranks + 1, dtype=np.int32), impressions)),
                "click": pa.array(self.clicks.ravel().astype(np.int8)),
            }
        )

    def aggregated(
        self,
        rng: np.random.Generator | int,
        *,
        shares: tuple[float, ...] = (0.6, 0.2, 0.2),
        split: Literal["impression", "query", "unit"] = "impression",
        units: bool = False,
        timestamps: bool = True,
        rankings: bool = False,
        groups: Mapping[str, Ints] | None = None,
    ) -> AggregatedLog:
        """Return what aggregating `table` gives, with parts drawn at random by impression, query or unit.

        `groups`: a column's name -> the number of its value in each impression.
        """
        rng = np.random.default_rng(rng)
        impressions, ranks = self.ranking.shape
        shop, owner = self.shop, {"impression": np.arange(impressions), "query": self.query, "unit": self.unit}[split]
        part = np.searchsorted(np.cumsum(shares)[:-1], rng.random(int(owner.max()) + 1), side="right")[owner]
        length = DAY if shop.days >= 3 else HOUR
        period = (self.second // length - self.second[0] // length) * timestamps
        hour = pa.array(self.second // HOUR % 24) if timestamps and length == DAY else pa.nulls(impressions, pa.int32())
        mask = np.where(self.clicks, np.int64(1) << self.ranking, 0).sum(axis=1)
        unit_ids = _unit_ids(self.units)

        def unit_of(chosen: Ints) -> pa.Array:
            return _taken(unit_ids, self.unit[chosen]) if units else pa.nulls(len(chosen), pa.string())

        columns = [part[:, None], period[:, None], self.rows, np.arange(ranks)[None, :]]
        first, counts, group = _grouped(*(np.broadcast_to(column, self.ranking.shape).ravel() for column in columns))
        shown, rank = first // ranks, first % ranks
        tables: dict[str, dict[str, Any]] = {
            "shown_counts": {
                "part": _taken(PARTS, part[shown]), "period": period[shown],
                "query_id": _taken(shop.query_ids, self.query[shown]),
                "document_id": _taken(shop.document_ids, self.rows.ravel()[first]), "position": rank + 1,
                "shown": counts, "clicked": np.bincount(group, self.clicks.ravel()).astype(np.int64),
            }
        }  # fmt: skip
        seen, counts, _ = _grouped(part, period, self.unit if units else np.zeros_like(part), self.query, mask)
        tables["patterns"] = {
            "part": _taken(PARTS, part[seen]), "period": period[seen], "unit": unit_of(seen),
            "query_id": _taken(shop.query_ids, self.query[seen]), "clicked": self._clicked(seen, mask),
            "interactions": counts,
        }  # fmt: skip
        if rankings:
            code = self.ranking @ shop.documents ** np.arange(ranks)
            seen, counts, _ = _grouped(part, self.query, code, mask)
            placed = _taken(shop.document_ids, self.rows[seen].ravel())
            tables["rankings"] = {
                "part": _taken(PARTS, part[seen]), "query_id": _taken(shop.query_ids, self.query[seen]),
                "ranking": pa.ListArray.from_arrays(pa.array(np.arange(len(seen) + 1) * ranks, pa.int32()), placed),
                "clicked": self._clicked(seen, mask), "interactions": counts,
            }  # fmt: skip
        drawn = np.sort(rng.permutation(impressions)[:SAMPLED])
        row = np.repeat(drawn, ranks)
        tables["sample"] = {
            "part": _taken(PARTS, part[row]), "period": period[row], "hour": hour.take(pa.array(row)),
            "moment": self.second[row] if timestamps else pa.nulls(len(row), pa.int32()),
            "unit": unit_of(row), "impression": np.repeat(np.arange(len(drawn)), ranks),
            "query_id": _taken(shop.query_ids, self.query[row]),
            "document_id": _taken(shop.document_ids, self.rows[drawn].ravel()),
            "position": np.tile(np.arange(1, ranks + 1), len(drawn)),
            "click": self.clicks[drawn].ravel().astype(np.int8),
        }  # fmt: skip
        if groups:
            tables["sample"]["groups"] = np.stack([*groups.values()], axis=1)[row].tolist()
        made = {name: log_table(name, columns) for name, columns in tables.items()}
        moments = _periods(self.second, length) if timestamps else []
        manifest: dict[str, Any] = {
            "source": "shop", "layout": "long", "columns": {}, "files": [], "rows": self.ranking.size,
            "cutoff": ranks, "segment": None, "reward": None,
            "split": {"by": "hash" if split == "impression" else split, "seed": 0, "shares": list(shares)},
            "unit": "user_id" if units else None, "period": [moments[0][0], moments[-1][1]] if moments else None,
            "periods": moments, "bad_rows": {}, "notes": [], "groups": list(groups or {}),
            "parts": {
                name: {
                    "interactions": int((part == place).sum()),
                    "queries": len(np.unique(self.query[part == place])),
                    "shown": int((part == place).sum()) * ranks,
                    "clicks": int(self.clicks[part == place].sum()),
                }
                for place, name in enumerate(PARTS)
            },
        }  # fmt: skip
        return AggregatedLog(manifest=manifest, **made)

    def _clicked(self, impressions: Ints, mask: Ints) -> pa.Array:
        """Return the ids of the documents clicked in each impression, sorted."""
        bits = (mask[impressions, None] >> np.arange(self.shop.documents)) & 1
        row, document = np.nonzero(bits)
        ids = _taken(self.shop.document_ids, self.query[impressions][row] * self.shop.documents + document)
        offsets = np.concatenate([[0], np.cumsum(bits.sum(axis=1))])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids)


def _grouped(*keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the first row of each distinct combination of keys, its number of rows, and the group of each row."""
    group = np.zeros(len(keys[0]), np.int64)
    first = counts = group
    for key in keys:
        values, code = np.unique(key, return_inverse=True)
        _, first, group, counts = np.unique(
            group * len(values) + code, return_index=True, return_inverse=True, return_counts=True
        )
    return first, counts, group


def _taken(names: Any, places: Ints) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(places))


def _unit_ids(units: int) -> list[str]:
    return [f"u{unit:06d}" for unit in range(units)]


def _periods(second: Ints, length: int) -> list[list[str]]:
    """Return the first and last moment of each period: calendar days or clock hours, within those of the log."""
    begins = np.arange(second[0] // length + 1, second[-1] // length + 1) * length
    pairs = zip([second[0], *begins], [*(begins - 1), second[-1]], strict=True)
    return [[datetime.fromtimestamp(START + int(at), UTC).replace(tzinfo=None).isoformat() for at in p] for p in pairs]
