"""A prepared data set in a folder of arrays, so that several processes map the same memory."""

from pathlib import Path

import numpy as np

from saferank.datasets.dataset import Dataset
from saferank.engine.types.ranking_data import RankingData

KINDS = ("features", "offsets", "labels")


def save_prepared(dataset: Dataset, folder: Path) -> None:
    """Write features, labels and offsets of each part."""
    for name, part in dataset.splits.items():
        for kind in KINDS:
            np.save(folder / f"{name}.{kind}.npy", getattr(part, kind))


def load_prepared(name: str, folder: Path) -> Dataset:
    """Map what `save_prepared` wrote."""

    def part(which: str) -> RankingData:
        features, offsets, labels = (np.load(folder / f"{which}.{kind}.npy", mmap_mode="r") for kind in KINDS)
        return RankingData(features, offsets, labels, source=name, check_finite=False)

    return Dataset(name, part("train"), part("validation"), part("test"))
