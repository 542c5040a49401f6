"""What every impression is checked for while it is counted, at little cost.

Detecting a document repeated within an impression is expensive: a count of distinct ones takes longer than all the
rest. So an impression keeps a few bits of each document's hash, in the slot of its position in one of a few numbers. If
two slots are equal the impression is a suspect (one in 45 of those with ten different documents is), and its rows are
checked again. More positions than slots are checked by the slower way, lists of hashes and positions.
"""

from itertools import combinations

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir

_BITS = 12
"""Of a slot. The first one is set if a document was shown there."""
_SLOTS = 5
"""In one number of 64 bits with a sign."""
_MOST_SLOTS = 20
"""In all: the pairs to compare, and the suspects, grow with their square."""


@ibis.udf.agg.builtin(name="bit_or")  # type: ignore[untyped-decorator]
def _spark_bit_or(value: dt.int64) -> dt.int64:
    """Bits that any row has set; Ibis knows this function of all engines but Spark."""


@ibis.udf.scalar.builtin(name="hash")  # type: ignore[untyped-decorator]
def _duckdb_hash(value) -> dt.uint64:  # type: ignore[no-untyped-def]
    """DuckDB's hash of a value of any type. Ibis's own makes a signed number of it, and takes its time."""


def check_metrics(log: ir.Table, last: int, engine: str) -> dict[str, ir.Value]:
    """Return what an impression must keep of its rows, beside its `query`; `last` is the largest position of all."""
    metrics: dict[str, ir.Value] = {"rows": log.count(), "last_query": log["query_id"].max()}
    metrics["keys"] = log.count(where=log["query_id"].notnull() & log["document_id"].notnull())
    position = log["position"].cast("int32")
    document = log["document_id"]
    hashed = _duckdb_hash(document) if engine == "duckdb" else document.cast("string").hash()  # BigQuery: of texts only
    if last > _MOST_SLOTS:
        return metrics | {"hashes": hashed.collect(), "positions": position.collect()}
    # Spark's hash has 32 bits, which Ibis does not know: only what is cast from a smaller type becomes 64 bits wide
    bits = (hashed & (2 ** (_BITS - 1) - 1)).cast("int64") | ibis.literal(2 ** (_BITS - 1), "int16").cast("int64")
    for word, first in enumerate(range(1, last + 1, _SLOTS)):
        within = position.between(first, first + _SLOTS - 1)
        slots = ibis.ifelse(within, bits << (_BITS * (position - first)), 0)
        metrics[f"slots_{word}"] = _spark_bit_or(slots) if engine == "pyspark" else slots.bit_or()
    return metrics


def checked(impressions: ir.Table, last: int) -> ir.Table:
    """Return the impressions, and whether each is `bad` (two queries, a position twice, no id) or `suspect` (above)."""
    rows = impressions["rows"]
    if last > _MOST_SLOTS:
        shown = impressions["positions"].unique().length()
        suspect = impressions["hashes"].unique().length() != rows
    else:
        slots = {}  # null where nothing was shown, which is equal to nothing
        for place in range(last):
            slot = (impressions[f"slots_{place // _SLOTS}"] >> (_BITS * (place % _SLOTS))) & (2**_BITS - 1)
            slots[f"slot_{place}"] = slot.nullif(0)
        impressions = impressions.mutate(**slots)
        taken = [impressions[slot] for slot in slots]
        shown = sum(ibis.ifelse(slot.isnull(), 0, 1) for slot in taken)
        alike = [one == other for one, other in combinations(taken, 2)]
        suspect = ibis.coalesce(ibis.or_(*alike), False) if alike else ibis.literal(False)
    two_queries = impressions["query"] != impressions["last_query"]
    nameless = impressions["keys"] != rows
    return impressions.mutate(bad=nameless | two_queries | (shown != rows), suspect=suspect)
