"""What can be wrong with the rows of a click log: found by queries, reported with counts and examples, or dropped."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.compute as pc

from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog, places_of
from saferank.logs.layouts import LONG
from saferank.logs.run_query import fetch, fetch_row

EXAMPLES = 3
"""How many offending rows a message shows."""
_LARGEST = 2.0**31
FORMS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "case": pc.utf8_lower,
    "leading zeros": lambda ids: pc.utf8_ltrim(ids, "0"),
    "spaces": pc.utf8_trim_whitespace,
    "a final .0": lambda ids: pc.replace_substring_regex(ids, r"\.0$", ""),
}
"""What ids that mean the same may differ in -> the ids without it."""


KINDS = {
    "null impression_id": "without an impression_id",
    "null query_id": "without a query_id",
    "null document_id": "without a document_id",
    "null timestamp": "of impressions without a timestamp, which a split by time needs",
    "bad position": "with a position that is missing, below 1 or not a whole number",
    "repeated position": "at a position that occurs twice in their impression",
    "repeated document": "with a document that occurs twice in their impression",
    "two queries": "of impressions with more than one query",
    "bad click": "with clicks that are missing, or not 0 or 1",
    "click on what was not shown": "with a click on a document that was not shown",
}
"""Ways in which rows can be bad, as the manifest names them -> what a message says after a number of rows."""
ROW_ONLY = ("null impression_id", "click on what was not shown")
"""Dropping these drops the row, and not its whole impression: what was shown is known without it."""


def describe_dropped(kind: str, count: int) -> str:
    """Return what was dropped, in words."""
    dropped = how_many(count, "row") if kind in ROW_ONLY else f"{how_many(count, 'impression')} because of rows"
    return f"{dropped} {KINDS.get(kind, kind)}"


@dataclass(frozen=True)
class BadRows:
    """Rows of one kind."""

    kind: str
    rows: int
    impressions: int
    examples: list[dict[str, Any]]
    hint: str = ""
    """What is likely behind it, if that can be told."""

    @property
    def dropped(self) -> int:
        """How many rows (of a kind that drops rows) or impressions go if they are dropped."""
        return self.rows if self.kind in ROW_ONLY else self.impressions

    def describe(self) -> str:
        """Return what was found, with the first rows."""
        within = "" if self.kind == "null impression_id" else f" (in {how_many(self.impressions, 'impression')})"
        lines = [f"\n  {how_many(self.rows, 'row')} {KINDS[self.kind]}{within}, such as"]
        for row in self.examples:
            values = (f"{name} {'null' if value is None else value}" for name, value in row.items())
            lines.append(f"\n    {', '.join(values)}")
        return "".join([*lines, f"\n  {self.hint}" if self.hint else ""])


def wrong_rows(log: ir.Table) -> dict[str, ir.BooleanValue]:
    """Return whether a row is bad in each of the ways that the row itself shows."""
    position, click = log["position"], log["click"]
    not_shown = position.isnull() & ibis.coalesce(click > 0, False)
    wrong = {
        "null query_id": log["query_id"].isnull(),
        "null document_id": log["document_id"].isnull(),
        "bad position": _not_whole(position) | ibis.coalesce(position < 1, False),
        "bad click": _not_whole(click) | ibis.coalesce((click < 0) | (click > 1), False),
    }
    wrong = {kind: bad & ~not_shown for kind, bad in wrong.items()} | {"click on what was not shown": not_shown}
    named = log["impression_id"].notnull()
    return {kind: bad & named for kind, bad in wrong.items()} | {"null impression_id": ~named}


def _not_whole(value: ir.Value) -> ir.BooleanValue:
    """Whether a number is missing, not finite, has decimals or is beyond what is counted."""
    if value.type().is_integer():
        return value.isnull()
    exact = value.cast("float64")
    wild = exact.isnull() | exact.isnan() | (exact.abs() > _LARGEST)
    return ibis.ifelse(wild, True, exact != exact.floor())  # engines round to whole numbers, and NaN is none


def usable(log: ir.Table) -> ir.Table:
    """Return the rows of something shown in some impression."""
    wrong = wrong_rows(log)
    return log.filter(~wrong["null impression_id"] & ~wrong["click on what was not shown"])


def offending_rows(kind: str, log: ir.Table) -> ir.Table:
    """Return the rows of a log that are bad in this way."""
    if kind in (wrong := wrong_rows(log)):
        return log.filter(wrong[kind])
    log = usable(log)
    if kind in ("null timestamp", "two queries"):
        bad = log["timestamp"].min().isnull() if kind == "null timestamp" else log["query_id"].nunique() > 1
        return log.semi_join(log.group_by("impression_id").having(bad).aggregate(), "impression_id")
    key = {"repeated position": "position", "repeated document": "document_id"}[kind]
    return log.semi_join(_repeated(log, key), ["impression_id", key])


def has_repeated_document(log: ir.Table, suspects: ir.Table) -> bool:
    """Whether any of these impressions shows a document twice."""
    repeated = _repeated(log.semi_join(suspects, "impression_id"), "document_id")
    return len(fetch(repeated.limit(1))) > 0


def _repeated(log: ir.Table, key: str) -> ir.Table:
    """Return what appears more than once in an impression."""
    named = log.filter(log[key].notnull())
    return named.group_by("impression_id", key).having(named.count() > 1).aggregate()


def diagnose(log: ir.Table, kinds: Iterable[str]) -> list[BadRows]:
    """Return the rows of the given kinds that there are, in the order of `KINDS`."""
    wanted, found = set(kinds), []
    for kind in (kind for kind in KINDS if kind in wanted):
        bad = offending_rows(kind, log)
        counts = fetch_row(bad.aggregate(rows=bad.count(), impressions=bad["impression_id"].nunique()))
        if counts["rows"]:
            order = [bad[column] for column in ("impression_id", "position", "document_id")]
            first = fetch(bad.order_by(order).limit(EXAMPLES).select(*LONG)).to_pylist()
            found.append(BadRows(kind, counts["rows"], counts["impressions"], first, _hint(kind, first, log)))
    return found


def _hint(kind: str, examples: list[dict[str, Any]], log: ir.Table) -> str:
    """Return what the first bad rows of a kind suggest."""
    if kind == "bad click":
        clicks = [row["click"] for row in examples]
        hints = ["If null means not clicked, fill it with 0."] if None in clicks else []
        if any(click is not None and click > 1 for click in clicks):
            hints.append("If these count clicks, write 1 if it was clicked at all; else check the click column.")
        return " ".join(hints)
    if kind == "bad position" and all(row["position"] == 0 for row in examples):
        first = log.group_by("impression_id").aggregate(first=log["position"].min())
        if not len(fetch(first.filter(first["first"] != 0).limit(1))):
            return "Positions seem to count from 0: add 1 to all of them."
    return ""


def without(log: ir.Table, found: list[BadRows]) -> ir.Table:
    """Return the log without the impressions, or single rows, that were found to be bad."""
    kept = usable(log)
    whole = [offending_rows(bad.kind, log) for bad in found if bad.kind not in ROW_ONLY]
    if whole:
        ids = pa.concat_tables([fetch(rows.select("impression_id").distinct()) for rows in whole])
        ids = ids.group_by("impression_id").aggregate([])
        kept = kept.anti_join(ibis.memtable(ids), "impression_id")
    return kept


def bad_rows_error(found: list[BadRows], source: str, columns: Mapping[str, str]) -> DataError:
    """Return the error that lists every kind of bad row, with counts and the first of each.

    It names the column, by the log's name in `columns`, if there is one kind only and that is about a column.
    """
    listed = "".join(bad.describe() for bad in found)
    whole = "this drops whole impressions, but single rows if they lack an impression_id or click what was not shown"
    remedy = f"Correct them, or leave them out with --on-bad-rows drop ({whole})."
    about = {"bad click": ("click", "clicks"), "bad position": ("position", "positions")}
    names = [columns[name] for name in about.get(found[0].kind, ()) if name in columns]
    column = names[0] if names and len(found) == 1 else None
    return DataError(f"has rows that cannot be used:{listed}\n{remedy}", file=source, column=column)


def how_many(number: int, unit: str) -> str:
    """Return a number with its unit, as in `1 row` and `2,000 rows`."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class UnmatchedIds:
    """Ids of a log that the features lack: all of a column, or some that the features have in another form."""

    column: str
    """As the log calls it."""
    ids: int
    """Different ids in the log."""
    unmatched: int
    alike: int
    """Unmatched ids that the features have in another form."""
    differ_in: str | None
    """What these differ in: one of FORMS."""
    both: str
    """Type and example of the ids in the log and in the features, in words."""

    @property
    def remedy(self) -> str:
        """What to do about it, in words."""
        same = "convert the ids to the same form in both"
        many = f"{self.alike:,} of {self.unmatched:,}"
        return same if self.differ_in is None else f"{same} ({many} differ only in {self.differ_in})"


