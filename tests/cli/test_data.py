from pathlib import Path

import numpy as np
import pytest

from saferank.datasets import dataset
from saferank.datasets.dataset import Dataset
from saferank.engine.types.ranking_data import RankingData
from tests.cli.running import Call, cells


def part(lengths: list[int], labels: list[float]) -> RankingData:
    return RankingData(np.zeros((len(labels), 3), np.float32), np.cumsum([0, *lengths]), np.array(labels, np.float32))


def test_by_hand(saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Dataset("by hand", part([1, 2, 5], [0, 0, 1, 0, 0, 2, 0, 1]), part([2], [0, 0]), part([1200], [1] * 1200))
    monkeypatch.setattr(dataset, "load_dataset", lambda _: shown)
    ran = saferank("data", "by-hand")
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].strip() == "by hand"
    expected = {
        "queries": ["3", "1", "1"],
        "documents": ["8", "2", "1,200"],
        "features": ["3", "3", "3"],
        "min": ["1", "2", "1,200"],
        "median": ["2.0", "2.0", "1,200.0"],
        "mean": ["2.7", "2.0", "1,200.0"],
        "max": ["5", "2", "1,200"],
        "label 0": ["62.5%", "100.0%", "0.0%"],
        "label 1": ["25.0%", "0.0%", "100.0%"],
        "label 2": ["12.5%", "0.0%", "0.0%"],
        "queries without a relevant document": ["1 (33.3%)", "1 (100.0%)", "0 (0.0%)"],
    }
    assert {name: row for name, row in cells(ran.out).items() if name in expected} == expected


def test_labels_that_are_no_grades(saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    many = part([20], list(np.arange(20) / 4))
    monkeypatch.setattr(dataset, "load_dataset", lambda _: Dataset("clicks", many, many, many))
    rows = cells(saferank("data", "clicks").out)
    assert rows["labels above 0"] == ["95.0%"] * 3
    assert rows["label min to max"] == ["0 to 4.75"] * 3


def test_without_labels(saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    unlabelled = RankingData(np.zeros((1, 1), np.float32), np.array([0, 1]), source="test.txt")
    monkeypatch.setattr(dataset, "load_dataset", lambda _: Dataset("x", unlabelled, unlabelled, unlabelled))
    ran = saferank("data", "x")
    assert (ran.exit_code, ran.out) == (1, "")
    assert ran.err.startswith("Error: test.txt: ")


def test_synthetic_fits_80_columns(saferank: Call) -> None:
    ran = saferank("data", "synthetic:small")
    assert ran.exit_code == 0
    assert "synthetic:small" in ran.out
    assert cells(ran.out)["features"] == ["136"] * 3
    assert max(map(len, ran.out.splitlines())) <= 80


def test_letor_folder(saferank: Call, tmp_path: Path) -> None:
    for file, labels in (("train.txt", (0, 1)), ("vali.txt", (2,)), ("test.txt", (0,))):
        (tmp_path / file).write_text("".join(f"{label} qid:1 1:0.5 2:{label}\n" for label in labels))
    ran = saferank("data", tmp_path)
    assert (ran.exit_code, ran.err) == (0, "")
    assert cells(ran.out)["documents"] == ["2", "1", "1"]
    missing = saferank("data", tmp_path / "nowhere")
    assert missing.exit_code in (1, 2)
    assert missing.err.startswith("Error: ")
    assert "nowhere" in missing.err
