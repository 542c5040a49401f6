"""The group-by: a click log of any size becomes tables the size of what was shown.

Two queries do it, as Ibis expressions that other engines can run: one group-by of the rows by period, query, document
and position, and one of the impressions, which returns the sets of clicked documents and checks every impression on
the way. A third fetches the rows of a sample of impressions. The rows are searched for bad ones only if these checks,
or a first look at the narrow columns, show that there are any.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.compute as pc

from saferank import __version__
from saferank.engine.errors import DataError, UsageError
from saferank.logs import log_queries
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.click_log import ClickLog
from saferank.logs.content import content_of
from saferank.logs.periods import DAY, Periods, moment_text, periods_of
from saferank.logs.rewards import check_rewards
from saferank.logs.row_checks import (
    BadRows,
    bad_rows_error,
    diagnose,
    has_repeated_document,
    how_many,
    without,
    wrong_rows,
)
from saferank.logs.run_query import fetch_row, fetch_sorted, run_once
from saferank.logs.segments import check_segments
from saferank.logs.split import HashSplit, Split

DEFAULT_CUTOFF = 10
"""Ranks that are counted if the log shows as many and no other cutoff is asked for."""
KINDS_AT_ONCE = ("null impression_id", "bad position", "bad click", "click on what was not shown")
"""Kinds of bad rows that a first look at the narrow columns counts."""
KINDS_WHILE_COUNTING = ("null query_id", "null document_id", "two queries", "repeated position", "repeated document")
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

    `cutoff`: how many ranks to count, by default as many as the log shows, but at most 10. `on_bad_rows`: `error`
    raises one `DataError` that lists all bad rows, `drop` leaves them out and records this in the manifest.
    `progress` is called with each step.
    """
    if cutoff is not None and cutoff < 1:
        raise UsageError(f"cutoff {cutoff}: must be 1 or more.")
    if on_bad_rows not in ("error", "drop"):
        raise UsageError(f"on_bad_rows '{on_bad_rows}': must be error or drop.")
    tell, table, split = progress or (lambda _: None), log.table, split or HashSplit()
    tell("Looking at the rows")
    extent = _extent(table, cutoff, split)
    if extent.rows == 0:
        raise DataError("has no rows; there is nothing to aggregate.", file=log.source.name)
    check_rewards(table, log.asked.get("reward"), log.reward_most, log.source.name)
    check_segments(table, log.asked.get("segment"), log.source.name)
    if not extent.bad and (counted := _count(log, table, cutoff, split, extent, rankings, tell)) is not None:
        return counted
    tell("Looking for bad rows")
    found = diagnose(table, {*extent.bad, *KINDS_WHILE_COUNTING})  # all kinds, to be reported at once
    if found and on_bad_rows == "error":
        raise bad_rows_error(found, log.source.name, log.columns)
    table, rows = without(table, found), extent.rows
    extent = _extent(table, cutoff, split)
    if extent.rows == 0:
        raise DataError(f"has no rows left: all {rows:,} are bad.", file=log.source.name)
    counted = _count(log, table, cutoff, split, extent, rankings, tell, dropped=found)
    assert counted is not None
    return counted


@dataclass(frozen=True)
class _Extent:
    """The size of a log, and how many of its rows are bad by themselves."""

    rows: int
    last_position: int  # the largest that is shown
    below: int  # rows below the cutoff
    clicks_below: int  # and those of them with a click
    undated: int  # rows without a timestamp, in a log that has some
    periods: Periods | None  # of a log with timestamps
    bad: tuple[str, ...]  # kinds of bad rows that there are


def _extent(log: ir.Table, cutoff: int | None, split: Split) -> _Extent:
    dated = "timestamp" in log.columns
    below = log["position"] > (cutoff or DEFAULT_CUTOFF)
    counted = {
        "rows": log.count(),
        "below": log.count(where=below),
        "clicks_below": log.count(where=below & (log["click"] > 0)),
        "undated": log.count(where=log["timestamp"].isnull() if dated else False),
    }
    most = {"last": log["position"].max()}
    if dated:
        most |= {"begin": log["timestamp"].min(), "end": log["timestamp"].max()}
    wrong = wrong_rows(log)
    kinds = {kind: log.count(where=wrong[kind]) for kind in KINDS_AT_ONCE}
    if dated and split.timed:
        kinds["null timestamp"] = counted["undated"]
    found = fetch_row(log.aggregate(**counted, **most, **kinds))
    bad = tuple(kind for kind in kinds if found[kind])
    return _Extent(
        last_position=0 if "bad position" in bad else int(found["last"] or 0),
        periods=periods_of(found["begin"], found["end"]) if dated and found["undated"] < found["rows"] else None,
        bad=bad,
        **{name: found[name] for name in counted},
    )


