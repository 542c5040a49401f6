"""The queries that count a click log, which DuckDB, PostgreSQL and Spark can run, and what becomes of their results."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saferank.engine.ragged import offsets_of, query_of_document
from saferank.files.arrow_tables import numbered
from saferank.logs.aggregated_log import PARTS, SCHEMAS
from saferank.logs.impression_checks import check_metrics, checked
from saferank.logs.layouts import GROUPS
from saferank.logs.periods import DAY, Periods
from saferank.logs.split import Split, digest, threshold

POSITION_DIGITS = 6
"""Digits of the position that precedes each document of a ranking, to sort by."""
MOST_GROUPS = 100
"""Values of a column up to which it is taken to tell groups of users apart; more are put together."""
OFTEN = 50
"""Impressions per value from which a column with more values may still tell groups apart: shops, or postal codes."""
SAMPLED = 50_000
"""Impressions in the sample, at most."""
WITHOUT_UNIT = "impression:"
"""Before the id of an impression whose unit is null: it is a unit of its own."""
PATTERN = ("part", "period", "segment", "unit", "query", "clicked", "rewards")
SHOWN = ("period", "query_id", "document_id", "position")
RANKING = ("part", "query", "ranking", "clicked")
"""By what impressions and rows are counted; the results are sorted by the same."""


def interactions_of(
    log: ir.Table, split: Split, cutoff: int, *, last: int, engine: str = "", periods: Periods | None = None
) -> ir.Table:
    """One row per impression: its `part`, `period`, `segment`, `unit` and `query`, what was clicked, what is wrong.

    There is a `period` if `periods` are given, an `hour` of the day if these are days or longer, and the `first` time
    of its rows, a `segment`, a `unit` and `rewards` if the log has such a column; `rewards` are in the order of
    `clicked`, null without a click.
    `counted` is false if the impression shows nothing within the cutoff. For `bad` and `suspect` see
    `impression_checks`. `last` is the largest position of the log.
    """
    within = log["click"] > 0
    metrics = _decisive(log, timed="timestamp" in log.columns)
    if last > cutoff:
        within &= log["position"] <= cutoff
        metrics["counted"] = log["position"].min() <= cutoff
    if "segment" in log.columns:
        metrics["segment"] = log["segment"].min()
    document = log["document_id"].cast("string")
    metrics["clicked"] = document.collect(where=within)
    pairs = "reward" in log.columns and engine == "pyspark"  # for which Ibis cannot order what it collects
    if pairs:
        metrics["pairs"] = ibis.struct({"document": document, "reward": log["reward"]}).collect(where=within)
    elif "reward" in log.columns:
        metrics["rewards"] = log["reward"].collect(where=within, order_by=document)
    found = checked(log.group_by("impression_id").aggregate(**metrics, **check_metrics(log, last, engine)), last)
    clicked = found["clicked"].sort()
    if engine == "duckdb":  # the others have an empty list for no click, not null
        clicked = ibis.coalesce(clicked, ibis.literal([], "array<string>"))
    if pairs:
        found = found.mutate(rewards=found["pairs"].sort().map(lambda pair: pair["reward"]))
    found = _with_part(found.mutate(clicked=clicked), split, engine)
    if periods is not None:
        found = found.mutate(period=periods.number(found["first"]))
        if periods.length >= DAY:
            found = found.mutate(hour=periods.hour(found["first"]))
    further = [name for name in ("hour", "first") if name in found.columns] + (["counted"] if last > cutoff else [])
    return found.select("impression_id", *_keys(found), *further, "bad", "suspect")


def part_of_impressions(log: ir.Table, split: Split, engine: str = "") -> ir.Table:
    """One row per impression: its `part`, the same as in `interactions_of`."""
    impressions = log.group_by("impression_id").aggregate(**_decisive(log, timed=split.timed))
    return _with_part(impressions, split, engine).select("impression_id", "part")


def _decisive(log: ir.Table, *, timed: bool) -> dict[str, ir.Value]:
    """Return what decides the part of an impression: `query`, `unit` if the log has units, `first` time if `timed`."""
    columns = {"query": "query_id", "unit": "unit"} | ({"first": "timestamp"} if timed else {})
    return {name: log[column].min() for name, column in columns.items() if column in log.columns}


def _with_part(impressions: ir.Table, split: Split, engine: str) -> ir.Table:
    """Return the impressions with their part; one without a unit is a unit of its own."""
    if "unit" in impressions.columns:
        impressions = impressions.mutate(unit=ibis.coalesce(impressions["unit"], _own_unit(impressions)))
    return impressions.mutate(part=split.part(impressions, engine))


def pattern_counts(interactions: ir.Table) -> ir.Table:
    """How often each set of documents was clicked together, per part, period, segment, unit and query."""
    interactions = _counted(interactions)
    return interactions.group_by(*_keys(interactions)).aggregate(interactions=interactions.count())


def _keys(interactions: ir.Table) -> list[str]:
    return [name for name in PATTERN if name in interactions.columns]


def _counted(interactions: ir.Table) -> ir.Table:
    return interactions.filter(interactions["counted"]) if "counted" in interactions.columns else interactions


def _own_unit(impressions: ir.Table) -> ir.StringValue:
    return ibis.literal(WITHOUT_UNIT) + impressions["impression_id"].cast("string")


def without_unit(interactions: ir.Table) -> ir.Table:
    """How many impressions have no unit except their own."""
    return interactions.aggregate(impressions=interactions.count(where=interactions["unit"] == _own_unit(interactions)))


def shown_counts(log: ir.Table, interactions: ir.Table, cutoff: int) -> ir.Table:
    """How often each (query, document, position) was shown and clicked: `shown_0`, `clicked_0`, ... for each part.

    The period is a further key if there is one. The part is not: three times as many groups would take twice the time.
    """
    period = ["period"] if "period" in interactions.columns else []
    parts = interactions.select("impression_id", "part", *period)
    rows = log.filter(log["position"] <= cutoff).join(parts, "impression_id")
    rows = rows.mutate(position=rows["position"].cast("int32"))
    counts = {}
    for part in range(len(PARTS)):
        within = rows["part"] == part
        counts[f"shown_{part}"] = rows.count(where=within)
        counts[f"clicked_{part}"] = rows.count(where=within & (rows["click"] > 0))
    return rows.group_by(*period, "query_id", "document_id", "position").aggregate(**counts)


def sampled_rows(log: ir.Table, interactions: ir.Table, cutoff: int, *, impressions: int, engine: str = "") -> ir.Table:
    """All rows within the cutoff of at most `SAMPLED` of the `impressions`, those with the lowest digests of their ids.

    The digest is another one than that of the split, so every part is sampled alike. With units it is that of the unit,
    so that a user's searches are drawn together. Impressions have their ids as text, to be sorted by: numbers in one
    file may be texts in another.
    """
    drawn = _counted(interactions)
    if impressions > SAMPLED:
        by_unit = "unit" in drawn.columns
        name = drawn["unit"] if by_unit else drawn["impression_id"].cast("string")
        drawn = drawn.mutate(digest=digest(ibis.literal("sample:") + name, engine))
        wanted = 4 * SAMPLED if by_unit else SAMPLED + 6 * SAMPLED**0.5  # more than needed, to sort few: units differ
        drawn = drawn.filter(drawn["digest"] < threshold(min(wanted / impressions, 1.0)))
        drawn = drawn.order_by("digest", "impression_id").limit(SAMPLED)
    kept = [name for name in ("part", "period", "hour", "first", "unit") if name in drawn.columns]
    shown = log.filter(log["position"] <= cutoff)
    click, position = ibis.ifelse(shown["click"] > 0, 1, 0).cast("int8"), shown["position"].cast("int32")
    groups = [name for name in GROUPS if name in shown.columns]
    shown = shown.select("impression_id", "query_id", "document_id", *groups, position=position, click=click)
    found = shown.join(drawn.select("impression_id", *kept), "impression_id")
    return found.mutate(impression_id=found["impression_id"].cast("string"))


def ranking_counts(log: ir.Table, interactions: ir.Table, cutoff: int) -> ir.Table:
    """How often each whole ranking was shown with each set of clicks; each document follows its position."""
    shown = log.filter(log["position"] <= cutoff)
    document = shown["document_id"].cast("string")
    placed = shown["position"].cast("int32").cast("string").lpad(POSITION_DIGITS, "0") + document
    rankings = shown.group_by("impression_id").aggregate(ranking=placed.collect())
    found = rankings.join(interactions.select("impression_id", "part", "query", "clicked"), "impression_id")
    found = found.mutate(ranking=found["ranking"].sort())
    return found.group_by(*RANKING).aggregate(interactions=found.count())


# From what the queries return to the tables of an aggregated log.


def shown_table(wide: pa.Table) -> pa.Table:
    """Return the result of `shown_counts` with rows for each part in place of columns for each part."""
    keys = {name: wide[name] for name in wide.column_names if not name.startswith(("shown", "clicked"))}
    keys |= {name: wide[name].cast(pa.string()) for name in ("query_id", "document_id")}

    def rows(place: int) -> pa.Table:
        shown, clicked = wide[f"shown_{place}"], wide[f"clicked_{place}"]
        part = pa.repeat(pa.scalar(PARTS[place]), len(wide))
        return conformed(pa.table({**keys, "part": part, "shown": shown, "clicked": clicked}), "shown_counts").filter(
            pc.greater(shown, 0)
        )

    with ThreadPoolExecutor() as threads:
        return pa.concat_tables(threads.map(rows, range(len(PARTS))))


def sample_table(rows: pa.Table, groups: Sequence[str] = ()) -> tuple[pa.Table, list[str], list[str]]:
    """Return the result of `sampled_rows`, which is sorted by impression, with numbers in place of their ids.

    And which of the columns of `groups`, that it has as `GROUPS`, tell groups apart: they have few values, and one in
    each impression, where single rows may lack it. Of those, the table has the number of the value. And which of
    them cannot be tested well: they have many values, though each occurs often, or there are too many such columns.
    """
    ids = rows["impression_id"]
    first = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    number = np.concatenate([[0], np.cumsum(first)]).astype(np.int64)[: len(rows)]
    found, untested = {}, list(groups[len(GROUPS) :])
    for ours, theirs in zip(GROUPS, groups, strict=False):
        column = rows[ours]
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        texts = column.cast(pa.string())
        code = np.where(texts.is_null().to_numpy(), -1, numbered(texts.fill_null(""))[0])
        of_impression = np.full(number[-1] + 1 if len(number) else 0, -1)
        np.maximum.at(of_impression, number, code)
        if ((code < 0) | (code == of_impression[number])).all():
            values, code = np.unique(of_impression[number], return_inverse=True)
            if 1 < len(values) <= MOST_GROUPS:
                found[theirs] = code
            elif MOST_GROUPS < len(values) <= len(of_impression) / OFTEN:
                found[theirs] = code % MOST_GROUPS  # several values count as one
                untested.append(theirs)
    codes = np.stack([*found.values()], axis=1) if found else np.zeros((len(rows), 0), np.int64)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(codes.ravel(), pa.int8()), codes.shape[1]) if found else None
    rows = rows.append_column("impression", pa.array(number))
    if "first" in rows.column_names:
        times = rows["first"].combine_chunks()
        order = pc.rank(times, tiebreaker="dense").cast(pa.int32())
        rows = rows.append_column("moment", pc.if_else(times.is_valid(), order, None))
    if lists is not None:
        rows = rows.append_column("groups", lists)
    return conformed(rows, "sample"), [*found], untested


def ranking_table(counts: pa.Table) -> pa.Table:
    """Return the result of `ranking_counts` with each document at its rank, and null where nothing was shown."""
    lists = counts["ranking"].combine_chunks()
    flat, starts = lists.flatten(), offsets_of(pc.list_value_length(lists).to_numpy())
    position = pc.utf8_slice_codeunits(flat, 0, POSITION_DIGITS).cast(pa.int64()).to_numpy()
    offsets = offsets_of(position[starts[1:] - 1])  # the last of each list stands lowest
    place = np.full(offsets[-1], -1)
    place[offsets[:-1][query_of_document(starts)] + position - 1] = np.arange(len(position))
    documents = pc.utf8_slice_codeunits(flat, POSITION_DIGITS).take(pa.array(place, mask=place < 0))
    rankings = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), documents)
    at = counts.column_names.index("ranking")
    return conformed(counts.set_column(at, "ranking", rankings), "rankings")


def conformed(found: pa.Table, name: str) -> pa.Table:
    """Return what a query found as this table of an aggregated log.

    Parts have names in place of numbers. Without such a column, the period is 0 and others are null.
    """
    found = found.rename_columns(["query_id" if column == "query" else column for column in found.column_names])

    def column(field: pa.Field) -> pa.ChunkedArray | pa.Array:
        if field.name not in found.column_names:
            return pa.repeat(pa.scalar(0 if field.name == "period" else None, field.type), len(found))
        values = found[field.name]
        if field.name == "part" and pa.types.is_integer(values.type):
            return pc.take(pa.array(PARTS), values)
        values = values.cast(field.type)
        return pc.coalesce(values, pa.scalar([], field.type)) if field.name == "rewards" else values

    return pa.table([column(field) for field in SCHEMAS[name]], schema=SCHEMAS[name])
