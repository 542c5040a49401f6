"""The group-by: a click log of any size becomes tables the size of what was shown.

Two queries do it, as Ibis expressions that other engines can run: one group-by of the rows by period, query, document
and position, and one of the impressions, which returns the sets of clicked documents and checks every impression on
the way. A third fetches the rows of a sample of impressions. The rows are searched for bad ones only if these checks,
or a first look at the narrow columns, show that there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import ibis.expr.types as ir
import pyarrow as pa

from saferank import __version__
from saferank.engine.errors import DataError, UsageError
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.click_log import ClickLog
from saferank.logs.log_queries import (
    interactions_of,
    pattern_counts,
    ranking_counts,
    sampled_rows,
    shown_counts,
    without_unit,
)
from saferank.logs.periods import DAY, Periods, periods_of
from saferank.logs.result_tables import pattern_table, ranking_table, sample_table, shown_table
from saferank.logs.rewards import check_rewards
from saferank.logs.row_checks import (
    BadRows,
    bad_click,
    bad_position,
    bad_rows_error,
    diagnose,
    has_repeated_document,
    how_many,
    not_shown,
    without,
)
from saferank.logs.source import fetch, fetch_row, run_once
from saferank.logs.split import HashSplit, Split

DEFAULT_CUTOFF = 10
"""Ranks that are counted if the log shows as many and no other cutoff is asked for."""
NULL_KEYS = ("null query_id", "null document_id")
"""Seen among the groups that are counted, or among all rows if some are not counted."""
KINDS_WHILE_COUNTING = ("two queries", "repeated position", "repeated document", *NULL_KEYS)
"""Kinds of bad rows that the counting detects, without saying which it is."""

Progress = Callable[[str], object]


def aggregate(
    log: ClickLog,
    *,
    cutoff: int | None = None,
    split: Split | None = None,
    on_bad_rows: str = "error",
    rankings: bool = False,
    progress: Progress | None = None,
) -> AggregatedLog:
    """Count how often each document was shown and clicked at each position, and which were clicked together.

    `cutoff`: how many ranks to count, by default as many as the log shows but at most 10. `on_bad_rows`: `error`
    raises one `DataError` that lists all that is wrong, `drop` leaves it out and says so in the manifest.
    `progress` is called with what is being done.
    """
    if cutoff is not None and cutoff < 1:
        raise UsageError(f"cutoff {cutoff}: must be 1 or more.")
    if on_bad_rows not in ("error", "drop"):
        raise UsageError(f"on_bad_rows '{on_bad_rows}': must be error or drop.")
    tell, table, split = progress or (lambda _: None), log.table, split or HashSplit()
    tell("Looking at the rows")
    extent = _extent(table, cutoff, split)
    if extent.rows == 0:
        raise DataError("has no row; there is nothing to aggregate.", file=log.source.name)
    check_rewards(log)
    counts = None if extent.bad else _count(log, table, cutoff, split, extent, rankings, tell)
    found: list[BadRows] = []
    if counts is None:
        tell("Looking for bad rows")
        found = diagnose(table, {*extent.bad, *KINDS_WHILE_COUNTING})  # all kinds, to be reported at once
        if found and on_bad_rows == "error":
            raise bad_rows_error(found, log.source.name)
        table, rows = without(table, found), extent.rows
        extent = _extent(table, cutoff, split)
        if extent.rows == 0:
            raise DataError(f"has no row left of {rows:,} once the bad ones are dropped.", file=log.source.name)
        counts = _count(log, table, cutoff, split, extent, rankings, tell, checked=True)
    assert counts is not None
    manifest = {
        "saferank": __version__,
        "source": log.source.name,
        "layout": log.layout,
        "columns": log.columns,
        "files": log.source.describe_files(),
        "rows": extent.rows,
        "cutoff": counts.cutoff,
        "clicks_below_cutoff": extent.clicks_below,
        "split": counts.split.describe(),
        "segment": log.segment,
        "unit": log.unit,
        "reward": None if log.reward is None else {"column": log.reward, "most": log.reward_most},
        "period": extent.first_and_last,
        "periods": [] if extent.periods is None else extent.periods.describe(),
        "parts": _sizes(counts.tables),
        "bad_rows": {bad.kind.name: bad.dropped for bad in found},
        "notes": _notes(log, counts, extent),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return AggregatedLog(manifest=manifest, **counts.tables)


@dataclass(frozen=True)
class _Extent:
    """The size of a log, and how many of its rows are bad by themselves."""

    rows: int
    last_position: int
    """The largest that is shown."""
    periods: Periods | None
    """Of a log with timestamps."""
    undated: int
    """Rows without a timestamp, in a log that has some."""
    below: int = 0
    clicks_below: int = 0
    """Rows, and those with a click, below the cutoff."""
    repeated_clicks: int = 0
    """Rows with more than one click."""
    bad: tuple[str, ...] = ()
    """Kinds of bad rows that there are."""

    @property
    def first_and_last(self) -> list[str] | None:
        """The first and the last timestamp, as text."""
        if self.periods is None:
            return None
        moments = (self.periods.first, self.periods.last)
        return [moment.isoformat() if isinstance(moment, datetime) else str(moment) for moment in moments]


def _extent(log: ir.Table, cutoff: int | None, split: Split) -> _Extent:
    """Return the extent as the files' own statistics give it, or by a pass over the rows if these leave a doubt."""
    dated = "timestamp" in log.columns
    names = ("impression_id", "position", "click", *(["timestamp"] if dated else []))
    summaries = {f"{name}_{what}": getattr(log[name], what)() for name in names for what in ("count", "min", "max")}
    found = fetch_row(log.aggregate(rows=log.count(), **summaries))
    rows = found["rows"]
    undated = rows - found["timestamp_count"] if dated else 0
    periods = periods_of(found["timestamp_min"], found["timestamp_max"]) if dated and undated < rows else None
    if rows == 0 or (
        all(found[f"{name}_count"] == rows for name in ("impression_id", "position", "click"))
        and all(log[name].type().is_integer() for name in ("position", "click"))
        and 1 <= found["position_min"] <= found["position_max"] <= (cutoff or DEFAULT_CUTOFF)
        and 0 <= found["click_min"] <= found["click_max"] <= 1
        and not (undated and split.timed)
    ):
        return _Extent(rows, found["position_max"] or 0, periods, undated)
    return _extent_by_rows(log, cutoff or DEFAULT_CUTOFF, split, periods, undated)