def _count(
    log: ClickLog,
    table: ir.Table,
    cutoff: int | None,
    split: Split,
    extent: _Extent,
    rankings: bool,
    tell: Progress,
    *,
    dropped: list[BadRows] | None = None,
) -> AggregatedLog | None:
    """Run the queries; return None for a bad impression, unless the log was checked and the bad ones `dropped`."""
    last = extent.last_position
    cutoff = cutoff or min(last, DEFAULT_CUTOFF)
    split = split.fitted(table, log.source.name)
    tell("Looking at every impression")
    periods = extent.periods if extent.periods is not None and extent.periods.count > 1 else None
    tables, alone, engine = {}, 0, table.get_backend().name
    interactions = log_queries.interactions_of(table, split, cutoff, last=last, engine=engine, periods=periods)
    with run_once(interactions) as interactions, ThreadPoolExecutor(1) as beside:
        numbers = {kind: interactions.count(where=interactions[kind]) for kind in ("bad", "suspect")}
        within = {"where": interactions["counted"]} if "counted" in interactions.columns else {}
        found = fetch_row(interactions.aggregate(impressions=interactions.count(**within), **numbers))
        suspects = interactions.filter(interactions["suspect"])
        if dropped is None and (found["bad"] or (found["suspect"] and has_repeated_document(table, suspects))):
            return None
        if "unit" in interactions.columns:
            alone = fetch_row(log_queries.without_unit(interactions))["impressions"]
        tell("Counting sets of clicks")
        counts = log_queries.pattern_counts(interactions)
        tables["patterns"] = log_queries.conformed(fetch_sorted(counts, log_queries.PATTERN), "patterns")
        content = [beside.submit(content_of, "patterns", tables["patterns"])]  # while users have their own names
        tell("Counting what was shown and clicked")
        counts = log_queries.shown_counts(table, interactions, cutoff)
        tables["shown_counts"] = log_queries.shown_table(fetch_sorted(counts, log_queries.SHOWN))
        content.append(beside.submit(content_of, "shown_counts", tables["shown_counts"]))
        tell("Drawing a sample of impressions")
        sampled = log_queries.sampled_rows(table, interactions, cutoff, impressions=found["impressions"], engine=engine)
        rows = fetch_sorted(sampled, ("impression_id", "position"))
        tables["sample"], groups, untested = log_queries.sample_table(rows, log.groups)
        content.append(beside.submit(content_of, "sample", tables["sample"]))
        if rankings:
            tell("Counting rankings")
            counts = log_queries.ranking_counts(table, interactions, cutoff)
            tables["rankings"] = log_queries.ranking_table(fetch_sorted(counts, log_queries.RANKING))
    tables |= _without_names(tables)
    moments = [] if extent.periods is None else extent.periods.describe()
    manifest = {
        "saferank": __version__,
        "source": log.source.name,
        "layout": log.layout,
        "columns": log.columns,
        "other_columns": list(log.other_columns),
        "id_types": {name: str(table[name].type()) for name in ("query_id", "document_id")},
        "files": log.source.describe_files(),
        "content": "-".join(one.result() for one in content),
        "rows": extent.rows,
        "cutoff": cutoff,
        "clicks_below_cutoff": extent.clicks_below,
        "split": split.describe(),
        "segment": log.asked.get("segment"),
        "unit": log.asked.get("unit"),
        "groups": groups,
        "untested_groups": untested,
        "reward": {"column": log.asked["reward"], "most": log.reward_most} if "reward" in log.asked else None,
        "period": [str(moments[0][0]), str(moments[-1][1])] if moments else None,
        "periods": moments,
        "parts": _sizes(tables),
        "bad_rows": {bad.kind: bad.dropped for bad in dropped or ()},
        "notes": _notes(log, extent, cutoff, alone, moments),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return AggregatedLog(manifest=manifest, **tables)


def _without_names(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables that have units, with numbers for the ids of users or sessions: which is which is not kept."""
    units, numbered = tables["patterns"]["unit"].unique().drop_null(), {}
    for name in ("patterns", "sample"):
        number = pc.index_in(tables[name]["unit"], value_set=units).cast(pa.string())
        numbered[name] = tables[name].set_column(tables[name].schema.get_field_index("unit"), "unit", number)
    return numbered


def _sizes(tables: dict[str, pa.Table]) -> dict[str, dict[str, int]]:
    """Return how much each part holds."""
    sizes = {part: dict.fromkeys(("interactions", "queries", "shown", "clicks"), 0) for part in PARTS}
    patterns, shown = (tables[name].group_by("part") for name in ("patterns", "shown_counts"))
    for row in patterns.aggregate([("interactions", "sum"), ("query_id", "count_distinct")]).to_pylist():
        sizes[row["part"]] |= {"interactions": row["interactions_sum"], "queries": row["query_id_count_distinct"]}
    for row in shown.aggregate([("shown", "sum"), ("clicked", "sum")]).to_pylist():
        sizes[row["part"]] |= {"shown": row["shown_sum"], "clicks": row["clicked_sum"]}
    return sizes


def _notes(log: ClickLog, extent: _Extent, cutoff: int, alone: int, moments: list[list[Any]]) -> list[str]:
    """Return notes on how the counts were made; `alone` is the number of impressions without a unit."""
    notes = []
    if extent.below:
        rows = f"{extent.below:,} of {extent.rows:,} rows, with {extent.clicks_below:,} clicks,"
        notes.append(f"{rows} are below rank {cutoff} and were left out.")
    if extent.undated:
        rows = f"{extent.undated:,} of {extent.rows:,} rows"
        notes.append(f"{rows} had no timestamp; impressions without a timestamp count towards the first period.")
    if extent.periods is not None and len(moments) > 1 and extent.periods.length > DAY:
        days = extent.periods.length // DAY
        first, last = moment_text(moments[0][0]), moment_text(moments[-1][1])
        notes.append(f"The log runs from {first} to {last}, in periods of {days} days each.")
    if alone:
        which = "it" if alone == 1 else "each"
        notes.append(
            f"{how_many(alone, 'impression')} had no {log.asked['unit']}; {which} counts as a unit of its own."
        )
    return notes
