"""A data set by name: a folder in LETOR layout, or `synthetic:PRESET`."""

from dataclasses import dataclass

from saferank.engine.types.ranking_data import RankingData


@dataclass(frozen=True, eq=False)
class Dataset:
    """The three splits of a labelled data set. Features are raw: as the file has them."""

    name: str
    train: RankingData
    validation: RankingData
    test: RankingData

    @property
    def splits(self) -> dict[str, RankingData]:
        """The splits by name, in reading order."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


def load_dataset(name: str) -> Dataset:
    """Load `synthetic:small` (or another preset, followed by `@SEED`), or the LETOR folder at this path."""
    if name.startswith("synthetic:"):
        from saferank.datasets.synthetic import synthetic_dataset

        return synthetic_dataset(name.removeprefix("synthetic:"))
    from saferank.datasets.letor_folder import read_letor_folder

    return read_letor_folder(name)