def unmatched_ids(log: AggregatedLog, data: RankingData) -> list[UnmatchedIds]:
    """Return for the queries, and for the documents, what of the log's ids does not match and should.

    Ids are compared as text, so 7 and "7" are the same; 7 and "007" are not.
    """
    places, found = places_of(data), []
    among = {"query_id": places.query_ids, "document_id": places.document_ids}
    types = dict(zip(among, data.id_types or ("text", "text"), strict=True))
    for column, ours in among.items():
        theirs = log.shown_counts[column].unique()
        lacking = theirs.filter(pc.invert(pc.is_in(theirs, value_set=ours)))
        if not len(lacking):
            continue
        by_form = {form: pc.index_in(of(lacking), value_set=of(ours)) for form, of in FORMS.items()}
        form, there = min(by_form.items(), key=lambda one: one[1].null_count)
        alike = len(lacking) - there.null_count
        if not alike and len(lacking) < len(theirs):
            continue
        first = pc.index(there.is_valid(), True).as_py() if alike else 0
        one, other = lacking[first], ours[there[first].as_py() or 0]
        kind = log.manifest.get("id_types", {}).get(column, "text").strip("!")
        both = f"the log has {kind}, such as {one}, and {data.source} has {types[column]}, such as {other}"
        name = log.manifest.get("columns", {}).get(column, column)
        found.append(UnmatchedIds(name, len(theirs), len(lacking), alike, form if alike else None, both))
    return found


