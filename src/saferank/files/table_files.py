"""Which files of tables a path, a folder or a pattern such as `day-*.parquet` stands for."""

from glob import glob, has_magic
from pathlib import Path

from saferank.engine.errors import DataError


def table_files(path: str | Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the file itself, all files below a folder that end so, or all that match a pattern, in order.

    None at all is an error.
    """
    place = Path(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        files = [file for file in place.rglob("*") if file.name.lower().endswith(suffixes)]
        nothing = f"there is no file in it that ends in {', '.join(suffixes)}."
    else:
        files = [Path(file) for file in glob(str(path), recursive=True)]
        nothing = "no file matches this pattern" if has_magic(str(path)) else "there is no such file or folder"
        nothing += "; check the path."
    files = sorted(file for file in files if file.is_file())
    if not files:
        raise DataError(nothing, file=path)
    return files
