"""Files that state their format: only their own are read, and their fields are checked."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from saferank.engine.errors import DataError
from saferank.files.json_format import FileFormat, NewerVersion, finite

FORMAT = FileFormat(
    "saferank-thing", 3, "make", "make it again",
    (lambda old: {"size": old["length"]} | old, lambda old: old | {"rows": [{"name": name} for name in old["rows"]]}),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    name: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class Thing:
    size: int
    rows: tuple[Row, ...]


def test_what_was_marked_is_read(tmp_path: Path) -> None:
    file = tmp_path / "thing.json"
    values = {"size": 3, "rows": [{"name": "a", "values": [1, 2.5]}], "more": None}
    file.write_text(json.dumps(FORMAT.marked(values)))
    assert FORMAT.is_of(file)
    assert FORMAT.read(file) == {"format": "saferank-thing", "version": 3} | values
    assert FORMAT.read_as(file, Thing) == Thing(3, (Row("a", (1.0, 2.5)),))


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"rows": []}, "size"),
        ({"size": "3", "rows": []}, "size"),
        ({"size": 3, "rows": {}}, "rows"),
        ({"size": 3, "rows": [{"name": "a"}, {"name": 1}]}, "rows.1.name"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, values: dict[str, object], field: str) -> None:
    file = tmp_path / "thing.json"
    file.write_text(json.dumps(FORMAT.marked(values)))
    with pytest.raises(DataError, match="; make it again") as error:
        FORMAT.read_as(file, Thing)
    assert (error.value.file, error.value.column) == (file, field)


@pytest.mark.parametrize(
    ("text", "message", "is_of"),
    [
        (None, "there is no such file; check the path. `saferank make` writes one.", False),
        (b"{", "is not JSON (", False),
        (b"\xff\xfe\x00", "is not JSON (", False),
        (b"[1]", "was not written by `saferank make`; check the path.", False),
        (b'{"format": "saferank-other", "version": 3}', "was not written by `saferank make`; check the path.", False),
        (b'{"format": "saferank-thing"}', "has version None, which does not exist; make it again.", True),
        (b'{"format": "saferank-thing", "version": 0}', "has version 0, which does not exist; make it again.", True),
        (b'{"format": "saferank-thing", "version": 1}', "has version 1, but not the fields of that version (", True),
    ],
)
def test_others_are_not(tmp_path: Path, text: bytes | None, message: str, is_of: bool) -> None:
    file = tmp_path / "thing.json"
    if text is not None:
        file.write_bytes(text)
    assert FORMAT.is_of(file) == is_of
    assert not FORMAT.is_of(tmp_path)
    with pytest.raises(DataError) as error:
        FORMAT.read(file)
    assert str(error.value).startswith(f"{file}: {message}")


@pytest.mark.parametrize(
    "old",
    [
        {"version": 1, "length": 3, "rows": ["a"]},
        {"version": 2, "size": 3, "rows": ["a"]},
        {"version": 3, "size": 3, "rows": [{"name": "a"}]},
    ],
)
def test_earlier_versions_are_upgraded_step_by_step(tmp_path: Path, old: dict[str, object]) -> None:
    file = tmp_path / "thing.json"
    file.write_text(json.dumps({"format": "saferank-thing"} | old))
    assert FORMAT.read_as(file, Thing) == Thing(3, (Row("a"),))
    assert FORMAT.read(file)["version"] == 3


def test_a_later_version_needs_a_later_saferank(tmp_path: Path) -> None:
    file = tmp_path / "thing.json"
    for writer in ({}, {"saferank": "7.1"}):
        file.write_text(json.dumps({"format": "saferank-thing", "version": 4} | writer))
        with pytest.raises(NewerVersion) as error:
            FORMAT.read(file)
        assert error.value.file == file
        assert FORMAT.is_of(file)
    assert "7.1" in str(error.value)


def test_no_version_without_the_steps_to_it() -> None:
    with pytest.raises(ValueError, match="saferank-thing"):
        FileFormat("saferank-thing", 2, "make", "make it again")


def test_numbers_that_json_lacks_become_null_at_any_depth() -> None:
    values = {"a": math.nan, "b": [1, -math.inf, {"c": (math.inf, 2.5, "nan", None, True)}]}
    assert finite(values) == {"a": None, "b": [1, None, {"c": [None, 2.5, "nan", None, True]}]}
    assert json.dumps(finite(values), allow_nan=False)
