"""Whether something can be written at a path: asked before the work, not after it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from saferank.errors import UsageError


def check_parents(path: Path, kind: str = "file") -> None:
    """Raise if a file stands where a folder above `path` would have to be; `kind` is what is to be written."""
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise UsageError(f"{path}: {parent} is a file; name a {kind} in a folder.")
            return


def check_not_read(path: Path, read: Iterable[Path]) -> None:
    """Raise if `path` is one of the files that are read: it would be replaced by what is made from it."""
    if path.exists() and any(file.exists() and path.samefile(file) for file in read):
        raise UsageError(f"--out {path} is what is read; name another file.")
