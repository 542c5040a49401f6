"""The queries that count a click log, as Ibis expressions that DuckDB, PostgreSQL and Spark can run."""

from __future__ import annotations

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from saferank.data.aggregated_log import PARTS
from saferank.data.split import Split, TimeSplit

FLAGS = ("two queries", "repeated position", "repeated document")
"""What is checked of every impression while it is counted; bit i of a flag is the i-th."""
POSITION_DIGITS = 6
"""Digits of the position that stands before each document of a ranking, to sort by."""
_BITS = 62
"""Positions that a bit of a number can stand for."""
_SCREENS = 4
"""Words of bits in which repeated documents show. Of ten different ones some share a bit in half of the words."""


@ibis.udf.agg.builtin  # type: ignore[untyped-decorator]
def bit_or(value: dt.int64) -> dt.int64:
    """Bits that any row has set, by the function of this name that every engine has."""


@ibis.udf.scalar.builtin(name="hash")  # type: ignore[untyped-decorator]
def _hash(value) -> dt.uint64:  # type: ignore[no-untyped-def]
    """DuckDB's hash of a value of any type."""


@ibis.udf.scalar.builtin(name="list_unique")  # type: ignore[untyped-decorator]
def _distinct(values) -> dt.int64:  # type: ignore[no-untyped-def]
    """DuckDB's count of the distinct values of a list."""


@ibis.udf.scalar.builtin(name="bit_count")  # type: ignore[untyped-decorator]
def _ones(value: dt.int64) -> dt.int64:
    """DuckDB's count of the bits that are set."""


def impression_counts(log: ir.Table, split: Split, cutoff: int) -> ir.Table:
    """How often each (query, document, position) was shown and clicked: `shown_0`, `clicked_0`, ... for each part.

    The part is no key of the group-by: three times as many groups would take twice the time.
    """
    rows = split.rows(log)
    rows = rows.filter(rows["position"] <= cutoff).mutate(position=rows["position"].cast("int32"))
    counts = {}
    for part in range(len(PARTS)):
        counts[f"shown_{part}"] = rows.count(where=rows["part"] == part)
        counts[f"clicked_{part}"] = rows.count(where=(rows["part"] == part) & (rows["click"] > 0))
    keys = ("query_id", "document_id", "position")
    return rows.group_by(*keys).aggregate(**counts).order_by(*keys)


def pattern_counts(log: ir.Table, split: Split, cutoff: int, *, last: int, engine: str = "") -> ir.Table:
    """How often each set of documents was clicked together, per part, query and segment; and a flag of what is wrong.

    `last` is the largest position of the log. On DuckDB the check for repeated documents is quicker than elsewhere.
    """
    within = log["click"] > 0
    metrics: dict[str, ir.Value] = {"query": log["query_id"].min(), "last_query": log["query_id"].max()}
    if last > cutoff:
        within &= log["position"] <= cutoff
        metrics["nearest"] = log["position"].min()
    if "segment" in log.columns:
        metrics["segment"] = log["segment"].min()
    if isinstance(split, TimeSplit):
        metrics["first"] = log["timestamp"].min()
    metrics["clicked"] = log["document_id"].cast("string").collect(where=within)
    impressions = log.group_by("impression_id").aggregate(**metrics, **_check_metrics(log, last, engine))
    clicked = impressions.mutate(
        part=split.part(impressions), clicked=impressions["clicked"].sort(), flag=_flag(impressions, last, engine)
    )
    keys = ["part", *(["segment"] if "segment" in log.columns else []), "query", "clicked"]
    shown = clicked.count(where=clicked["nearest"] <= cutoff) if last > cutoff else clicked.count()
    return clicked.group_by(*keys).aggregate(interactions=shown, flag=bit_or(clicked["flag"])).order_by(*keys)


def ranking_counts(log: ir.Table, split: Split, cutoff: int) -> ir.Table:
    """How often each whole ranking was shown with each set of clicks; documents carry their position before them."""
    document, within = log["document_id"].cast("string"), log["position"] <= cutoff
    placed = log["position"].cast("int32").cast("string").lpad(POSITION_DIGITS, "0") + document
    impressions = log.group_by("impression_id").aggregate(
        query=log["query_id"].min(),
        nearest=log["position"].min(),
        ranking=placed.collect(where=within),
        clicked=document.collect(where=within & (log["click"] > 0)),
        **({"first": log["timestamp"].min()} if isinstance(split, TimeSplit) else {}),
    )
    impressions = impressions.filter(impressions["nearest"] <= cutoff)
    ordered = impressions.mutate(
        part=split.part(impressions), ranking=impressions["ranking"].sort(), clicked=impressions["clicked"].sort()
    )
    keys = ("part", "query", "ranking", "clicked")
    return ordered.group_by(*keys).aggregate(interactions=ordered.count()).order_by(*keys)


def _check_metrics(log: ir.Table, last: int, engine: str) -> dict[str, ir.Value]:
    """What an impression must keep so that `_flag` can tell; as little as can be, for there are many impressions."""
    metrics: dict[str, ir.Value] = {"rows": log.count()}
    one = ibis.literal(1, "int8").cast("int64")
    bit = one << log["position"].cast("int32")
    if last > _BITS:
        metrics["positions"] = log["position"].nunique()
    elif engine == "duckdb":
        metrics["position_bits"] = bit_or(bit)
    else:
        metrics |= {"position_bits": bit_or(bit), "position_sum": bit.sum()}
    if engine != "duckdb":
        return metrics | {"documents": log["document_id"].nunique()}
    # count(distinct) takes three times as long as the rest; a list of short hashes and a few words of bits do not
    hashed = _hash(log["document_id"])
    for screen in range(_SCREENS):
        metrics[f"screen_{screen}"] = bit_or(one << ((hashed >> (8 * screen)) % _BITS).cast("int32"))
    return metrics | {"hashes": (hashed >> 32).cast("uint32").collect()}


def _flag(impressions: ir.Table, last: int, engine: str) -> ir.IntegerValue:
    rows = impressions["rows"]
    if last > _BITS:
        same_position = impressions["positions"] != rows
    elif engine == "duckdb":
        same_position = _ones(impressions["position_bits"]) != rows
    else:  # powers of two add up to their union only if none comes twice
        same_position = impressions["position_bits"] != impressions["position_sum"]
    if engine == "duckdb":
        # documents that share a bit of every screen are few enough to have their hashes compared
        crowded = [_ones(impressions[f"screen_{screen}"]) != rows for screen in range(_SCREENS)]
        same_document = ibis.ifelse(ibis.and_(*crowded), _distinct(impressions["hashes"]) != rows, False)
    else:
        same_document = impressions["documents"] != rows
    flag = ibis.literal(0, "int8").cast("int64")
    for place, wrong in enumerate((impressions["query"] != impressions["last_query"], same_position, same_document)):
        flag = flag + ibis.ifelse(wrong, 1 << place, 0)
    return flag