def _extent_by_rows(log: ir.Table, cutoff: int, split: Split, periods: Periods | None, undated: int) -> _Extent:
    bad = {
        "null impression_id": log["impression_id"].isnull(),
        "bad position": bad_position(log),
        "bad click": bad_click(log),
        "click on what was not shown": not_shown(log),
        **{kind: log[kind.removeprefix("null ")].isnull() & ~not_shown(log) for kind in NULL_KEYS},
    }
    if split.timed and "timestamp" in log.columns:
        bad["null timestamp"] = log["timestamp"].isnull()
    below = log["position"] > cutoff
    found = fetch_row(
        log.aggregate(
            rows=log.count(),
            last=log["position"].max(),
            below=log.count(where=below),
            clicks_below=log.count(where=below & (log["click"] > 0)),
            repeated_clicks=log.count(where=log["click"] > 1),
            **{kind: log.count(where=wrong) for kind, wrong in bad.items()},
        )
    )
    there = tuple(kind for kind in bad if found[kind])
    last = 0 if "bad position" in there else int(found["last"] or 0)
    counts = {name: found[name] for name in ("below", "clicks_below", "repeated_clicks")}
    return _Extent(found["rows"], last, periods, undated, **counts, bad=there)


@dataclass(frozen=True)
class _Counts:
    """What the queries returned."""

    cutoff: int
    split: Split
    tables: dict[str, pa.Table]
    without_unit: int
    """Impressions, in a log with units."""


