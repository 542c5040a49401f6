"""The group-by: a click log of any size becomes tables the size of what was shown.

Two queries do it, as Ibis expressions that other engines can run: one group-by of the rows by period, query, document
and position, and one of the impressions, which brings the sets of clicked documents and checks every impression on the
way. A third fetches the rows of a sample of impressions. Bad rows are looked for in detail only if these checks, or a
glance at the narrow columns, find that there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saferank import __version__
from saferank.engine.errors import DataError, UsageError
from saferank.logs.aggregated_log import PARTS, SCHEMAS, AggregatedLog
from saferank.logs.click_log import ClickLog
from saferank.logs.log_queries import (
    POSITION_DIGITS,
    impression_counts,
    interactions_of,
    pattern_counts,
    ranking_counts,
    sampled_rows,
    without_unit,
)
from saferank.logs.periods import DAY, Periods, periods_of
from saferank.logs.rewards import check_rewards
from saferank.logs.row_checks import (
    BadRows,
    bad_click,
    bad_position,
    bad_rows_error,
    diagnose,
    has_repeated_document,
    not_shown,
    without,
)
from saferank.logs.source import fetch, run_once
from saferank.logs.split import HashSplit, Split, TimeSplit

DEFAULT_CUTOFF = 10
"""Ranks that are counted if the log shows as many and no other cutoff is asked for."""
NULL_KEYS = ("null query_id", "null document_id")
"""Seen among the groups that are counted, or among all rows if some are not counted."""
KINDS_WHILE_COUNTING = ("two queries", "repeated position", "repeated document", *NULL_KEYS)
"""What the counting itself finds, but not of which kind."""


@dataclass(frozen=True)
class Extent:
    """What a glance at a log tells: its size, and how many rows are bad by themselves."""

    rows: int
    last_position: int
    """The largest that is shown."""
    beyond: int
    clicks_beyond: int
    """Rows below the cutoff."""
    counts: int
    """Rows with more than one click."""
    bad: dict[str, int]
    """Kind -> rows, of those that have any."""
    periods: Periods | None
    """Of a log with timestamps."""
    undated: int = 0
    """Rows without a timestamp, in a log that has some."""


def aggregate(
    log: ClickLog,
    *,
    cutoff: int | None = None,
    split: Split | None = None,
    on_bad_rows: str = "error",
    rankings: bool = False,
    progress: Callable[[str], object] | None = None,
) -> AggregatedLog:
    """Count a log: how often each document was shown and clicked at each position, and which ones together.

    `cutoff`: how many ranks to count, by default as many as the log shows but at most 10. `on_bad_rows`: `error`
    raises one `DataError` that tells all that is wrong, `drop` leaves it out and says so in the manifest.
    `progress` is told what is being done.
    """
    if cutoff is not None and cutoff < 1:
        raise UsageError(f"cutoff {cutoff}: must be 1 or more.")
    if on_bad_rows not in ("error", "drop"):
        raise UsageError(f"on_bad_rows '{on_bad_rows}': must be error or drop.")
    tell = progress or (lambda _: None)
    name, table = log.source.name, log.table
    chosen = split or HashSplit()
    tell("Looking at the rows")
    extent = _extent(table, cutoff, chosen)
    if extent.rows == 0:
        raise DataError("has no row; there is nothing to aggregate.", file=name)
    check_rewards(log)
    counts = None if extent.bad else _count(table, cutoff, chosen, extent, name, rankings, tell)
    found: list[BadRows] = []
    if counts is None:
        tell("Looking for bad rows")
        found = diagnose(table, {*extent.bad, *KINDS_WHILE_COUNTING})  # all is to be told at once
        if found and on_bad_rows == "error":
            raise bad_rows_error(found, name)
        table, rows = without(table, found), extent.rows
        extent = _extent(table, cutoff, chosen)
        if extent.rows == 0:
            raise DataError(f"has no row left of {rows:,} once the bad ones are dropped.", file=name)
        counts = _count(table, cutoff, chosen, extent, name, rankings, tell, checked=True)
    assert counts is not None
    return _aggregated(log, counts, extent, found)


def _extent(log: ir.Table, cutoff: int | None, split: Split) -> Extent:
    """Look at the narrow columns: first at what statistics of the files tell, then at rows if these leave a doubt."""
    dated = [log["timestamp"]] if "timestamp" in log.columns else []
    columns = [log["impression_id"], log["position"], log["click"], *dated]
    seen = {"rows": log.count()}
    for column in columns:
        name = column.get_name()
        seen |= {f"{name}_count": column.count(), f"{name}_min": column.min(), f"{name}_max": column.max()}
    found = fetch(log.aggregate(**seen)).to_pylist()[0]
    rows = found["rows"]
    undated = rows - found["timestamp_count"] if dated else 0
    periods = periods_of(found["timestamp_min"], found["timestamp_max"]) if dated and undated < rows else None
    whole = all(log[name].type().is_integer() and found[f"{name}_count"] == rows for name in ("position", "click"))
    if rows == 0 or (
        whole
        and found["impression_id_count"] == rows
        and found["position_min"] >= 1
        and found["position_max"] <= (cutoff or DEFAULT_CUTOFF)
        and 0 <= found["click_min"] <= found["click_max"] <= 1
        and (not isinstance(split, TimeSplit) or not dated or found["timestamp_count"] == rows)
    ):
        return Extent(rows, found["position_max"] or 0, 0, 0, 0, {}, periods, undated)
    return _extent_by_rows(log, cutoff, split, periods, undated)


def _extent_by_rows(log: ir.Table, cutoff: int | None, split: Split, periods: Periods | None, undated: int) -> Extent:
    position = log["position"]
    bad = {
        "null impression_id": log["impression_id"].isnull(),
        "bad position": bad_position(log),
        "bad click": bad_click(log),
        "click on what was not shown": not_shown(log),
        **{kind: log[kind.removeprefix("null ")].isnull() & ~not_shown(log) for kind in NULL_KEYS},
    }
    if isinstance(split, TimeSplit) and "timestamp" in log.columns:
        bad["null timestamp"] = log["timestamp"].isnull()
    seen = log.aggregate(
        rows=log.count(),
        last=position.max(),
        beyond=log.count(where=position > (cutoff or DEFAULT_CUTOFF)),
        clicks_beyond=log.count(where=(position > (cutoff or DEFAULT_CUTOFF)) & (log["click"] > 0)),
        counts=log.count(where=log["click"] > 1),
        **{kind: log.count(where=wrong) for kind, wrong in bad.items()},
    )
    found = fetch(seen).to_pylist()[0]
    wrong = {kind: found[kind] for kind in bad if found[kind]}
    last = 0 if "bad position" in wrong else int(found["last"] or 0)
    return Extent(
        found["rows"], last, found["beyond"], found["clicks_beyond"], found["counts"], wrong, periods, undated
    )


# From the engine's tables to ours.


@dataclass(frozen=True)
class _Counts:
    """What the queries brought."""

    cutoff: int
    split: Split
    tables: dict[str, pa.Table]
    without_unit: int
    """Impressions, in a log with units."""

    def sizes(self) -> dict[str, dict[str, int]]:
        """Return how much each part holds."""
        sums = [("interactions", "sum"), ("query_id", "count_distinct")]
        patterns = self.tables["patterns"].group_by("part").aggregate(sums).to_pylist()
        shown = (
            self.tables["impressions"].group_by("part").aggregate([("shown", "sum"), ("clicked", "sum")]).to_pylist()
        )
        found = {row["part"]: row for row in patterns}
        for row in shown:
            found[row["part"]] |= row
        columns = ("interactions_sum", "query_id_count_distinct", "shown_sum", "clicked_sum")
        names = ("interactions", "queries", "shown", "clicks")
        return {
            part: {name: found.get(part, {}).get(column, 0) for name, column in zip(names, columns, strict=True)}
            for part in PARTS
        }


def _count(
    log: ir.Table,
    cutoff: int | None,
    split: Split,
    extent: Extent,
    source: str,
    rankings: bool,
    tell: Callable[[str], object],
    *,
    checked: bool = False,
) -> _Counts | None:
    """Run the queries; return None if they find a bad impression, unless the log was checked already."""
    last = extent.last_position
    cutoff = cutoff or min(last, DEFAULT_CUTOFF)
    split = split.fitted(log, source)
    tell("Looking at every impression")
    engine = log.get_backend().name
    periods = extent.periods if extent.periods is not None and extent.periods.count > 1 else None
    tables, alone = {}, 0
    with run_once(interactions_of(log, split, cutoff, last=last, engine=engine, periods=periods)) as interactions:
        found = _look(interactions)
        if not checked and _any_bad(log, interactions, found):
            return None
        if "unit" in interactions.columns:
            alone = fetch(without_unit(interactions))["impressions"][0].as_py()
        tell("Counting sets of clicks")
        tables["patterns"] = _patterns(fetch(pattern_counts(interactions)))
        tell("Counting what was shown and clicked")
        shown = fetch(impression_counts(log, interactions, cutoff))
        if shown["query_id"].null_count or shown["document_id"].null_count:
            return None
        tables["impressions"] = _impressions(shown)
        tell("Drawing a sample of impressions")
        tables["sample"] = _sample(fetch(sampled_rows(log, interactions, cutoff, impressions=found["impressions"])))
        if rankings:
            tell("Counting rankings")
            tables["rankings"] = _rankings(fetch(ranking_counts(log, interactions, cutoff)))
    return _Counts(cutoff, split, tables, alone)


def _look(interactions: ir.Table) -> dict[str, int]:
    """Return how many impressions are counted, how many are bad and how many are suspects."""
    within = {"where": interactions["counted"]} if "counted" in interactions.columns else {}
    kinds = {kind: interactions.count(where=interactions[kind]) for kind in ("bad", "suspect")}
    found: dict[str, int] = fetch(
        interactions.aggregate(impressions=interactions.count(**within), **kinds)
    ).to_pylist()[0]
    return found


def _any_bad(log: ir.Table, interactions: ir.Table, found: dict[str, int]) -> bool:
    """Whether anything is wrong with any impression, as far as can be told without looking for nulls."""
    suspects = interactions.filter(interactions["suspect"])
    return found["bad"] > 0 or (found["suspect"] > 0 and has_repeated_document(log, suspects))


def _impressions(wide: pa.Table) -> pa.Table:
    """Turn a column for each part into rows for each part."""
    keys = [
        _column(wide, "period", SCHEMAS["impressions"]),
        wide["query_id"].cast(pa.string()),
        wide["document_id"].cast(pa.string()),
        wide["position"],
    ]

    def rows(place: int) -> pa.Table:
        shown, clicked = wide[f"shown_{place}"], wide[f"clicked_{place}"]
        part = pa.repeat(pa.scalar(PARTS[place]), len(wide))
        table = pa.table([part, *keys, shown, clicked], schema=SCHEMAS["impressions"])
        return table.filter(pc.greater(shown, 0))

    with ThreadPoolExecutor() as threads:
        return pa.concat_tables(threads.map(rows, range(len(PARTS))))


def _patterns(counts: pa.Table) -> pa.Table:
    counts = counts.rename_columns({"query": "query_id"})
    counts = counts.set_column(counts.column_names.index("part"), "part", _names(counts["part"]))
    schema = SCHEMAS["patterns"]
    return pa.table([_column(counts, name, schema) for name in schema.names], schema=schema)


def _sample(rows: pa.Table) -> pa.Table:
    """Number the impressions in the order of their ids, by which the rows are sorted."""
    first = pc.not_equal(rows["impression_id"][1:], rows["impression_id"][:-1]).to_numpy()
    number = np.concatenate([[0], np.cumsum(first)]).astype(np.int64)[: len(rows)]
    rows = rows.append_column("impression", pa.array(number))
    rows = rows.set_column(rows.column_names.index("part"), "part", _names(rows["part"]))
    schema = SCHEMAS["sample"]
    return pa.table([_column(rows, name, schema) for name in schema.names], schema=schema)


def _column(table: pa.Table, name: str, schema: pa.Schema) -> pa.ChunkedArray | pa.Array:
    """Return a column as the schema wants it; if there is none, 0 for the period and null for another."""
    kind = schema.field(name).type
    if name == "rewards" and name in table.column_names:
        return pc.coalesce(table[name].cast(kind), pa.scalar([], kind))
    if name in table.column_names:
        return table[name].cast(kind)
    return pa.repeat(pa.scalar(0, kind), len(table)) if name == "period" else pa.nulls(len(table), kind)


def _rankings(counts: pa.Table) -> pa.Table:
    ranking = _placed(counts["ranking"].combine_chunks())
    columns = [
        _names(counts["part"]),
        counts["query"].cast(pa.string()),
        ranking,
        counts["clicked"].cast(pa.list_(pa.string())),
    ]
    return pa.table([*columns, counts["interactions"]], schema=SCHEMAS["rankings"])


def _placed(lists: pa.Array) -> pa.Array:
    """Put each document at the place that the digits before it tell; where nothing was shown, there is a null."""
    flat, starts = lists.flatten(), _offsets(lists).to_numpy()
    position = pc.utf8_slice_codeunits(flat, 0, POSITION_DIGITS).cast(pa.int64()).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(position[starts[1:] - 1])])  # the last of each list stands lowest
    place = np.full(offsets[-1], -1)
    place[np.repeat(offsets[:-1], np.diff(starts)) + position - 1] = np.arange(len(position))
    documents = pc.utf8_slice_codeunits(flat, POSITION_DIGITS).take(pa.array(place, mask=place < 0))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), documents)


def _names(part: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.take(pa.array(PARTS), part)


def _offsets(lists: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _aggregated(log: ClickLog, counts: _Counts, extent: Extent, found: list[BadRows]) -> AggregatedLog:
    notes, periods = [], extent.periods
    times = None if periods is None else [_iso(periods.first), _iso(periods.last)]
    if extent.counts:
        rows = f"{extent.counts:,} row{'' if extent.counts == 1 else 's'}"
        notes.append(f"{rows} counted more than one click; each was taken as one click.")
    if extent.beyond:
        notes.append(
            f"{extent.beyond:,} of {extent.rows:,} rows, with {extent.clicks_beyond:,} clicks, stood below rank "
            f"{counts.cutoff} and were left out."
        )
    if extent.undated:
        notes.append(
            f"{extent.undated:,} of {extent.rows:,} rows had no timestamp; impressions without any count as "
            "those of the first period."
        )
    if periods is not None and times is not None and periods.count > 1 and periods.length > DAY:
        notes.append(f"The log runs from {times[0]} to {times[1]}, in periods of {periods.length // DAY} days each.")
    if counts.without_unit:
        one = counts.without_unit == 1
        impressions = f"{counts.without_unit:,} impression{'' if one else 's'}"
        notes.append(f"{impressions} had no {log.unit}; {'it' if one else 'each'} counts as a unit of its own.")
    manifest: dict[str, Any] = {
        "saferank": __version__,
        "source": log.source.name,
        "layout": log.layout,
        "columns": log.columns,
        "files": log.source.describe_files(),
        "rows": extent.rows,
        "cutoff": counts.cutoff,
        "clicks_below_cutoff": extent.clicks_beyond,
        "split": counts.split.describe(),
        "segment": log.segment,
        "unit": log.unit,
        "reward": None if log.reward is None else {"column": log.reward, "most": log.reward_most},
        "period": times,
        "periods": [] if periods is None else periods.describe(),
        "parts": counts.sizes(),
        "bad_rows": {bad.kind.name: bad.dropped for bad in found},
        "notes": notes,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return AggregatedLog(manifest=manifest, **counts.tables)


def _iso(moment: Any) -> str:
    return moment.isoformat() if isinstance(moment, datetime) else str(moment)
