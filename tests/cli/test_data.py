from pathlib import Path

import numpy as np
import pytest

from saferank.datasets import dataset
from saferank.datasets.dataset import Dataset
from saferank.engine.types.ranking_data import RankingData
from tests.cli.running import cells, run_here


def part(lengths: list[int], labels: list[float]) -> RankingData:
    return RankingData(np.zeros((len(labels), 3), np.float32), np.cumsum([0, *lengths]), np.array(labels, np.float32))


def show(shown: Dataset, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    monkeypatch.setattr(dataset, "load_dataset", lambda _: shown)
    ran = run_here(["data", "by-hand"], monkeypatch, capsys)
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.splitlines()[0].strip() == shown.name
    return cells(ran.out)


def test_by_hand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    train = part([1, 2, 5], [0, 0, 1, 0, 0, 2, 0, 1])
    rows = show(Dataset("by hand", train, part([2], [0, 0]), part([1200], [1] * 1200)), monkeypatch, capsys)
    assert rows["queries"] == ["3", "1", "1"]
    assert rows["documents"] == ["8", "2", "1,200"]
    assert rows["features"] == ["3", "3", "3"]
    assert rows["min"] == ["1", "2", "1,200"]
    assert rows["median"] == ["2.0", "2.0", "1,200.0"]
    assert rows["mean"] == ["2.7", "2.0", "1,200.0"]
    assert rows["max"] == ["5", "2", "1,200"]
    assert rows["label 0"] == ["62.5%", "100.0%", "0.0%"]
    assert rows["label 1"] == ["25.0%", "0.0%", "100.0%"]
    assert rows["label 2"] == ["12.5%", "0.0%", "0.0%"]
    assert rows["queries without relevant document"] == ["1 (33.3%)", "1 (100.0%)", "0 (0.0%)"]


def test_labels_that_are_no_grades(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    many = part([20], list(np.arange(20) / 4))
    rows = show(Dataset("clicks", many, many, many), monkeypatch, capsys)
    assert rows["labels above 0"] == ["95.0%"] * 3
    assert rows["label min to max"] == ["0 to 4.75"] * 3


def test_without_labels(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    unlabelled = RankingData(np.zeros((1, 1), np.float32), np.array([0, 1]), source="test.txt")
    monkeypatch.setattr(dataset, "load_dataset", lambda _: Dataset("x", unlabelled, unlabelled, unlabelled))
    ran = run_here(["data", "x"], monkeypatch, capsys)
    assert (ran.exit_code, ran.out) == (1, "")
    assert ran.err.startswith("Error: test.txt: ")


def test_synthetic_fits_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran = run_here(["data", "synthetic:small"], monkeypatch, capsys)
    assert ran.exit_code == 0
    assert "synthetic:small" in ran.out
    assert cells(ran.out)["features"] == ["136"] * 3
    assert max(map(len, ran.out.splitlines())) <= 80


def test_letor_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for file, labels in (("train.txt", (0, 1)), ("vali.txt", (2,)), ("test.txt", (0,))):
        lines = [f"{label} qid:1 1:0.5 2:{label}\n" for label in labels]
        (tmp_path / file).write_text("".join(lines))
    ran = run_here(["data", str(tmp_path)], monkeypatch, capsys)
    assert (ran.exit_code, ran.err) == (0, "")
    rows = cells(ran.out)
    assert rows["documents"] == ["2", "1", "1"]
    assert rows["label 1"] == ["50.0%", "0.0%", "0.0%"]


def test_no_such_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran = run_here(["data", str(tmp_path / "nowhere")], monkeypatch, capsys)
    assert ran.exit_code in (1, 2)
    assert ran.err.startswith("Error: ")
    assert "nowhere" in ran.err
