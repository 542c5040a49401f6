"""OpenSearch User Behavior Insights (UBI): what was found, in `ubi_queries`, and what users did, in `ubi_events`.

| ours | UBI |
|---|---|
| `impression_id` | `query_id` of `ubi_queries`: UBI gives every search a new one |
| `query_id` | `user_query`, what was typed |
| `document_id`, `position` | `query_response_hit_ids`, in their order from 1 |
| `click` | an event with this `query_id`, `event_attributes.object.object_id` and a click as its `action_name` |
| `timestamp` | `timestamp` of `ubi_queries` |

An event without an object stands for the hit at its `event_attributes.position.ordinal`, from 1. Clicks on objects
that are not among the hits, or of searches that are not in `ubi_queries`, are clicks on what was not shown.
"""

from collections.abc import Mapping

import ibis
import ibis.expr.types as ir

from saferank.engine.errors import DataError
from saferank.logs.layouts import EXTRAS, LONG, Laid, extras, missing, pick
from saferank.logs.run_query import fetch, fetch_row
from saferank.logs.source import LogSource

QUERIES = ("query_id", "user_query", "query_response_hit_ids")
EVENTS = ("query_id", "action_name")
OBJECT = ("event_attributes.object.object_id", "object_id")
ORDINAL = ("event_attributes.position.ordinal", "ordinal")


def ubi_log(source: LogSource, columns: Mapping[str, str], asked: Mapping[str, str], action: str | None) -> Laid:
    """Bring the two tables to one row per shown document; return it and the columns used.

    Events count as clicks if their action is `action`, or by default `click` or a name that ends so (`item_click`).
    """
    of_queries = {name: theirs for name, theirs in columns.items() if name in (*QUERIES, "timestamp")}
    of_events = {name: theirs for name, theirs in columns.items() if name not in ("timestamp", *QUERIES[1:])}
    queries, name = source.tables["ubi_queries"], f"{source.name}, ubi_queries"
    used = pick(queries, name, QUERIES, ("timestamp",), of_queries)
    hits = queries[used["query_response_hit_ids"]]
    if not hits.type().is_array():
        raise DataError(
            f"contains {hits.type()}, but must contain lists.", file=name, column=used["query_response_hit_ids"]
        )
    searches = queries.select(
        impression_id=queries[used["query_id"]].cast("string"),
        query_id=queries[used["user_query"]].cast("string"),
        document_id=hits,
        **extras(queries, used, asked, name),
    )
    shown = searches.unnest("document_id", offset="place")
    shown = shown.mutate(document_id=shown["document_id"].cast("string"), position=shown["place"] + 1)
    clicks = _clicks(source, of_events, action, shown)
    rest = [column for column in EXTRAS if column in shown.columns]
    order = (*LONG, *rest)
    log = shown.left_join(clicks, ["impression_id", "document_id"])
    log = log.mutate(click=ibis.coalesce(log["click"], ibis.literal(0, "int8").cast("int64"))).select(*order)
    known = searches.group_by("impression_id").aggregate(**{name: searches[name].min() for name in ("query_id", *rest)})
    others = clicks.anti_join(shown, ["impression_id", "document_id"]).left_join(known, "impression_id")
    others = others.mutate(position=ibis.null(log["position"].type()))
    return log.union(others.select(*order)), used


def _clicks(source: LogSource, columns: Mapping[str, str], action: str | None, shown: ir.Table) -> ir.Table:
    """Return the clicked documents of each search, each once, with `click` 1."""
    events, name = source.tables["ubi_events"], f"{source.name}, ubi_events"
    used = pick(events, name, EVENTS, ("object_id", "ordinal"), _existing(events, columns))
    target = _field(events, (columns["object_id"],) if "object_id" in columns else OBJECT)
    ordinal = _field(events, (columns["ordinal"],) if "ordinal" in columns else ORDINAL)
    if target is None and ordinal is None:
        raise missing(events, name, {"object_id": columns.get("object_id", OBJECT[0])})
    actions = events[used["action_name"]]
    wanted = actions == action if action else actions.lower().endswith("click")
    _check_action(events, actions, wanted, action, name)
    done = events.mutate(
        impression_id=events[used["query_id"]].cast("string"),
        document_id=ibis.null("string") if target is None else target.cast("string"),
        position=ibis.null("int64") if ordinal is None else ordinal.cast("int64"),
    )
    done = done.filter(wanted).select("impression_id", "document_id", "position")
    done = done.filter(done["impression_id"].notnull())
    named = done.filter(done["document_id"].notnull()).select("impression_id", "document_id")
    nameless = done.filter(done["document_id"].isnull() & done["position"].notnull()).drop("document_id")
    placed = shown.select("impression_id", "document_id", position=shown["position"].cast("int64"))
    placed = nameless.inner_join(placed, ["impression_id", "position"]).select("impression_id", "document_id")
    return named.union(placed).distinct().mutate(click=ibis.literal(1, "int8").cast("int64"))


def _check_action(events: ir.Table, actions: ir.Value, wanted: ir.Value, action: str | None, name: str) -> None:
    """Raise if no event is a click: a log without one is more likely a log with another word for it."""
    if fetch_row(events.aggregate(clicks=events.count(where=wanted)))["clicks"]:
        return
    there = fetch(events.select(action=actions).distinct().order_by("action").limit(20))["action"].to_pylist()
    what = f"is '{action}'" if action else "ends in 'click'"
    message = f"no action {what}; the actions are {', '.join(map(str, there)) or 'none'}."
    remedy = "Name the action that means a click: --layout ubi:ACTION."
    raise DataError(f"{message} {remedy}", file=name, column="action_name")


def _existing(events: ir.Table, columns: Mapping[str, str]) -> dict[str, str]:
    """Leave out the names of fields within a structure, which are no columns."""
    return {
        name: theirs
        for name, theirs in columns.items()
        if name not in ("object_id", "ordinal") or _field(events, (theirs,)) is None or theirs in events.columns
    }


def _field(table: ir.Table, names: tuple[str, ...]) -> ir.Value | None:
    """Return the first of the columns that is there: as a column, or as a field such as `a.b.c` of a structure."""
    for name in names:
        if name in table.columns:
            return table[name]
        value: ir.Value | ir.Table = table
        for step in name.split("."):
            there = value.columns if isinstance(value, ir.Table) else getattr(value, "names", ())
            if step not in there:
                break
            value = value[step]
        else:
            return value
    return None
