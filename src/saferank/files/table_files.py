"""Which files of tables a path, a folder or a pattern such as `day-*.parquet` stands for."""

from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

from saferank.engine.errors import DataError

KINDS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
}
"""Kinds of files -> how their names end."""


def file_kind(file: Path) -> str | None:
    """Return the kind of a file by its name, None for any other."""
    name = file.name.lower()
    return next((kind for kind, suffixes in KINDS.items() if name.endswith(suffixes)), None)


def of_one_kind(files: Sequence[Path], path: str | Path) -> list[Path]:
    """Return the files of a folder or a pattern, which must be of one kind: half of a table is none.

    JSON beside Parquet or CSV in a folder is not part of the table (a ledger, a certificate), and is left out.
    """
    first: dict[str | None, Path] = {}
    for file in files:
        first.setdefault(file_kind(file), file)
    if Path(path).is_dir() and len(first) > 1:
        first.pop("json", None)
    if len(first) > 1:
        one, other = list(first.values())[:2]
        message = (
            f"contains files of several kinds, such as {one.name} and {other.name}; give a folder or a pattern with"
        )
        raise DataError(f"{message} files of one kind.", file=path)
    return [file for file in files if file_kind(file) in first]


def table_files(path: str | Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the file itself, all files below a folder that end so, or all that match a pattern, in order.

    None at all is an error.
    """
    place = Path(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        files = [file for file in place.rglob("*") if file.name.lower().endswith(suffixes)]
        nothing = f"contains no file that ends in {', '.join(suffixes)}."
    else:
        files = [Path(file) for file in glob(str(path), recursive=True)]
        nothing = "no file matches this pattern" if has_magic(str(path)) else "there is no such file or folder"
        nothing += "; check the path."
    files = sorted(file for file in files if file.is_file())
    if not files:
        raise DataError(nothing, file=path)
    return files
