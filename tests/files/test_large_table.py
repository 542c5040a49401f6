import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from saferank.engine.errors import DataError
from saferank.files import large_table
from saferank.files.large_table import TableWriter, drop_pages, is_mapped, new_table, row_blocks, taken

ROWS = np.arange(35, dtype=np.float32).reshape(7, 5)


@pytest.fixture(params=[False, True], ids=["array", "mapped"])
def mapped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> bool:
    """Whether tables are mapped; the temporary folder is that of the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(large_table, "MAPPED_FROM", 1 if request.param else 1 << 28)
    monkeypatch.setattr(large_table, "BLOCK", 3)
    return bool(request.param)


def test_what_is_appended_comes_back(mapped: bool) -> None:
    writer = TableWriter(5)
    for part in row_blocks(len(ROWS)):
        writer.append(ROWS[part])
    table = writer.finish()
    np.testing.assert_array_equal(table, ROWS)
    assert is_mapped(table) == mapped


def test_a_table_becomes_a_file_where_it_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_table, "MAPPED_FROM", 4 * 5 * 4)  # four rows
    writer = TableWriter(5)
    for first in range(0, 7, 2):
        writer.append(ROWS[first : first + 2, :])
    table = writer.finish()
    np.testing.assert_array_equal(table, ROWS)
    assert is_mapped(table)


@pytest.mark.usefixtures("mapped")
def test_columns_of_a_block_may_lie_apart_in_memory() -> None:
    writer = TableWriter(3)
    writer.append(ROWS[:, ::2])
    np.testing.assert_array_equal(writer.finish(), ROWS[:, ::2])


@pytest.mark.usefixtures("mapped")
def test_rows_and_columns_are_taken_in_the_given_order() -> None:
    rows = np.array([6, 0, 0, 5, 1])
    np.testing.assert_array_equal(taken(ROWS, rows=rows), ROWS[rows])
    np.testing.assert_array_equal(taken(ROWS, columns=[4, 1]), ROWS[:, [4, 1]])


@pytest.mark.usefixtures("mapped")
def test_a_table_without_its_pages_still_has_its_values() -> None:
    table = new_table(7, 5)
    table[:] = ROWS
    drop_pages(table)
    drop_pages(table[2:, :3])
    np.testing.assert_array_equal(table, ROWS)


def test_pages_that_a_file_does_not_share_are_kept(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ROWS)
    private = np.load(tmp_path / "a.npy", mmap_mode="c")
    private[0] = 99
    drop_pages(private)
    assert private[0].tolist() == [99] * 5


@pytest.mark.usefixtures("mapped")
def test_no_file_is_left_behind_nor_seen(tmp_path: Path) -> None:
    table = new_table(7, 5)
    assert os.listdir(tmp_path) == []
    del table
    assert os.listdir(tmp_path) == []


def test_a_temporary_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(large_table, "MAPPED_FROM", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    for attempt in (lambda: new_table(7, 5), lambda: TableWriter(5).append(ROWS)):
        with pytest.raises(DataError) as caught:
            attempt()
        assert caught.value.file == str(tmp_path / "none")


def test_a_full_disk_is_an_error_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_table, "MAPPED_FROM", 1)
    with pytest.raises(DataError) as caught:
        new_table(1 << 40, 1 << 10)
    assert caught.value.file == tempfile.gettempdir()
