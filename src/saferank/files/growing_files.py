"""Files that somebody is still writing: read them when they have stopped growing."""

import time
from collections.abc import Iterator
from glob import glob
from pathlib import Path

PAUSE = 1.0
"""Seconds between two looks at the sizes."""


def file_sizes(path: str) -> dict[Path, int]:
    """Return the size in bytes of a file, of all files below a folder or of a pattern, or of a DuckDB database."""
    return {file: file.stat().st_size for file in _files(path) if file.is_file()}


def wait_until_still(path: str, pause: float = PAUSE) -> None:
    """Return when no file there has appeared, gone or changed its size for `pause` seconds."""
    before = None
    while (now := _settled_sizes(path)) is None or now != before:
        before = now
        time.sleep(pause)


def _settled_sizes(path: str) -> dict[Path, int] | None:
    try:
        return file_sizes(path)
    except FileNotFoundError:  # one of them went in this moment
        return None


def _files(path: str) -> Iterator[Path]:
    place = Path(path.removeprefix("duckdb://"))
    if path.startswith("duckdb://") and not place.is_file():
        place = place.parent  # what follows is the table
    if place.is_dir():
        yield from place.rglob("*")
    elif place.exists():
        yield place
    else:
        yield from map(Path, glob(path, recursive=True))
