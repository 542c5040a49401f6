"""The rows of a log that a ranker may be trained on: all but the held-out part, as the log itself writes them."""

from dataclasses import dataclass
from pathlib import Path

import ibis.expr.types as ir
import pyarrow.parquet as pq

from saferank.engine.errors import DataError
from saferank.files.atomic_write import whole_file
from saferank.logs.aggregated_log import PARTS
from saferank.logs.click_log import ClickLog
from saferank.logs.layouts import identifier
from saferank.logs.log_queries import part_of_impressions
from saferank.logs.row_checks import usable
from saferank.logs.run_query import fetch, fetch_row, quietly, run_once
from saferank.logs.source import ADDED
from saferank.logs.split import Split

HELD_OUT = PARTS.index("certify")
IMPRESSION = "saferank_impression"
"""Name of a column for as long as the rows are chosen."""


@dataclass(frozen=True)
class TrainingRows:
    """What was written, and what was held out."""

    kept: int
    """Impressions."""
    held_out: int
    split: Split
    """With the boundaries that it had in this log, if it goes by time."""


def write_training_rows(log: ClickLog, split: Split, out: Path) -> TrainingRows:
    """Write the rows of all impressions but those of the part `certify` as one Parquet file, atomically.

    The part of an impression is the one that `aggregate` gives it. Rows and columns are the log's own; of OpenSearch
    UBI, which has two tables, they are those of `ClickLog`. Rows without an impression belong to no part, and are left
    out. The engine writes the file, so memory does not grow with the log; Spark's rows
    come here first.
    """
    shown = usable(log.table)
    split = split.fitted(shown, log.source.name)
    rows = _own_rows(log)
    engine = shown.get_backend().name
    with run_once(part_of_impressions(shown, split, engine)) as impressions:
        held_out = impressions["part"] == HELD_OUT
        found = fetch_row(
            impressions.aggregate(kept=impressions.count(where=~held_out), held_out=impressions.count(where=held_out))
        )
        if found["kept"] == 0:
            message = "has no impressions outside the held-out part; choose another split, such as 60/20/20."
            raise DataError(message, file=log.source.name)
        free = impressions.filter(~held_out).select(**{IMPRESSION: impressions["impression_id"]})
        chosen = rows.semi_join(free, IMPRESSION).drop(IMPRESSION)
        with whole_file(out) as unfinished, quietly():
            if engine == "pyspark":  # Ibis would have each worker write files of its own, where it runs
                pq.write_table(fetch(chosen), unfinished)
            else:
                chosen.to_parquet(unfinished)
    return TrainingRows(found["kept"], found["held_out"], split)


def _own_rows(log: ClickLog) -> ir.Table:
    """Return the rows as the log has them, with the id of their impression as a further column."""
    if log.layout == "ubi":
        return log.table.mutate(**{IMPRESSION: log.table["impression_id"]})
    table = log.source.tables["log"]
    theirs = log.columns.get("impression_id")
    impression: ir.Value | None = log.source.row_id
    if theirs is not None:
        impression = identifier(table, theirs, log.source.name)
    assert impression is not None  # a nested log without either was refused when it was opened
    return table.mutate(**{IMPRESSION: impression}).drop(*(name for name in ADDED if name in table.columns))
