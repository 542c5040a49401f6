import errno
import os
import re
from pathlib import Path

import pytest

from saferank.engine.errors import UsageError
from saferank.files.atomic_write import check_not_read, check_parents, whole_file, whole_folder


def test_a_file_where_a_folder_would_have_to_be(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    for path in (tmp_path / "a.txt" / "b", tmp_path / "a.txt" / "b" / "c"):
        message = re.escape(f"{path}: {tmp_path / 'a.txt'} is a file; name a folder in a folder.")
        with pytest.raises(UsageError, match=message):
            check_parents(path, "folder")
    check_parents(tmp_path / "new" / "newer" / "b")
    check_parents(tmp_path / "a.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_what_is_read_is_not_replaced(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    check_not_read(one, [one])  # not there
    one.write_text("x")
    two.symlink_to(one)
    check_not_read(one, [tmp_path / "three"])
    for path in (one, two):
        with pytest.raises(
            UsageError, match=re.escape(f"`out` {path} is also read by this command; name another file.")
        ):
            check_not_read(path, [tmp_path / "three", one])


def interrupted(path: Path) -> None:
    path.write_text("half")
    raise KeyboardInterrupt


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    for text in ("one", "two"):
        with whole_file(path) as unfinished:
            unfinished.write_text(text)
            assert not path.exists() or path.read_text() == "one"
        assert path.read_text() == text
    with pytest.raises(KeyboardInterrupt), whole_file(path) as unfinished:
        interrupted(unfinished)
    assert path.read_text() == "two"
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]


def test_a_folder_is_whole_or_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "stats"
    for text in ("one", "two"):
        with whole_folder(folder) as unfinished:
            (unfinished / text).write_text(text)
        assert [file.name for file in folder.iterdir()] == [text]
    with pytest.raises(KeyboardInterrupt), whole_folder(folder) as unfinished:
        interrupted(unfinished / "half")
    assert [file.name for file in folder.iterdir()] == ["two"]
    assert [file.name for file in folder.parent.iterdir()] == ["stats"]


def test_a_faster_writer_of_the_same_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, replace = tmp_path / "stats", Path.replace
    with whole_folder(folder):
        pass

    def beaten(path: Path, target: Path) -> Path:
        if target == folder:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", beaten)
    with pytest.raises(OSError, match="not empty"), whole_folder(folder):
        pass
    assert list(tmp_path.iterdir()) == []  # the other writer's folder would be here


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can make a file")
def test_a_folder_that_takes_no_files() -> None:
    """Not one without permissions, which root may write to all the same."""
    for path in (Path("/proc/self/a"), Path("/proc/self/new/b")):
        with pytest.raises(UsageError, match=re.escape(f"{path}: cannot be written, because no file can be created")):
            check_parents(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError):
        check_parents(tmp_path / "a")
