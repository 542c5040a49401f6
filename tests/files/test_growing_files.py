import time
from collections.abc import Callable
from pathlib import Path

import pytest

from saferank.files.growing_files import file_sizes, wait_until_still


def test_sizes(tmp_path: Path) -> None:
    (tmp_path / "days").mkdir()
    one, two, other = tmp_path / "days/one.csv", tmp_path / "days/two.csv", tmp_path / "a.db"
    for file, text in ((one, "1"), (two, "22"), (other, "333")):
        file.write_text(text)
    assert file_sizes(str(one)) == {one: 1}
    assert file_sizes(str(tmp_path / "days")) == {one: 1, two: 2}
    assert file_sizes(str(tmp_path / "days/t*.csv")) == {two: 2}
    assert file_sizes(f"duckdb://{other}/log") == file_sizes(f"duckdb://{other}") == {other: 3}
    assert file_sizes(str(tmp_path / "none.csv")) == {}


@pytest.mark.parametrize(("steps", "pauses"), [(0, 1), (3, 4)])
def test_waits_while_a_file_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, pauses: int) -> None:
    file, slept = tmp_path / "log.csv", list[float]()
    file.write_text("x")

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) <= steps:
            file.write_text(file.read_text() + "x")

    monkeypatch.setattr(time, "sleep", sleep)
    wait_until_still(str(tmp_path), 7.0)
    assert slept == [7.0] * pauses


def test_a_file_that_goes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part.csv").write_text("x")
    stat: Callable[..., object] = Path.stat
    seen: list[Path] = []

    def gone(path: Path, **options: bool) -> object:
        if path.name == "part.csv" and len(seen) < 2:
            seen.append(path)
            if len(seen) == 2:  # it was a file when that was asked
                raise FileNotFoundError(path)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", gone)
    wait_until_still(str(tmp_path), 0.0)
    assert len(seen) == 2
