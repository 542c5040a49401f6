"""Arrays made from files once, and memory-mapped from then on.

An entry is a folder of `.npy` files named by the content of the files that it was made from, so a moved or copied file
finds its entry, and a changed one does not. Entries are written atomically. A damaged entry is made again; if the
cache cannot be written, nothing is kept.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saferank.files.atomic_write import whole_file, whole_folder

Arrays = dict[str, NDArray[np.generic]]

_SETTLED = 2_000_000_000
"""Nanoseconds after which a change to a file is sure to show in its time stamp."""


def cache_directory() -> Path:
    """Return `$SAFERANK_CACHE`, or else `$XDG_CACHE_HOME/saferank`, or else `~/.cache/saferank`."""
    if chosen := os.environ.get("SAFERANK_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saferank"


def cached_arrays(kind: str, files: Sequence[Path], make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that `make` makes from these files: memory-mapped from the cache, if they are there.

    `kind` names what is made from the files: the format, its version, the options. Arrays are read-only. None may be
    empty.
    """
    try:
        cache = cache_directory()
        entry = cache / kind / _content_hash(files, cache / "stamps")
        if arrays := _read(entry):
            return arrays
    except (OSError, RuntimeError):  # no permission; no home directory
        return make()
    arrays = make()
    with suppress(OSError), whole_folder(entry) as unfinished:  # not writable, or the disk is full: nothing is kept
        for name, array in arrays.items():
            np.save(unfinished / f"{name}.npy", array, allow_pickle=False)
        sizes = {name: (unfinished / f"{name}.npy").stat().st_size for name in arrays}
        (unfinished / "sizes.json").write_text(json.dumps(sizes))
    return arrays


def _read(entry: Path) -> Arrays | None:
    """Map an entry's arrays; None if there is no such entry, or a damaged one."""
    try:
        sizes = json.loads((entry / "sizes.json").read_text())
        if any((entry / f"{name}.npy").stat().st_size != size for name, size in sizes.items()):
            return None
        return {name: np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in sizes}
    except (OSError, ValueError, AttributeError):
        return None


def _content_hash(files: Sequence[Path], stamps: Path) -> str:
    """Return a hash of the bytes of all files; a recorded stamp spares reading files that have not changed since."""
    names = "\0".join(str(file.resolve()) for file in files)
    record = stamps / f"{hashlib.sha256(names.encode()).hexdigest()[:32]}.json"
    status = [file.stat() for file in files]
    stamp = [[of.st_mtime_ns, of.st_ctime_ns, of.st_size, of.st_ino] for of in status]
    try:
        known = json.loads(record.read_text())
        if known["stamp"] == stamp:
            return str(known["hash"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            total.update(hashlib.file_digest(opened, "sha256").digest())
    found = total.hexdigest()[:32]
    if all(time.time_ns() - max(entry[:2]) > _SETTLED for entry in stamp):
        with suppress(OSError), whole_file(record) as unfinished:
            unfinished.write_text(json.dumps({"stamp": stamp, "hash": found}))
    return found