def _count(
    log: ClickLog,
    table: ir.Table,
    cutoff: int | None,
    split: Split,
    extent: _Extent,
    rankings: bool,
    tell: Progress,
    *,
    checked: bool = False,
) -> _Counts | None:
    """Run the queries; return None if they find a bad impression, unless the log was checked already."""
    last = extent.last_position
    cutoff = cutoff or min(last, DEFAULT_CUTOFF)
    split = split.fitted(table, log.source.name)
    tell("Looking at every impression")
    periods = extent.periods if extent.periods is not None and extent.periods.count > 1 else None
    tables, alone = {}, 0
    engine = table.get_backend().name
    with run_once(interactions_of(table, split, cutoff, last=last, engine=engine, periods=periods)) as interactions:
        numbers = {kind: interactions.count(where=interactions[kind]) for kind in ("bad", "suspect")}
        within = {"where": interactions["counted"]} if "counted" in interactions.columns else {}
        found = fetch_row(interactions.aggregate(impressions=interactions.count(**within), **numbers))
        if not checked and (
            found["bad"]
            or (found["suspect"] and has_repeated_document(table, interactions.filter(interactions["suspect"])))
        ):
            return None
        if "unit" in interactions.columns:
            alone = fetch_row(without_unit(interactions))["impressions"]
        tell("Counting sets of clicks")
        tables["patterns"] = pattern_table(fetch(pattern_counts(interactions)))
        tell("Counting what was shown and clicked")
        shown = fetch(shown_counts(table, interactions, cutoff))
        if shown["query_id"].null_count or shown["document_id"].null_count:
            return None
        tables["shown_counts"] = shown_table(shown)
        tell("Drawing a sample of impressions")
        sampled = sampled_rows(table, interactions, cutoff, impressions=found["impressions"])
        tables["sample"] = sample_table(fetch(sampled))
        if rankings:
            tell("Counting rankings")
            tables["rankings"] = ranking_table(fetch(ranking_counts(table, interactions, cutoff)))
    return _Counts(cutoff, split, tables, alone)


def _sizes(tables: dict[str, pa.Table]) -> dict[str, dict[str, int]]:
    """Return how much each part holds."""
    sizes = {part: dict.fromkeys(("interactions", "queries", "shown", "clicks"), 0) for part in PARTS}
    of_patterns = (
        tables["patterns"].group_by("part").aggregate([("interactions", "sum"), ("query_id", "count_distinct")])
    )
    for row in of_patterns.to_pylist():
        sizes[row["part"]] |= {"interactions": row["interactions_sum"], "queries": row["query_id_count_distinct"]}
    for row in tables["shown_counts"].group_by("part").aggregate([("shown", "sum"), ("clicked", "sum")]).to_pylist():
        sizes[row["part"]] |= {"shown": row["shown_sum"], "clicks": row["clicked_sum"]}
    return sizes


def _notes(log: ClickLog, counts: _Counts, extent: _Extent) -> list[str]:
    """Return what a reader of the counts should know of how they came to be."""
    notes, periods = [], extent.periods
    if extent.repeated_clicks:
        notes.append(
            f"{how_many(extent.repeated_clicks, 'row')} counted more than one click; each was taken as one click."
        )
    if extent.below:
        notes.append(
            f"{extent.below:,} of {extent.rows:,} rows, with {extent.clicks_below:,} clicks, stood below rank "
            f"{counts.cutoff} and were left out."
        )
    if extent.undated:
        notes.append(
            f"{extent.undated:,} of {extent.rows:,} rows had no timestamp; impressions without any count as "
            "those of the first period."
        )
    if periods is not None and extent.first_and_last and periods.count > 1 and periods.length > DAY:
        first, last = extent.first_and_last
        notes.append(f"The log runs from {first} to {last}, in periods of {periods.length // DAY} days each.")
    if counts.without_unit:
        which = "it" if counts.without_unit == 1 else "each"
        impressions = how_many(counts.without_unit, "impression")
        notes.append(f"{impressions} had no {log.unit}; {which} counts as a unit of its own.")
    return notes
