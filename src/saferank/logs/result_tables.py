"""From what the queries return to the tables of an aggregated log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saferank.engine.ragged import offsets_of, query_of_document
from saferank.logs.aggregated_log import PARTS, SCHEMAS
from saferank.logs.log_queries import POSITION_DIGITS


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


def sample_table(rows: pa.Table) -> pa.Table:
    """Return the result of `sampled_rows`, which is sorted by impression, with numbers in place of their ids."""
    ids = rows["impression_id"]
    first = pc.not_equal(ids[1:], ids[:-1]).to_numpy()
    number = np.concatenate([[0], np.cumsum(first)]).astype(np.int64)[: len(rows)]
    return conformed(rows.append_column("impression", pa.array(number)), "sample")


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
