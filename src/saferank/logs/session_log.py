"""Session logs as text (Yandex, NAVER): result pages and the clicks on them, in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from saferank.engine.errors import DataError

SCHEMA = pa.schema(
    [
        ("impression_id", pa.string()),
        ("query_id", pa.string()),
        ("document_id", pa.string()),
        ("position", pa.int32()),
        ("click", pa.int32()),
        ("timestamp", pa.int64()),
        ("session", pa.string()),
    ]
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
    pages = _Pages()
    for file in files:
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                fields = line.rstrip("\r\n").rstrip("\t").split("\t")
                if fields != [""]:
                    pages.add(fields, file, number)
    return pages.table()


class _Pages:
    """What was read so far: the shown documents, flat, and where those of each session lie."""

    def __init__(self) -> None:
        self.columns: dict[str, list[object]] = {name: [] for name in SCHEMA.names}
        self.clicked: list[int] = []
        self.shown: dict[tuple[str, str], int] = {}
        """(session, document) -> row of the latest page that shows it."""
        self.latest: dict[str, tuple[str, str, int]] = {}
        """session -> impression, query and number of its latest page."""

    def add(self, fields: list[str], file: str | Path, line: int) -> None:
        kind = fields[2] if len(fields) > 2 else ""
        try:
            session, time = fields[0], int(fields[1])
            if kind not in ("Q", "C") or len(fields) < (5 if kind == "Q" else 4):
                raise ValueError
        except (ValueError, IndexError) as error:
            raise DataError(
                "got neither `session time Q query region document ...` nor `session time C document`, with tabs.",
                file=file,
                line=line,
            ) from error
        if kind == "Q":
            self._page(session, time, fields[3], fields[5:])
        else:
            self._click(session, time, fields[3])

    def _page(self, session: str, time: int, query: str, documents: list[str]) -> None:
        number = self.latest[session][2] + 1 if session in self.latest else 1
        impression = f"{session}-{number}"
        self.latest[session] = impression, query, number
        for position, document in enumerate(documents, start=1):
            self.shown[session, document] = self._row(impression, query, document, position, 0, time, session)

    def _click(self, session: str, time: int, document: str) -> None:
        row = self.shown.get((session, document))
        if row is not None:
            self.clicked.append(row)
            return
        impression, query, _ = self.latest.get(session, (f"{session}-0", None, 0))
        self._row(impression, query, document, None, 1, time, session)

    def _row(self, *values: object) -> int:
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)
        return len(self.columns["click"]) - 1

    def table(self) -> pa.Table:
        click = np.array(self.columns["click"], np.int32)
        click[self.clicked] = 1
        return pa.table({**self.columns, "click": click}, schema=SCHEMA)
