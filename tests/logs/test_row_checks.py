"""Every kind of bad row: found, told with its count and the first rows, and dropped."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.logs.row_checks import missing_features_error
from saferank.logs.split import TimeSplit

Row = tuple[Any, ...]
NAMES = ("impression_id", "query_id", "document_id", "position", "click")
GOOD: list[Row] = [
    ("i1", "q", "a", 1, 0),
    ("i1", "q", "b", 2, 1),
    ("i2", "q", "b", 1, 1),
    ("i2", "q", "a", 2, 0),
    ("i3", "p", "c", 1, 0),
]


def write(path: Path, rows: list[Row], **types: pa.DataType) -> Path:
    kinds = {"position": pa.int32(), "click": pa.int8(), **types}
    columns = {
        name: pa.array([row[place] for row in rows], kinds.get(name, pa.string())) for place, name in enumerate(NAMES)
    }
    pq.write_table(pa.table(columns), path)
    return path


def left(log: AggregatedLog) -> dict[str, int]:
    return {name: sum(part[name] for part in log.manifest["parts"].values()) for name in ("interactions", "shown")}


CASES: dict[str, tuple[list[Row], dict[str, int], tuple[int, int]]] = {
    # bad rows beside the good ones, what is dropped, interactions and shown documents that stay
    "null impression_id": ([(None, "q", "a", 1, 0)], {"null impression_id": 1}, (3, 5)),
    "null query_id": ([("i4", None, "a", 1, 0), ("i4", "q", "b", 2, 0)], {"null query_id": 1}, (3, 5)),
    "null document_id": ([("i1", "q", None, 3, 0)], {"null document_id": 1}, (2, 3)),
    "null document_id far down": ([("i1", "q", None, 300, 0)], {"null document_id": 1}, (2, 3)),
    "position missing": ([("i3", "p", "d", None, 0)], {"bad position": 1}, (2, 4)),
    "position below 1": ([("i3", "p", "d", 0, 0), ("i4", "p", "d", -1, 1)], {"bad position": 2}, (2, 4)),
    "position repeated": ([("i1", "q", "c", 2, 0)], {"repeated position": 1}, (2, 3)),
    "document repeated": ([("i2", "q", "b", 3, 0)], {"repeated document": 1}, (2, 3)),
    "position far down repeated": (
        [("i1", "q", "c", 300, 0), ("i1", "q", "d", 300, 0)],
        {"repeated position": 1},
        (2, 3),
    ),
    "two queries": ([("i3", "q", "a", 2, 0)], {"two queries": 1}, (2, 4)),
    "click negative": ([("i3", "p", "d", 2, -1)], {"bad click": 1}, (2, 4)),
    "click above 1": ([("i3", "p", "d", 2, 7)], {"bad click": 1}, (2, 4)),
    "click missing": ([("i3", "p", "d", 2, None)], {"bad click": 1}, (2, 4)),
    "click on what was not shown": (
        [("i3", "p", "d", None, 1), ("i4", None, "d", None, 1)],
        {"click on what was not shown": 2},
        (3, 5),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_kind(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "log.parquet", [*GOOD, *CASES[kind][0]])
    with pytest.raises(DataError) as error:
        load_log(path)
    assert error.value.file == str(path)
    assert str(error.value).count("such as") == 1  # no other kind


def test_all_kinds_at_once(tmp_path: Path) -> None:
    """Each in impressions of its own: all are reported, and only the good ones stay."""
    bad = [
        (None if row[0] is None else f"{place} {row[0]}", *row[1:])
        for place, (rows, _, _) in enumerate(CASES.values())
        for row in [*GOOD, *rows]
    ]
    path = write(tmp_path / "log.parquet", [*GOOD, *bad])
    dropped: Counter[str] = Counter()
    for _, kinds, _ in CASES.values():
        dropped += Counter(kinds)
    with pytest.raises(DataError) as error:
        load_log(path)
    assert str(error.value).count("such as") == len(dropped)
    log = load_log(path, on_bad_rows="drop")
    assert log.manifest["bad_rows"] == dropped
    assert left(log) == {
        "interactions": 3 + sum(kept[0] for _, _, kept in CASES.values()),
        "shown": 5 + sum(kept[1] for _, _, kept in CASES.values()),
    }


def test_the_message_gives_counts_and_the_first_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", [*GOOD, *CASES["document repeated"][0], *CASES["null impression_id"][0]])
    with pytest.raises(DataError) as error:
        load_log(path)
    assert str(error.value) == (
        f"{path}: has rows that cannot be used:"
        "\n  1 row without an impression_id, such as"
        "\n    impression_id null, query_id q, document_id a, position 1, click 0"
        "\n  2 rows with a document that occurs twice in their impression (in 1 impression), such as"
        "\n    impression_id i2, query_id q, document_id b, position 1, click 1"
        "\n    impression_id i2, query_id q, document_id b, position 3, click 0"
        "\nCorrect them, or leave them out with `on_bad_rows` drop (this drops whole impressions, but single rows if "
        "they lack an impression_id or click what was not shown)."
    )


def test_numbers_with_decimals(tmp_path: Path) -> None:
    values = ((1.0, 1.0), (1.5, 0.0), (1.0, 0.5), (2.0, 0.0), (float("nan"), 0.0), (1e300, 0.0))
    rows = [(f"i{place}", "q", "a", *numbers) for place, numbers in enumerate(values)]
    path = write(tmp_path / "log.parquet", rows, position=pa.float64(), click=pa.float32())
    log = load_log(path, on_bad_rows="drop")
    assert log.manifest["bad_rows"] == {"bad position": 3, "bad click": 1}
    assert left(log) == {"interactions": 2, "shown": 2}
    assert set(log.shown_counts["position"].to_pylist()) == {1, 2}


@pytest.mark.parametrize(
    ("rows", "column", "hint"),
    [
        ([*GOOD, ("i3", "p", "d", 2, 7)], "click", "1 if it was clicked at all"),
        ([*GOOD, ("i3", "p", "d", 2, None)], "click", "fill it with 0"),
        ([*GOOD, ("i3", "p", "d", 2, -1)], "click", None),
        ([(*row[:3], row[3] - 1, row[4]) for row in GOOD], "position", "count from 0"),
        ([*GOOD, ("i4", "p", "d", 0, 0)], "position", None),
    ],
)
def test_what_is_likely_behind_it(tmp_path: Path, rows: list[Row], column: str, hint: str | None) -> None:
    """The column is named as the log does, and a remedy where it can be guessed."""
    table = pq.read_table(write(tmp_path / "log.parquet", rows))
    table = table.rename_columns([f"my_{name}" if name == column else name for name in NAMES])
    with pytest.raises(DataError) as error:
        load_log(table, columns={column: f"my_{column}"})
    assert error.value.column == f"my_{column}"
    hints = ("1 if it was clicked at all", "fill it with 0", "count from 0")
    assert [one for one in hints if one in str(error.value)] == ([] if hint is None else [hint])


@pytest.mark.parametrize("mode", ["error", "drop"])
def test_no_row(tmp_path: Path, mode: str) -> None:
    for rows in ([], [(None, "q", "a", 1, 0)] * 2):
        path = write(tmp_path / "log.parquet", rows)
        with pytest.raises(DataError) as error:
            load_log(path, on_bad_rows=mode)
        assert error.value.file == str(path)


@pytest.mark.parametrize("options", [{"on_bad_rows": "ignore"}, {"cutoff": 0}])
def test_wrong_options(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        load_log(write(tmp_path / "log.parquet", GOOD), **options)


def test_a_split_by_time_needs_every_impression_dated(tmp_path: Path) -> None:
    times = [1, 1, 2, None, None]  # the second has one, the third has none
    table = pq.read_table(write(tmp_path / "log.parquet", GOOD))
    pq.write_table(table.append_column("timestamp", pa.array(times, pa.int64())), tmp_path / "log.parquet")
    assert left(load_log(tmp_path / "log.parquet"))["interactions"] == 3
    with pytest.raises(DataError):
        load_log(tmp_path / "log.parquet", split=TimeSplit())
    log = load_log(tmp_path / "log.parquet", split=TimeSplit(), on_bad_rows="drop")
    assert left(log) == {"interactions": 2, "shown": 4}
    assert log.manifest["bad_rows"] == {"null timestamp": 1}


def test_repeated_documents_among_many(tmp_path: Path) -> None:
    """The quick screen on hashes against a count by hand: lists of 40, a few with a document twice."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    twice = 0
    for impression in range(300):
        documents = rng.permutation(60)[:40]
        if rng.random() < 0.1:
            documents[rng.integers(1, 40)] = documents[0]
        twice += len(set(documents.tolist())) < 40
        rows += [(f"i{impression}", "q", f"d{document}", rank + 1, 0) for rank, document in enumerate(documents)]
    assert twice > 10
    log = load_log(write(tmp_path / "log.parquet", rows), on_bad_rows="drop")
    assert log.manifest["bad_rows"] == {"repeated document": twice}
    assert left(log)["interactions"] == 300 - twice


def test_documents_without_features(tmp_path: Path) -> None:
    log = load_log(write(tmp_path / "log.parquet", GOOD))
    queries, documents = np.array(["q", "p"]), np.array(["a", "b", "c"])
    data = RankingData(np.zeros((3, 1), np.float32), np.array([0, 2, 3]), None, queries, documents, source="F")
    assert missing_features_error(log, data) is None
    data = data.subset([0])
    data = replace(data, features=data.features[1:], offsets=np.array([0, 1]), document_ids=np.array(["b"]))
    error = missing_features_error(log, data)
    assert str(error) == (
        f"{tmp_path / 'log.parquet'}: shows 2 query-document pairs (3 times) that F lacks, such as"
        "\n    query_id p, document_id c, shown 1"
        "\n    query_id q, document_id a, shown 2"
        "\nAdd their features, or leave them out with `on_bad_rows` drop."
    )
