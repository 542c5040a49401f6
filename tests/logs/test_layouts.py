"""One row per impression, with lists in it: the same rows as the long layout."""

from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.run_query import connect, fetch, quietly

NESTED = pa.table(
    {
        "query_id": ["q", "q", "p"],
        "document_ids": [["a", "b"], ["b", "a"], ["c"]],
        "clicks": [[0, 1], [1, 0], [0]],
    }
)
SHOWN = [(0, "q", "a", 1, 0), (0, "q", "b", 2, 1), (1, "q", "b", 1, 1), (1, "q", "a", 2, 0), (2, "p", "c", 1, 0)]


def rows(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    log = open_log(source, **options)
    assert log.layout == "nested"
    table = log.table.select("impression_id", "query_id", "document_id", "position", "click")
    found = [tuple(row.values()) for row in fetch(table).to_pylist()]
    return sorted(found, key=lambda row: (row[0], row[3] is None, row[3]))


def write(path: Path, **columns: Any) -> Path:
    table = NESTED
    for name, values in columns.items():
        if name in table.column_names:
            table = table.drop_columns(name)
        table = table if values is None else table.append_column(name, pa.array(values))
    pq.write_table(table, path)
    return path


def test_rows_are_impressions(tmp_path: Path) -> None:
    assert rows(write(tmp_path / "log.parquet")) == SHOWN
    named = write(
        tmp_path / "log.parquet", impression_id=["x", "y", "z"], clicks=[[False, True], [True, False], [False]]
    )
    assert rows(named) == [("xyz"[row[0]], *row[1:]) for row in SHOWN]


def test_rows_of_several_files_keep_their_numbers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.parquet")
    found = rows(str(tmp_path / "*.parquet"))
    assert [row[1:] for row in found] == [row[1:] for row in SHOWN] * 2
    assert {row[0] for row in found} == {f"{name}.parquet:{row}" for name in "ab" for row in range(3)}
    first, again = (load_log(tmp_path) for _ in range(2))
    assert first.patterns == again.patterns
    assert sum(first.patterns["interactions"].to_pylist()) == 6


def test_rows_of_a_database(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "log.db")) as connection:
        connection.register("made_up", NESTED)
        connection.execute("create table clicks as from made_up")
    assert rows(f"duckdb://{tmp_path}/log.db/clicks") == SHOWN


def test_given_positions_and_names(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.parquet", positions=[[1, 3], [2, 4], [9]], shown=NESTED["document_ids"], document_ids=None
    )
    found = rows(path, columns={"document_ids": "shown"})
    assert found == [(*row[:3], place, row[4]) for row, place in zip(SHOWN, (1, 3, 2, 4, 9), strict=True)]


@pytest.mark.parametrize("given", [True, False])
def test_ids_of_clicked_documents(tmp_path: Path, given: bool) -> None:
    """Instead of flags; one of them was not shown."""
    columns = {"positions": [[1, 2], [1, 2], [1]]} if given else {}
    path = write(tmp_path / "log.parquet", clicks=[["b"], ["b", "z"], None], **columns)
    assert rows(path) == [*SHOWN[:4], (1, "q", "z", None, 1), SHOWN[4]]
    log = load_log(path, on_bad_rows="drop")
    assert log.manifest["bad_rows"] == {"click on what was not shown": 1}
    assert sum(log.shown_counts["clicked"].to_pylist()) == 2


def test_extras_come_along(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", timestamp=[10, 20, 30], device=["phone", "desk", "desk"], user=[7, 7, 8])
    log = load_log(path, segment="device", unit="user")
    assert log.manifest["period"] == ["10", "30"]
    assert set(log.patterns["segment"].to_pylist()) == {"phone", "desk"}
    units = dict(zip(log.patterns["unit"].to_pylist(), log.patterns["query_id"].to_pylist(), strict=True))
    assert sorted(units) == ["0", "1"]
    assert set(units.values()) == {"p", "q"}


@pytest.mark.parametrize("first", [[0], None])
def test_lists_of_different_lengths(tmp_path: Path, first: list[int] | None) -> None:
    path = write(tmp_path / "log.parquet", clicks=[first, [1, 0], [0, 1]])
    with pytest.raises(DataError, match="document_id b, position 2, click null"):
        load_log(path)
    log = load_log(path, on_bad_rows="drop")
    assert log.manifest["bad_rows"] == {"null document_id": 1, "bad click": 1}
    assert sum(log.patterns["interactions"].to_pylist()) == 1


def test_what_is_missing(tmp_path: Path) -> None:
    with quietly():
        table = connect().create_table("log", ibis.memtable(NESTED), temp=True)  # its rows have no lasting numbers
    path = tmp_path / "log.parquet"
    for source, column in (
        (write(path, clicks=None), "clicks"),
        (write(tmp_path / "numbers.parquet", clicks=[1, 2, 3]), "clicks"),
        (table, "impression_id"),
    ):
        with pytest.raises(DataError) as error:
            open_log(source)
        assert error.value.column == column
