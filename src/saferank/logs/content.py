"""What the tables of a log hold, as texts: the same in whatever order and file the rows of the log are."""

from functools import lru_cache

import duckdb
import ibis
import pyarrow as pa

from saferank.files.arrow_tables import table_digest
from saferank.logs.run_query import SETTINGS, quietly

NOT_CONTENT = ("segment", "impression", "interactions", "moment")
"""Columns that are chosen for the verdict, numbered in the order of the rows, or a number of equal rows."""
SEPARATOR = "\x1f"


@ibis.udf.scalar.builtin(name="md5_number_lower", signature=((str,), "uint64"))  # type: ignore[untyped-decorator]
def _md5_number(text: str) -> int:  # type: ignore[empty-body]
    """DuckDB's: the lower half of an MD5 digest, as a number."""


def content_of(name: str, table: pa.Table) -> str:
    """Return a digest of a table, with nothing in it from the user's machine or engine.

    The rows are sorted, so it is one of all their values; that of patterns is a sum over interactions, because segments
    order them in another way.
    """
    if name != "patterns":
        return table_digest(table.select([one for one in table.column_names if one not in NOT_CONTENT]))
    with duckdb.connect(config=SETTINGS) as here:
        here.register(name, table)
        [[total]] = here.execute(_sum_of_digests(name, table.schema)).fetchall()
    return f"{total or 0:.0f}"


@lru_cache
@quietly()
def _sum_of_digests(name: str, schema: pa.Schema) -> str:
    """Return the query, which Ibis takes longer to write than DuckDB to run on a small log."""
    rows = ibis.table(ibis.Schema.from_pyarrow(schema), name=name)
    texts = [rows[one].cast("string").fill_null("") for one in rows.columns if one not in NOT_CONTENT]
    digest = _md5_number(ibis.literal(SEPARATOR).join(texts)).cast("decimal(38,0)")
    return str(ibis.to_sql(rows.aggregate(total=(digest * rows["interactions"]).sum()), dialect="duckdb"))
