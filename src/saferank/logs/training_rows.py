"""The rows of a log that a ranker may be trained on: all but the held-out part, as the log itself writes them."""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ibis.expr.types as ir
import pyarrow.parquet as pq

from saferank.engine.errors import DataError, UsageError
from saferank.files.arrow_tables import Tabular
from saferank.files.atomic_write import check_output_file, whole_file
from saferank.logs.aggregated_log import PARTS
from saferank.logs.click_log import ClickLog, open_log
from saferank.logs.layouts import identifier
from saferank.logs.log_queries import part_of_impressions
from saferank.logs.row_checks import usable
from saferank.logs.run_query import fetch, fetch_row, quietly, run_once
from saferank.logs.source import ADDED
from saferank.logs.split import Split
from saferank.logs.split_options import parse_split

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


def split_log(
    log: str | Path | Tabular,
    out: str | Path,
    *,
    split: str = "60/20/20",
    split_by: str = "hash",
    unit: str | None = None,
    columns: Mapping[str, str] | None = None,
    layout: str = "auto",
) -> TrainingRows:
    """Write the part of a log that another ranker may be trained on, as `saferank split` does.

        made = saferank.split_log("log.parquet", "train.parquet")
        ...  # train a ranker on train.parquet, and score every candidate with it
        saferank.certify(scores, "log.parquet", split=made.split, trained_without_held_out=True)

    Args:
        log: A log, as for `load_log`: files, the URL of a table, or a table in memory.
        out: Parquet file to write: the rows and columns of the log, without the held-out part.
        split: Percentages of the log for train, validation and certify; the last is held out.
        split_by: `hash`: impressions at random (units, if there are any); `time`: the latest are held out; `query`,
            `unit`: at random, each query or unit in one part.
        unit: Column of the log with the user or session. Give `certify` the same unit, columns and layout.
        columns, layout: As for `load_log`.

    Returns:
        How many impressions were written and held out, and the split, for `certify`.
    """
    wanted, out = parse_split(split, by=split_by), Path(out)
    is_path = isinstance(log, (str, Path))
    check_output_file(out, [log] if is_path else [])
    if is_path:
        inside = Path(log).is_dir() and out.resolve().is_relative_to(Path(log).resolve())
        if inside or fnmatch.fnmatch(str(out), str(log)):
            raise UsageError(f"--out {out} would be read as part of {log} the next time; name a file elsewhere.")
    return write_training_rows(open_log(log, columns=columns, layout=layout, unit=unit), wanted, out)


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
