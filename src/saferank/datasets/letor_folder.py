"""A data set in a folder, in the layout of the public learning-to-rank collections."""

from pathlib import Path

import numpy as np

from saferank.datasets.dataset import Dataset
from saferank.datasets.letor import COMPRESSED, read_letor
from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData

LAYOUTS = {
    "LETOR, MSLR-WEB, Istella": ("train.txt", "vali.txt", "test.txt"),
    "Yahoo!": ("set1.train.txt", "set1.valid.txt", "set1.test.txt"),
}
"""File names of the training, validation and test split; the last two may be missing."""

_SPLITS = ("train", "validation", "test")
_CARVED = {"validation": 1, "test": 2}


def read_letor_folder(path: str | Path) -> Dataset:
    """Read the data set in this folder, or in `Fold1` below it; files may be compressed (.gz, .bz2, .xz).

    A split without a file (Istella has no validation split) is carved out of training by query: of every five
    training queries in file order, the second goes to validation and the third to test, where these are
    missing. That is 20% each, and the same on every run. All splits get the same number of features, the
    largest of any.
    """
    folder = Path(path)
    files = _find(folder)
    found = {split: read_letor(file) for split, file in files.items()}
    features = max(data.features.shape[1] for data in found.values())
    for split, file in files.items():
        if found[split].features.shape[1] < features:
            found[split] = read_letor(file, features=features)
    return Dataset(name=folder.resolve().name, **_carve(found))


def _find(folder: Path) -> dict[str, Path]:
    """Return the file of each split that has one."""
    if not folder.is_dir():
        raise DataError("there is no such folder; check the path.", file=folder)
    for place in (folder, folder / "Fold1"):
        for names in LAYOUTS.values():
            files = {
                split: next(filter(Path.is_file, (place / f"{name}{suffix}" for suffix in ("", *COMPRESSED))), None)
                for split, name in zip(_SPLITS, names, strict=True)
            }
            if files["train"]:
                return {split: file for split, file in files.items() if file}
    wanted = "; ".join(f"{', '.join(names)} ({layout})" for layout, names in LAYOUTS.items())
    looked = f"Looked here and in Fold1 for {wanted}, plain or compressed ({', '.join(COMPRESSED)})."
    raise DataError(f"holds no training file. {looked}", file=folder)


def _carve(found: dict[str, RankingData]) -> dict[str, RankingData]:
    """Return all three splits, the missing ones taken out of training."""
    missing = {split: turn for split, turn in _CARVED.items() if split not in found}
    if not missing:
        return found
    train = found["train"]
    if train.queries <= max(missing.values()):
        splits = " and ".join(missing)
        message = f"has too few queries ({train.queries}) to carve {splits} out of it; add the missing file."
        raise DataError(message, file=train.source)
    turns = np.arange(train.queries) % 5
    carved = {split: train.subset(turns == turn) for split, turn in missing.items()}
    return {**found, **carved, "train": train.subset(~np.isin(turns, [*missing.values()]))}
