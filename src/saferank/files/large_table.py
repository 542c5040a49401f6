"""Tables of numbers that may be larger than memory: beyond some size they are mapped to a temporary file.

The operating system can drop the pages of a mapped file when memory is short, which it cannot do with an array. The
file has no name from the start, so it is gone when nothing uses it any more, also after an error or a kill. It lies in
the temporary folder (`TMPDIR`); if that is a file system in memory, nothing is gained.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError

MAPPED_FROM = 1 << 26
"""Bytes from which on a table is mapped; below, it is an array."""
BLOCK = 1 << 16
"""Rows that are copied at a time."""

Table = NDArray[np.float32]
Number = TypeVar("Number", np.float32, np.int64)


class _Pages(mmap.mmap):
    """A map that this module made: shared with its file, so its pages can be dropped without loss."""


class TableWriter:
    """A table of float32, of so many columns, that grows by blocks of rows."""

    def __init__(self, columns: int) -> None:
        self.columns, self.rows = columns, 0
        self._blocks: list[Table] = []
        self._file: IO[bytes] | None = None

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, block: Table) -> None:
        """Add rows."""
        self.rows += len(block)
        self._blocks.append(block)
        if self._file is None and self.rows * self.columns * block.itemsize >= MAPPED_FROM:
            self._file = _unnamed_file()
        if self._file is not None:
            try:
                for rows in self._blocks:
                    self._file.write(np.ascontiguousarray(rows, np.float32).data)
            except OSError as error:
                raise _cannot_write(error) from error
            self._blocks.clear()

    def finish(self) -> Table:
        """Return all rows."""
        shape = self.rows, self.columns
        if self._file is None:
            return np.concatenate(self._blocks, dtype=np.float32) if self._blocks else np.empty(shape, np.float32)
        try:
            self._file.flush()
        except OSError as error:
            raise _cannot_write(error) from error
        with self._file:
            return _mapped(self._file, shape, np.float32)


def new_table(rows: int, columns: int, kind: type[Number] = np.float32) -> NDArray[Number]:  # type: ignore[assignment]
    """Return a table of zeros to write to."""
    size = rows * columns * np.dtype(kind).itemsize
    if size < max(MAPPED_FROM, 1):
        return np.zeros((rows, columns), kind)
    with _unnamed_file() as file:
        try:
            if hasattr(os, "posix_fallocate"):  # a full disk shows here; on a write to a map it would end the process
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        except OSError as error:
            raise _cannot_write(error) from error
        return _mapped(file, (rows, columns), kind)


def taken(table: Table, *, rows: NDArray[np.int64] | None = None, columns: list[int] | None = None) -> Table:
    """Return some rows, or some columns, in the given order, as a new table."""
    out = new_table(len(table) if rows is None else len(rows), table.shape[1] if columns is None else len(columns))
    for part in row_blocks(len(out)):
        block = table[part] if rows is None else table[rows[part]]
        out[part] = block if columns is None else block[:, columns]
    drop_pages(table)
    return out


def row_blocks(rows: int) -> Iterator[slice]:
    """Yield slices of BLOCK rows."""
    yield from (slice(first, min(first + BLOCK, rows)) for first in range(0, rows, BLOCK))


def drop_pages(table: NDArray[Any]) -> None:
    """Let the operating system have the memory of a mapped table; it is read from its file when it is used again."""
    pages = _pages(table)
    if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def is_mapped(table: NDArray[Any]) -> bool:
    """Whether this is a table, or a part of one, that this module mapped."""
    return _pages(table) is not None


def _pages(table: NDArray[Any]) -> _Pages | None:
    base: Any = table
    while base is not None and not isinstance(base, _Pages):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return base


def _unnamed_file() -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(prefix="saferank-")
    except OSError as error:
        raise _cannot_write(error) from error


def _mapped(file: IO[bytes], shape: tuple[int, int], kind: type[Number]) -> NDArray[Number]:
    return np.frombuffer(_Pages(file.fileno(), 0), kind).reshape(shape)


def _cannot_write(error: OSError) -> DataError:
    reason = error.strerror or str(error)
    message = f"has no room for a large table ({reason}); free some space, or set TMPDIR to another folder."
    return DataError(message, file=tempfile.gettempdir())
