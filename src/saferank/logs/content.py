"""What a log holds, as one text: the same in whatever order and file its rows are."""

from functools import lru_cache

import duckdb
import ibis
import pyarrow as pa

from saferank.logs.run_query import SETTINGS, quietly

NOT_CONTENT = ("segment", "impression", "interactions", "moment")
"""Columns that are chosen for the verdict, numbered in the order of the rows, or a number of equal rows. `moment` is a
number, and came after the first ledgers."""
SEPARATOR = "\x1f"


@ibis.udf.scalar.builtin(name="md5_number_lower", signature=((str,), "uint64"))  # type: ignore[untyped-decorator]
def _md5_number(text: str) -> int:  # type: ignore[empty-body]
    """DuckDB's: the lower half of an MD5 digest, as a number."""


def content_of(tables: dict[str, pa.Table]) -> str:
    """Return the sum of a digest of each row, of each table; nothing in it is from the user's machine or engine."""
    sums = []
    with duckdb.connect(config=SETTINGS) as here:
        for name in ("shown_counts", "patterns", "sample"):
            here.register(name, tables[name])
            [[total]] = here.execute(_sum_of_digests(name, tables[name].schema)).fetchall()
            sums.append(total)
    return "-".join(f"{one or 0:.0f}" for one in sums)


@lru_cache
@quietly()
def _sum_of_digests(name: str, schema: pa.Schema) -> str:
    """Return the query, which Ibis takes longer to write than DuckDB to run on a small log."""
    rows = ibis.table(ibis.Schema.from_pyarrow(schema), name=name)
    texts = [rows[one].cast("string").fill_null("") for one in rows.columns if one not in NOT_CONTENT]
    digest = _md5_number(ibis.literal(SEPARATOR).join(texts)).cast("decimal(38,0)")
    times = rows["interactions"] if "interactions" in rows.columns else 1
    return str(ibis.to_sql(rows.aggregate(total=(digest * times).sum()), dialect="duckdb"))
