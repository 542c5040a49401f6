"""The command by itself, on fifteen rows."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.cli.aggregate import aggregate
from saferank.engine.errors import DataError, UsageError
from saferank.logs.aggregated_log import AggregatedLog
from tests.cli.running import caller, cells

call = caller(aggregate)
ROWS = [
    {
        "impression_id": name,
        "query_id": "q",
        "document_id": document,
        "position": rank,
        "hit": int(rank > 1),
        "time": time,
    }
    for name, time in (("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5))
    for rank, document in enumerate("xyz", start=1)
]
HIT = "--column", "click=hit"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The second rank and the third are always clicked."""
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_a_folder_is_written_and_summed_up(log: Path) -> None:
    out = log.parent / "new" / "stats"
    options = "--column", "timestamp=time", "--split-by", "time", "--rankings", "--cutoff", "2"
    said = call(log, "--out", out, *HIT, *options)
    assert "15 rows, 2 ranks" in said
    rows = {name: row[:5] for name, row in cells(said).items()}
    assert rows == {
        "train": ["3", "1", "6", "3", "50.00%"],
        "validation": ["1", "1", "2", "1", "50.00%"],
        "certify": ["1", "1", "2", "1", "50.00%"],
    }
    assert max(map(len, said.splitlines())) <= 80
    read = AggregatedLog.read(out)
    assert read.rankings is not None
    assert all(note in " ".join(said.split()) for note in read.manifest["notes"])
    assert read.manifest["split"]["by"] == "time"
    assert read.manifest["columns"]["click"] == "hit"


def test_units_rewards_and_a_split_by_query(log: Path) -> None:
    rows = [row | {"user": f"u{place // 9}", "price": 0.5} for place, row in enumerate(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows), log)
    out = log.parent / "stats"
    call(log, "--out", out, *HIT, "--unit", "user", "--reward", "price", "--reward-most", "2")
    manifest = AggregatedLog.read(out).manifest
    assert (manifest["unit"], manifest["split"]["by"]) == ("user", "unit")
    assert manifest["reward"] == {"column": "price", "most": 2.0}
    call(log, "--out", out, *HIT, "--split-by", "query")
    parts = AggregatedLog.read(out).manifest["parts"].values()
    assert sorted(part["interactions"] for part in parts) == [0, 0, 5]


def test_bad_rows(log: Path) -> None:
    strange = [{**ROWS[0], "position": None, "hit": 1}, {**ROWS[0], "impression_id": "f", "position": 0}]
    pq.write_table(pa.Table.from_pylist(ROWS + strange), log)
    out = log.parent / "stats"
    with pytest.raises(DataError) as error:
        call(log, "--out", out, *HIT)
    assert error.value.file == str(log)
    assert not out.exists()
    said = call(log, "--out", out, *HIT, "--on-bad-rows", "drop")
    assert said.count("Dropped 1 ") == 2
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["bad_rows"] == {"bad position": 1, "click on what was not shown": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        ["--column", "click"],
        ["--split", "50/50"],
        ["--split-by", "unit"],
        ["--reward", "hit"],
        ["--layout", "wide"],
    ],
)
def test_wrong_calls(log: Path, wrong: list[str]) -> None:
    with pytest.raises(UsageError, match=wrong[1] if wrong[0] != "--split-by" else "unit"):
        call(log, "--out", log.parent / "stats", *HIT, *wrong)
    assert not (log.parent / "stats").exists()


def test_what_is_there_stays(log: Path) -> None:
    stats = log.parent / "stats"
    call(log, "--out", stats, *HIT)
    for source, out in ((log, log), (stats, log.parent / "again")):
        with pytest.raises(UsageError):
            call(source, "--out", out, *HIT)
    assert len(pq.read_table(log)) == 15
    assert AggregatedLog.read(stats).cutoff == 3
