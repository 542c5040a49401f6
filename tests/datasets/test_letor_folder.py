import gzip
from pathlib import Path

import numpy as np
import pytest

from saferank.datasets.dataset import load_dataset
from saferank.datasets.letor_folder import read_letor_folder
from saferank.engine.errors import DataError
from saferank.engine.types.ranking_data import RankingData


def write(path: Path, queries: range | list[int], features: int = 2) -> None:
    """Write two documents per query; feature 1 is the query's number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{document} qid:{q} 1:{q} {features}:0.5\n" for q in queries for document in (0, 1))
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def queries(data: RankingData) -> list[int]:
    assert data.query_ids is not None
    np.testing.assert_array_equal(data.features[::2, 0], data.query_ids.astype(float))
    return [int(query) for query in data.query_ids]


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "vali.txt", "test.txt"),
        ("train.txt.gz", "vali.txt", "test.txt"),
        ("Fold1/train.txt", "Fold1/vali.txt", "Fold1/test.txt"),
        ("set1.train.txt", "set1.valid.txt", "set1.test.txt"),
    ],
)
def test_three_files(tmp_path: Path, names: tuple[str, str, str]) -> None:
    folder = tmp_path / "collection"
    for name, numbers in zip(names, (range(1, 4), range(4, 6), range(6, 7)), strict=True):
        write(folder / name, numbers)
    data = read_letor_folder(folder)
    assert data.name == "collection"
    assert {part: queries(rows) for part, rows in data.splits.items()} == {
        "train": [1, 2, 3],
        "validation": [4, 5],
        "test": [6],
    }
    assert data.test.source == str(folder / names[2])


def test_other_folds_and_the_second_set_are_left_alone(tmp_path: Path) -> None:
    for fold in (1, 2):
        for part in ("train", "vali", "test"):
            write(tmp_path / f"Fold{fold}/{part}.txt", [fold])
    write(tmp_path / "set2.train.txt", [9])
    assert queries(read_letor_folder(tmp_path).train) == [1]


def test_all_splits_have_as_many_features_as_the_widest(tmp_path: Path) -> None:
    for part, features in (("train", 3), ("vali", 5), ("test", 2)):
        write(tmp_path / f"{part}.txt", [7], features)
    data = read_letor_folder(tmp_path)
    assert [rows.features.shape for rows in data.splits.values()] == [(2, 5)] * 3
    assert data.train.features.tolist() == [[7, 0, 0.5, 0, 0]] * 2
    assert data.test.feature_names == ("1", "2", "3", "4", "5")


@pytest.mark.parametrize(
    ("there", "train", "validation", "test"),
    [
        ("test", [1, 3, 4, 5, 6, 8, 9, 10], [2, 7], [90, 91]),
        ("vali", [1, 2, 4, 5, 6, 7, 9, 10], [90, 91], [3, 8]),
        (None, [1, 4, 5, 6, 9, 10], [2, 7], [3, 8]),
    ],
)
def test_a_missing_split_is_carved_out_of_training_by_query(
    tmp_path: Path, there: str | None, train: list[int], validation: list[int], test: list[int]
) -> None:
    write(tmp_path / "train.txt", range(1, 11))
    if there:
        write(tmp_path / f"{there}.txt", [90, 91])
    data = read_letor_folder(tmp_path)
    assert [queries(rows) for rows in data.splits.values()] == [train, validation, test]


def test_what_cannot_be_used(tmp_path: Path) -> None:
    for folder, name in (("nowhere", None), ("no_training", "test.txt"), ("too_few", "train.txt")):
        if name:
            write(tmp_path / folder / name, [1, 2])
        with pytest.raises(DataError) as error:
            read_letor_folder(tmp_path / folder)
        wrong = tmp_path / folder / "train.txt" if folder == "too_few" else tmp_path / folder
        assert str(error.value.file) == str(wrong)


def test_load_dataset_takes_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "here/train.txt", range(1, 4))
    monkeypatch.chdir(tmp_path / "here")
    assert load_dataset(".").name == "here"


@pytest.mark.parametrize(("name", "counts"), [("mq2008", [(471, 9630), (157, 2707), (156, 2874)]), ("mslr-mini", None)])
def test_real_folders(shared_data: Path, name: str, counts: list[tuple[int, int]] | None) -> None:
    folder = shared_data / name
    if not folder.is_dir():
        pytest.skip(f"this data set is not here: no folder {folder}")
    data = read_letor_folder(folder)
    found = [(rows.queries, rows.documents) for rows in data.splits.values()]
    if counts:
        assert found == counts
    else:  # 102 queries and 10,991 documents in all
        assert np.sum(found, axis=0).tolist() == [102, 10_991]
