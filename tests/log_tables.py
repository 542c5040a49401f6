"""The tables of an aggregated log, by column."""

from typing import Any

import pyarrow as pa

from saferank.logs.aggregated_log import SCHEMAS


def log_table(name: str, columns: dict[str, Any]) -> pa.Table:
    """The table of that name in an aggregated log; columns that are not given are empty."""
    rows = len(columns["query_id"])
    made = [
        pa.array(columns[of.name]).cast(of.type) if of.name in columns else pa.nulls(rows, of.type)
        for of in SCHEMAS[name]
    ]
    return pa.table(made, schema=SCHEMAS[name])
