"""Files that tell their format: only their own are read."""

import json
from pathlib import Path

import pytest

from saferank.engine.errors import DataError
from saferank.files.json_format import FileFormat

FORMAT = FileFormat("saferank-thing", 2, "make", "make it again")


def test_what_was_marked_is_read(tmp_path: Path) -> None:
    file = tmp_path / "thing.json"
    file.write_text(json.dumps(FORMAT.marked({"size": 3})))
    assert FORMAT.is_of(file)
    assert FORMAT.read(file) == {"format": "saferank-thing", "version": 2, "size": 3}


@pytest.mark.parametrize(
    ("text", "message", "is_of"),
    [
        (None, "there is no such file, and `saferank make` writes one; check the path.", False),
        ("{", "is not JSON (", False),
        ("[1]", "was not written by `saferank make`; check the path.", False),
        ('{"format": "saferank-other", "version": 2}', "was not written by `saferank make`; check the path.", False),
        (
            '{"format": "saferank-thing", "version": 1}',
            "has version 1, but this saferank reads 2; make it again.",
            True,
        ),
        ('{"format": "saferank-thing"}', "has version None, but this saferank reads 2; make it again.", True),
    ],
)
def test_others_are_not(tmp_path: Path, text: str | None, message: str, is_of: bool) -> None:
    file = tmp_path / "thing.json"
    if text is not None:
        file.write_text(text)
    assert FORMAT.is_of(file) == is_of
    with pytest.raises(DataError) as error:
        FORMAT.read(file)
    assert str(error.value).startswith(f"{file}: {message}")


def test_a_folder_or_bytes_are_none(tmp_path: Path) -> None:
    assert not FORMAT.is_of(tmp_path)
    (tmp_path / "thing.json").write_bytes(b"\xff\xfe\x00")
    assert not FORMAT.is_of(tmp_path / "thing.json")
    with pytest.raises(DataError, match="is not JSON"):
        FORMAT.read(tmp_path / "thing.json")
