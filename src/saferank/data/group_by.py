"""The queries that count a click log, as Ibis expressions that DuckDB, PostgreSQL and Spark can run."""

from __future__ import annotations

import ibis
import ibis.expr.types as ir

from saferank.data.aggregated_log import PARTS
from saferank.data.impression_checks import check_metrics, checked
from saferank.data.split import Split, TimeSplit

POSITION_DIGITS = 6
"""Digits of the position that stands before each document of a ranking, to sort by."""


def interactions_of(log: ir.Table, split: Split, cutoff: int, *, last: int, engine: str = "") -> ir.Table:
    """One row an impression: its `part`, its query and segment, what was clicked, and what is wrong with it.

    `counted` is false if it shows nothing within the cutoff. `bad` and `suspect`: see `impression_checks`. `last` is
    the largest position of the log.
    """
    within = log["click"] > 0
    metrics: dict[str, ir.Value] = {"query": log["query_id"].min()}
    if last > cutoff:
        within &= log["position"] <= cutoff
        metrics["counted"] = log["position"].min() <= cutoff
    if "segment" in log.columns:
        metrics["segment"] = log["segment"].min()
    if isinstance(split, TimeSplit):
        metrics["first"] = log["timestamp"].min()
    metrics["clicked"] = log["document_id"].cast("string").collect(where=within)
    found = checked(log.group_by("impression_id").aggregate(**metrics, **check_metrics(log, last, engine)), last)
    clicked = found["clicked"].sort()
    if engine == "duckdb":  # the others have an empty list for no click, not null
        clicked = ibis.coalesce(clicked, ibis.literal([], "array<string>"))
    found = found.mutate(part=split.part(found), clicked=clicked)
    return found.select("impression_id", *_keys(found), *(["counted"] if last > cutoff else []), "bad", "suspect")


def pattern_counts(interactions: ir.Table) -> ir.Table:
    """How often each set of documents was clicked together, per part, segment and query."""
    if "counted" in interactions.columns:
        interactions = interactions.filter(interactions["counted"])
    keys = _keys(interactions)
    return interactions.group_by(*keys).aggregate(interactions=interactions.count()).order_by(*keys)


def _keys(interactions: ir.Table) -> list[str]:
    return ["part", *(["segment"] if "segment" in interactions.columns else []), "query", "clicked"]


def impression_counts(log: ir.Table, interactions: ir.Table, cutoff: int) -> ir.Table:
    """How often each (query, document, position) was shown and clicked: `shown_0`, `clicked_0`, ... for each part.

    The part is no key of the group-by: three times as many groups would take twice the time.
    """
    rows = log.filter(log["position"] <= cutoff).join(interactions.select("impression_id", "part"), "impression_id")
    rows = rows.mutate(position=rows["position"].cast("int32"))
    counts = {}
    for part in range(len(PARTS)):
        counts[f"shown_{part}"] = rows.count(where=rows["part"] == part)
        counts[f"clicked_{part}"] = rows.count(where=(rows["part"] == part) & (rows["click"] > 0))
    keys = ("query_id", "document_id", "position")
    return rows.group_by(*keys).aggregate(**counts).order_by(*keys)


def ranking_counts(log: ir.Table, interactions: ir.Table, cutoff: int) -> ir.Table:
    """How often each whole ranking was shown with each set of clicks; documents carry their position before them."""
    shown = log.filter(log["position"] <= cutoff)
    document = shown["document_id"].cast("string")
    placed = shown["position"].cast("int32").cast("string").lpad(POSITION_DIGITS, "0") + document
    rankings = shown.group_by("impression_id").aggregate(ranking=placed.collect())
    found = rankings.join(interactions.select("impression_id", "part", "query", "clicked"), "impression_id")
    found = found.mutate(ranking=found["ranking"].sort())
    keys = ("part", "query", "ranking", "clicked")
    return found.group_by(*keys).aggregate(interactions=found.count()).order_by(*keys)
