"""Where a log lies."""

from pathlib import Path

import pytest

from saferank.engine.errors import DataError
from saferank.logs.source import find_source


def test_no_folder_is_left_of_a_connection_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "no.db").write_text("no database" * 1000)
    with pytest.raises(DataError) as caught:
        find_source(f"duckdb://{tmp_path / 'no.db'}/log")
    assert caught.value.file == str(tmp_path / "no.db")
    assert list((tmp_path / "scratch").iterdir()) == []
