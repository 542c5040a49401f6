"""The command by itself: a Typer application of one command, as the whole command line will hold it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from saferank.cli.aggregate import aggregate
from saferank.engine.errors import DataError, UsageError
from saferank.logs.aggregated_log import AggregatedLog

app = typer.Typer()
app.command()(aggregate)
ROWS = [
    {"impression_id": name, "query_id": "q", "document_id": document, "position": rank, "hit": rank - 1, "time": time}
    for name, time in (("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5))
    for rank, document in enumerate("xyz", start=1)
]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The second rank is always clicked, the third twice."""
    monkeypatch.setenv("COLUMNS", "80")
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def call(*arguments: str | Path) -> str:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False).stdout


def test_a_folder_is_written_and_summed_up(log: Path) -> None:
    out = log.parent / "new" / "stats"
    columns = "--column", "click=hit", "--column", "timestamp=time"
    said = call(log, "--out", out, *columns, "--split-by", "time", "--rankings", "--cutoff", "2")
    assert "15 rows, 2 ranks" in said
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert cells == [
        ["train", "3", "1", "6", "3", "50.00%"],
        ["validation", "1", "1", "2", "1", "50.00%"],
        ["certify", "1", "1", "2", "1", "50.00%"],
    ]
    assert "5 rows counted more than one click; each was taken as one click." in said
    assert "of 15 rows, with" in said
    assert max(map(len, said.splitlines())) <= 80
    read = AggregatedLog.read(out)
    assert read.rankings is not None
    assert read.manifest["split"]["by"] == "time"
    assert read.manifest["columns"]["click"] == "hit"


def test_units_and_rewards(log: Path) -> None:
    rows = [row | {"user": f"u{place // 9}", "price": 0.5} for place, row in enumerate(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows), log)
    out = log.parent / "stats"
    call(log, "--out", out, "--column", "click=hit", "--unit", "user", "--reward", "price", "--reward-most", "2")
    manifest = AggregatedLog.read(out).manifest
    assert manifest["unit"] == "user"
    assert manifest["reward"] == {"column": "price", "most": 2.0}
    assert manifest["split"]["by"] == "unit"
    call(log, "--out", out, "--column", "click=hit", "--split-by", "query")
    assert [part["interactions"] for part in AggregatedLog.read(out).manifest["parts"].values() if part["clicks"]] == [
        5
    ]


def test_one_is_told_as_one(log: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS[:1]), log)
    said = call(log, "--out", log.parent / "stats", "--column", "click=hit")
    assert "".join(said.partition("┏")[0].split()).endswith("stats:1row,1rank")  # a long path is broken anywhere


def test_bad_rows(log: Path) -> None:
    strange = [{**ROWS[0], "position": None, "hit": 1}, {**ROWS[0], "impression_id": "f", "position": 0}]
    pq.write_table(pa.Table.from_pylist(ROWS + strange), log)
    out = log.parent / "stats"
    with pytest.raises(DataError, match=r"(?s)1 row with a position.*1 row with a click on what was not shown"):
        call(log, "--out", out, "--column", "click=hit")
    assert not out.exists()
    said = " ".join(call(log, "--out", out, "--column", "click=hit", "--on-bad-rows", "drop").split())
    assert "Dropped 1 impression for rows with a position that is missing, below 1 or no whole number." in said
    assert "Dropped 1 row with a click on what was not shown." in said
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["bad_rows"] == {"bad position": 1, "click on what was not shown": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--column", "click"], "--column click: write OURS=THEIRS, such as click=clicked."),
        (["--split", "50/50"], "split 50/50: write the shares of train, validation, certify in percent"),
        (["--split-by", "luck"], "split by luck: must be hash, time, query or unit."),
        (["--split-by", "unit"], "name it with --unit COLUMN."),
        (["--reward", "hit"], "--reward hit: state the most that a click can be worth with --reward-most X."),
        (["--layout", "wide"], "no layout is called 'wide'; there are auto, long, nested, ubi, session."),
    ],
)
def test_wrong_calls(log: Path, arguments: list[str], message: str) -> None:
    given = ["--column", "click=hit", *arguments]
    with pytest.raises(UsageError) as error:
        call(log, "--out", log.parent / "stats", *given)
    assert message in str(error.value)
    assert not (log.parent / "stats").exists()


def test_what_is_there_stays(log: Path) -> None:
    with pytest.raises(UsageError, match=r"--out .*log.parquet is there already, and is no folder of statistics"):
        call(log, "--out", log)
    with pytest.raises(UsageError, match=r"log.parquet is a file; name a folder in a folder"):
        call(log, "--out", log / "stats", "--column", "click=hit")
    stats = log.parent / "stats"
    call(log, "--out", stats, "--column", "click=hit")
    with pytest.raises(UsageError, match="stats is a folder of statistics, aggregated already; give the log"):
        call(stats, "--out", log.parent / "again")
    assert len(pq.read_table(log)) == 15


def test_help_teaches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = " ".join(call("--help").replace("│", " ").split())
    for words in (
        "one row per shown document: impression_id",
        "OpenSearch UBI",
        "as many as the log shows, at most 10",
    ):
        assert words in said
