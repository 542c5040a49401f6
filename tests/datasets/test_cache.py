import hashlib
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from saferank.datasets import cache as module
from saferank.datasets.cache import Arrays, cache_directory, cached_arrays
from saferank.datasets.letor import read_letor


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file.txt"
    path.write_text("content")
    return path


class Maker:
    """Makes arrays, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Arrays:
        self.calls += 1
        return {"values": np.arange(6.0).reshape(2, 3), "names": np.array(["a", "bc"])}


def age(file: Path) -> None:
    """Let the file's stamp be old enough to be trusted."""
    os.utime(file, ns=(10**18, 10**18))


def entries(cache: Path) -> list[Path]:
    return [path.parent for path in cache.rglob("sizes.json")]


def test_second_read_is_a_memory_map(file: Path) -> None:
    make = Maker()
    made = cached_arrays("kind", [file], make)
    mapped = cached_arrays("kind", [file], make)
    assert make.calls == 1
    assert isinstance(mapped["values"], np.memmap)
    assert not mapped["values"].flags.writeable
    assert mapped.keys() == made.keys()
    for name in made:
        np.testing.assert_array_equal(made[name], mapped[name])


@pytest.mark.parametrize("same_size", ["CONTENT", "contents"])
def test_changed_content_is_made_anew(file: Path, same_size: str) -> None:
    make = Maker()
    cached_arrays("kind", [file], make)
    file.write_text(same_size)
    cached_arrays("kind", [file], make)
    assert make.calls == 2


def test_kind_and_every_file_count(file: Path, tmp_path: Path) -> None:
    make = Maker()
    beside = tmp_path / "beside"
    beside.write_text("1")
    cached_arrays("kind", [file], make)
    cached_arrays("other", [file], make)
    cached_arrays("kind", [file, beside], make)
    beside.write_text("2")
    cached_arrays("kind", [file, beside], make)
    assert make.calls == 4
    cached_arrays("kind", [Path(shutil.copy(file, tmp_path / "copy.txt"))], make)  # the content counts, not the name
    assert make.calls == 4


def test_a_settled_file_is_not_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLED", -(10**18))
    make = Maker()
    cached_arrays("kind", [file], make)
    monkeypatch.setattr(hashlib, "file_digest", None)  # reading would now fail
    cached_arrays("kind", [file], make)
    assert make.calls == 1


def test_a_file_changed_a_moment_ago_is_read_again(file: Path, cache: Path) -> None:
    cached_arrays("kind", [file], Maker())
    assert not list(cache.rglob("stamps/*"))


def test_settled_file_rewritten_with_the_same_size_and_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLED", -(10**18))
    make = Maker()
    age(file)
    cached_arrays("kind", [file], make)
    other = file.with_name("other")
    other.write_text("CONTENT")
    other.replace(file)
    age(file)
    cached_arrays("kind", [file], make)
    assert make.calls == 2


def pickle(entry: Path) -> None:
    np.save(entry / "values.npy", np.array([{}], dtype=object), allow_pickle=True)
    sizes = json.loads((entry / "sizes.json").read_text())
    sizes["values"] = (entry / "values.npy").stat().st_size
    (entry / "sizes.json").write_text(json.dumps(sizes))


def replace_by_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut short": lambda entry: os.truncate(entry / "values.npy", 20),
    "sizes missing": lambda entry: (entry / "sizes.json").unlink(),
    "sizes of another type": lambda entry: (entry / "sizes.json").write_text("[]"),
    "pickle": pickle,
    "a file": replace_by_file,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_entry_is_made_anew(file: Path, cache: Path, damage: Callable[[Path], None]) -> None:
    make = Maker()
    cached_arrays("kind", [file], make)
    (entry,) = entries(cache)
    damage(entry)
    for _ in range(2):
        arrays = cached_arrays("kind", [file], make)
        np.testing.assert_array_equal(arrays["values"], Maker()()["values"])
    assert make.calls == 2


def test_damaged_stamp_is_ignored(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SETTLED", -(10**18))
    make = Maker()
    cached_arrays("kind", [file], make)
    (stamp,) = cache.glob("stamps/*")
    for text in ("", "7", '{"stamp": []}'):
        stamp.write_text(text)
        cached_arrays("kind", [file], make)
    assert make.calls == 1


def test_interrupted_write_leaves_nothing(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cached_arrays("kind", [file], Maker())
    assert list((cache / "kind").iterdir()) == []


@pytest.mark.parametrize("trouble", ["full disk", "no folder", "no home"])
def test_a_cache_that_cannot_be_written_does_not_matter(
    trouble: str, file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device") if trouble == "full disk" else RuntimeError("no home directory")

    if trouble == "full disk":
        monkeypatch.setattr(np, "save", fail)
    elif trouble == "no folder":
        cache.write_text("a file where the folder should be")
    else:
        monkeypatch.delenv("SAFERANK_CACHE")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", fail)
    assert cached_arrays("kind", [file], Maker())["names"].tolist() == ["a", "bc"]


def test_many_at_once(file: Path, cache: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: cached_arrays("kind", [file], Maker()), range(32)))
    for arrays in found:
        np.testing.assert_array_equal(arrays["values"], Maker()()["values"])
    assert [path.name for path in (cache / "kind").iterdir()] == [entries(cache)[0].name]


def test_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFERANK_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert cache_directory() == Path("/a")
    monkeypatch.delenv("SAFERANK_CACHE")
    assert cache_directory() == Path("/b/saferank")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/c")
    assert cache_directory() == Path("/c/.cache/saferank")


def test_letor_from_the_cache_equals_letor_parsed(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("2 qid:a 1:0.5 #docid = D1\n0 qid:a 2:7\n1 qid:b 3:1 # Ä\n")
    parsed, mapped = read_letor(path), read_letor(path)
    assert isinstance(mapped.features.base, np.memmap)
    for name in ("features", "offsets", "labels", "query_ids", "document_ids"):
        np.testing.assert_array_equal(getattr(parsed, name), getattr(mapped, name))
        assert not getattr(parsed, name).flags.writeable
        assert not getattr(mapped, name).flags.writeable
    assert (parsed.feature_names, parsed.source) == (mapped.feature_names, mapped.source)
    assert len(entries(cache)) == 1


def test_letor_cached_by_number_of_features_and_file_beside(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("2 1:1\n1 1:2\n")
    beside = tmp_path / "train.txt.query"
    beside.write_text("2")
    assert read_letor(path).features.shape == (2, 1)
    assert read_letor(path, features=4).features.shape == (2, 4)
    beside.write_text("1\n1")
    assert read_letor(path).queries == 2


def test_letor_without_cache_writes_nothing(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("2 qid:1 1:1\n")
    read_letor(path, cache=False)
    assert not cache.exists()