def unmatched_ids_error(log: AggregatedLog, data: RankingData) -> DataError | None:
    """Return the error for a log none of whose queries, or none of whose documents, `data` has; else None."""
    for one in unmatched_ids(log, data):
        if one.unmatched == one.ids:
            message = f"no id of the log occurs in the features: {one.both}; {one.remedy}."
            return DataError(message, file=log.source, column=one.column)
    return None


def missing_features_error(log: AggregatedLog, data: RankingData) -> DataError | None:
    """Return the error for shown documents that `data` has no features of, or None if it has all of them."""
    missing = log.missing_pairs(data)
    if not len(missing):
        return None
    if (unmatched := unmatched_ids_error(log, data)) is not None:
        return unmatched
    pairs = missing.sort_by([("query_id", "ascending"), ("document_id", "ascending")]).slice(0, EXAMPLES).to_pylist()
    examples = "".join(
        f"\n    query_id {row['query_id']}, document_id {row['document_id']}, shown {row['shown_sum']:,}"
        for row in pairs
    )
    many = f"{len(missing):,} query-document pairs ({sum(missing['shown_sum'].to_pylist()):,} times)"
    remedy = "Add their features, or leave them out with --on-bad-rows drop."
    return DataError(f"shows {many} that {data.source} lacks, such as{examples}\n{remedy}", file=log.source)
