"""Small logs in layouts of others, as their files: sessions as text, and OpenSearch UBI."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LINES = """\
s1 0 Q tv 0 a b c
s1 5 C b
s1 6 Q radio 0 d a
s2 7 Q tv 0 c a
s1 8 C a
s1 9 C b
s1 10 C z
s2 11 C c
s2 12 C c
s3 13 C a
"""
QUERIES = [
    {
        "query_id": "s1",
        "user_query": "tv",
        "query_response_hit_ids": ["a", "b", "c"],
        "timestamp": "2025-01-01T10:00:00",
    },
    {"query_id": "s2", "user_query": "tv", "query_response_hit_ids": ["b", "a"], "timestamp": "2025-01-02T10:00:00"},
    {"query_id": "s3", "user_query": "none", "query_response_hit_ids": [], "timestamp": "2025-01-02T11:00:00"},
]


def event(query: str | None, action: str, target: str | None, ordinal: int | None = None) -> dict[str, Any]:
    attributes = {"object": {"object_id": target}, "position": {"ordinal": ordinal}}
    return {"query_id": query, "action_name": action, "event_attributes": attributes}


EVENTS = [
    event("s1", "view", "a", 1),
    event("s1", "item_click", "b", 2),
    event("s1", "click", "b", 2),  # again: one click
    event("s2", "click", None, 2),  # by its place alone: document a
    event(None, "click", "a"),  # not after a search
]


def write_sessions(path: Path, text: str = LINES) -> Path:
    path.write_text("".join("\t".join(line.split(" ")) + "\t\t\n" for line in text.splitlines()))
    return path


def write_ubi(folder: Path, events: list[dict[str, Any]] = EVENTS, kind: str = "ndjson") -> Path:
    folder.mkdir(exist_ok=True)
    for name, rows in (("ubi_queries", QUERIES), ("ubi_events", events)):
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
        else:
            (folder / f"{name}.{kind}").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
