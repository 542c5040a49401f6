"""A segment, such as the device: a property of the impression, alike for all that it shows."""

from collections.abc import Mapping

import ibis.expr.types as ir

from saferank.engine.errors import DataError, UsageError
from saferank.logs.run_query import fetch


def check_segment(segment: str | None, used: Mapping[str, str]) -> None:
    """Raise for a column of which the log consists, such as the position: it divides no users."""
    for ours, theirs in used.items():
        if segment == theirs:
            raise UsageError(
                f"--segment {segment}: this is the {ours} of the log, not a segment; name a column that is the same "
                "in all rows of an impression, such as the device."
            )


def check_segments(log: ir.Table, column: str | None, source: str) -> None:
    """Raise if the segment differs within an impression: then it is a property of what is shown."""
    if column is None or "segment" not in log.columns:
        return
    segment = log["segment"]
    impressions = log.group_by("impression_id").aggregate(least=segment.min(), most=segment.max())
    for row in fetch(impressions.filter(impressions["least"] != impressions["most"]).limit(1)).to_pylist():
        message = (
            f"impression {row['impression_id']} has both {row['least']} and {row['most']}, but must have one value"
        )
        remedy = "name a column that is the same in all rows of an impression, such as the device"
        raise DataError(f"{message}; {remedy}.", file=source, column=column)
