"""What every engine has to count as DuckDB does, to the last count: logs that are hard to sort, split or check."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError
from saferank.files.table_url import without_secrets
from saferank.logs.aggregated_log import SCHEMAS, AggregatedLog
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.split import HashSplit, TimeSplit, UntilSplit
from saferank.logs.training_rows import write_training_rows

BEGINNINGS = ("B", "a", "_c", "b-1", "b 0", "É", "ä", "🦆", "Z", "'", '"', "%s")
"""Of ids: a dictionary sorts them otherwise than by bytes, and quotes and the like must reach the engine unchanged."""


def hard_log(seed: int = 1, *, numbers: bool = False, impressions: int = 300, longest: int = 8) -> pa.Table:
    """Impressions of 1 to `longest` documents with gaps between them; the rows of each lie far apart."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for impression in range(impressions):
        query = int(rng.integers(5))
        shown = rng.permutation(12)[: rng.integers(1, longest + 1)]
        positions = np.sort(rng.permutation(longest)[: len(shown)]) + 1
        for document, position in zip(shown.tolist(), positions.tolist(), strict=True):
            name = f"{BEGINNINGS[document]}{document}"
            rows.append(
                {
                    "impression_id": impression if numbers else f"{BEGINNINGS[impression % 12]}{impression}",
                    "query_id": query if numbers else f"{BEGINNINGS[query]} q{query}",
                    "document_id": document if numbers else name,
                    "position": position,
                    "click": int(rng.random() < 0.4),
                    "timestamp": datetime(2026, 1, 30, 22, tzinfo=UTC) + timedelta(minutes=20 * impression + position),
                    "second": impression * 1_200 + position,
                    "device": ("phone", "Desk", "_tv")[impression % 3],
                    "user": f"u{impression * impression % 41}" if impression % 7 else None,
                    "price": float(rng.integers(4)) / 2,
                }
            )
    table = pa.Table.from_pylist([rows[place] for place in rng.permutation(len(rows))])
    return table.set_column(3, "position", table["position"].cast(pa.int32()))


def nested_rows(log: pa.Table) -> pa.Table:
    """The same log with lists, one row per impression."""
    rows: dict[Any, dict[str, Any]] = {}
    for row in sorted(log.to_pylist(), key=lambda row: row["position"]):
        one = rows.setdefault(
            row["impression_id"],
            {name: row[name] for name in ("impression_id", "query_id")} | {"document_ids": [], "clicks": []},
        )
        one["document_ids"].append(row["document_id"])
        one["clicks"].append(row["click"])
    return pa.Table.from_pylist(list(rows.values()))


CASES: dict[str, dict[str, Any]] = {
    "as it is": {"rankings": True},
    "all columns": {"segment": "device", "unit": "user", "reward": "price", "reward_most": 2.0, "rankings": True},
    "a cutoff, by query": {"cutoff": 3, "split": HashSplit(seed=3, by="query")},
    "by time": {"split": TimeSplit()},
    "by numbers of time": {"split": TimeSplit(), "columns": {"timestamp": "second"}},
    "until a moment": {"split": UntilSplit(datetime(2026, 2, 1, tzinfo=UTC))},
}
"""Name of each case -> options of `load_log`."""


def assert_same(ours: AggregatedLog, theirs: AggregatedLog) -> None:
    """Every table, row by row, and what the manifest says of it."""
    for name in SCHEMAS:
        one, other = getattr(ours, name), getattr(theirs, name)
        assert (one is None) == (other is None), name
        assert one is None or one.equals(other), name
    own = ("source", "files", "created", "id_types")
    assert {name: value for name, value in ours.manifest.items() if name not in own} == {
        name: value for name, value in theirs.manifest.items() if name not in own
    }


def with_bad_rows(log: pa.Table) -> pa.Table:
    rows = log.to_pylist()
    rows[3]["query_id"], rows[4]["document_id"], rows[5]["position"] = None, None, 0
    rows += [{**rows[20], "position": 99}, {**rows[30], "document_id": "another", "query_id": "another"}]
    return pa.Table.from_pylist(rows)


def same_errors(ours: pa.Table, theirs: str) -> list[list[str]]:
    """Bad rows are dropped alike; return the lines of both errors, without the name of the log."""
    assert_same(load_log(ours, on_bad_rows="drop"), load_log(theirs, on_bad_rows="drop"))
    messages = []
    for source in (ours, theirs):
        with pytest.raises(DataError) as caught:
            load_log(source)
        messages.append(str(caught.value).removeprefix(f"{caught.value.file}: ").split("\n"))
    assert caught.value.file == without_secrets(theirs)
    return messages


def assert_same_training_rows(ours: pa.Table, theirs: str, folder: Path) -> None:
    files = [folder / f"{place}.parquet" for place in range(2)]
    made = [
        write_training_rows(open_log(log), HashSplit(), file) for log, file in zip((ours, theirs), files, strict=True)
    ]
    assert made[0] == made[1]
    order = [("impression_id", "ascending"), ("position", "ascending")]
    tables = [pq.read_table(file).sort_by(order).to_pylist() for file in files]
    assert tables[0] == tables[1]
