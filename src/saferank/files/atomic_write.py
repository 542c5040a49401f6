"""Atomic writes of files and folders, and checks before the work starts that what it makes can be written."""

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from saferank.engine.errors import UsageError


def check_parents(path: Path, kind: str = "file") -> None:
    """Raise if nothing can be written at `path`; `kind` is what is to be written.

    Missing folders above it will be made. The first that is there has to be a folder in which a file can be made.
    """
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise UsageError(f"{path}: {parent} is a file; name a {kind} in a folder.")
            check_writable(parent, path, kind)
            return


def check_writable(folder: Path, path: Path, kind: str) -> None:
    """Raise if no file can be made in the folder, by making one: permissions do not say all (a read-only disk)."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = f"cannot be written, because no file can be created in {folder} ({error.strerror or error})"
        raise UsageError(f"{path}: {reason}; name a {kind} elsewhere.") from error


def check_not_read(path: Path, read: Iterable[Path]) -> None:
    """Raise if `path` is one of the files that are read: it would be replaced by what is made from it."""
    if path.exists() and any(file.exists() and path.samefile(file) for file in read):
        raise UsageError(f"--out {path} is also read by this command; name another file.")


def check_output_file(path: Path, read: Iterable[str | Path | None] = (), *, option: str = "--out") -> None:
    """Raise if `path` is a folder, lies below a file, cannot be written, or is one of the files that are read."""
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder; name a file.")
    check_parents(path)
    check_not_read(path, [Path(file) for file in read if file is not None])


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes `path` once all is written; an error leaves nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _beside(path, "unfinished")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        with contextlib.suppress(OSError):  # the first error is the one to report
            unfinished.unlink()


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to write to, which becomes `folder`, in place of an old one, once all is written."""
    unfinished, old = _beside(folder, "unfinished"), _beside(folder, "old")
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        if folder.exists():
            folder.replace(old)
        unfinished.replace(folder)
    finally:
        if not folder.exists():  # the new one could not be put in its place
            with contextlib.suppress(OSError):  # there is no old one, or another writer was faster
                old.replace(folder)
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _beside(path: Path, kind: str) -> Path:
    """Return a path of this thread's own, on the same file system."""
    return path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.{kind}")
