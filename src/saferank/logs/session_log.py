"""Session logs as text (Yandex, NAVER): result pages and the clicks on them, in the order of time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from saferank.engine.errors import DataError

_TEXT, _NUMBER = pa.string(), pa.int32()
SCHEMA = pa.schema(
    {"impression_id": _TEXT, "query_id": _TEXT, "document_id": _TEXT, "position": _NUMBER, "click": _NUMBER}
    | {"timestamp": pa.int64(), "session": _TEXT}
)


def is_session_log(path: str | Path) -> bool:
    """Whether the first line of the file reads `session time Q query region document ...`."""
    with Path(path).open("rb") as file:
        fields = file.readline(1 << 16).split(b"\t")
    return len(fields) >= 4 and fields[2] in (b"Q", b"C")


def read_session_log(files: Sequence[str | Path]) -> pa.Table:
    """Read `session time Q query region document ...` and `session time C document` lines, separated by tabs.

    Each Q line is an impression, `session-number` counted from 1 in its session. A click belongs to the latest result
    page of its session that shows the document; several clicks on one are one. A click on what no page of the session
    shows becomes a row with no position, of the session's latest page, if it has any. Times are whole numbers in a
    unit of the log's own.
    """
    columns: dict[str, list[object]] = {name: [] for name in SCHEMA.names}
    clicked: list[int] = []
    row_of: dict[tuple[str, str], int] = {}  # (session, document) -> row of the latest page that shows it
    latest: dict[str, tuple[str, str, int]] = {}  # session -> impression, query and number of its latest page

    def add(*values: object) -> None:
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)

    for file in files:
        for session, time, kind, rest in _lines(Path(file)):
            if kind == "Q":
                query, _, *documents = rest
                number = latest[session][2] + 1 if session in latest else 1
                latest[session] = impression, _, _ = f"{session}-{number}", query, number
                for position, document in enumerate(documents, start=1):
                    row_of[session, document] = len(columns["click"])
                    add(impression, query, document, position, 0, time, session)
            elif (session, rest[0]) in row_of:
                clicked.append(row_of[session, rest[0]])
            else:
                impression, of_page, _ = latest.get(session, (f"{session}-0", None, 0))
                add(impression, of_page, rest[0], None, 1, time, session)
    click = np.array(columns["click"], np.int32)
    click[clicked] = 1
    return pa.table({**columns, "click": click}, schema=SCHEMA)


def _lines(file: Path) -> Iterator[tuple[str, int, str, list[str]]]:
    """Yield session, time, kind and the further fields of each line that is not empty."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.rstrip("\r\n").rstrip("\t").split("\t")
            if fields == [""]:
                continue
            try:
                session, time, kind, *rest = fields
                if len(rest) < {"Q": 2, "C": 1}[kind]:
                    raise ValueError
                yield session, int(time), kind, rest
            except (ValueError, KeyError) as error:
                message = "expected `session time Q query region document ...` or `session time C document`"
                raise DataError(f"{message}, separated by tabs.", file=file, line=number) from error
