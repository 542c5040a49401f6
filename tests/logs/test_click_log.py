"""Where a log may lie, and what is said if it does not: every source gives the same rows."""

import gzip
import re
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, SaferankError, UsageError
from saferank.logs.click_log import open_log
from saferank.logs.load_log import load_log
from saferank.logs.source import connect, fetch, quietly

TABLE = pa.table(
    {
        "impression_id": [1, 1, 2, 2, 3],
        "query_id": ["q", "q", "q", "q", "p"],
        "document_id": ["a", "b", "b", "a", "c"],
        "position": [1, 2, 1, 2, 1],
        "click": [0, 1, 1, 0, 0],
        "device": ["phone", "phone", "desk", "desk", None],
    }
)
ROWS = {tuple(row.values())[:5] for row in TABLE.to_pylist()}


def rows(source: Any, **options: Any) -> set[tuple[Any, ...]]:
    log = open_log(source, **options)
    assert log.layout == "long"
    found = fetch(log.table.select("impression_id", "query_id", "document_id", "position", "click")).to_pylist()
    assert len(found) == TABLE.num_rows
    return {tuple(row.values()) for row in found}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The log in every form: one file, a folder and a pattern of several, Parquet and CSV, a database."""
    pq.write_table(TABLE, tmp_path / "one.parquet")
    pyarrow.csv.write_csv(TABLE, tmp_path / "one.csv")
    (tmp_path / "zipped.csv.gz").write_bytes(gzip.compress((tmp_path / "one.csv").read_bytes()))
    for kind in ("parquet", "csv"):
        (tmp_path / kind / "day=1").mkdir(parents=True)
        for place, (first, size) in enumerate(((0, 2), (2, 3))):
            part, file = TABLE.slice(first, size), tmp_path / kind / "day=1" / f"{place}.{kind}"
            (pq.write_table if kind == "parquet" else pyarrow.csv.write_csv)(part, file)
    with duckdb.connect(str(tmp_path / "log.db")) as connection:
        connection.register("made_up", TABLE)
        connection.execute("create table clicks as from made_up")
        connection.execute("create view seen as from clicks")
    return tmp_path


@pytest.mark.parametrize(
    "source",
    [
        "one.parquet",
        "one.csv",
        "zipped.csv.gz",
        "parquet",
        "csv",
        "parquet/day=1/*.parquet",
        "csv/**/*.csv",
        "duckdb://log.db/clicks",
        "duckdb://log.db/seen",
    ],
)
def test_sources(folder: Path, source: str) -> None:
    path = source.replace("duckdb://", f"duckdb://{folder}/") if "://" in source else str(folder / source)
    assert rows(path) == ROWS
    log = load_log(path)
    assert log.source == path
    assert log.manifest["rows"] == 5
    files = log.manifest["files"]
    assert len(files) == (2 if source.startswith(("parquet", "csv")) else 1)
    assert all(len(file["sha256"]) == 64 and file["bytes"] > 0 for file in files)


def test_a_path_and_an_ibis_table(folder: Path) -> None:
    assert rows(folder / "one.parquet") == ROWS
    with quietly():
        table = connect().create_table("log", ibis.memtable(TABLE), temp=True)
    assert rows(table) == ROWS
    assert load_log(table).manifest["source"] == "an Ibis table"
    assert load_log(table.filter(table["query_id"] == "q")).manifest["rows"] == 4


def test_columns_by_other_names(folder: Path) -> None:
    theirs = TABLE.rename_columns(["search", "q", "sku", "rank", "clicked", "device"])
    pq.write_table(theirs, folder / "theirs.parquet")
    columns = dict(zip(TABLE.column_names[:5], theirs.column_names, strict=False))
    assert rows(folder / "theirs.parquet", columns=columns) == ROWS
    log = load_log(folder / "theirs.parquet", columns=columns, segment="device")
    assert log.manifest["columns"] == columns
    assert log.manifest["segment"] == "device"
    assert set(log.patterns["segment"].to_pylist()) == {"phone", "desk", None}


def test_a_missing_column(folder: Path) -> None:
    path = folder / "less.parquet"
    pq.write_table(TABLE.rename_columns(["impression_id", "query_id", "document_id", "rank", "click", "device"]), path)
    with pytest.raises(DataError) as error:
        open_log(path)
    assert str(error.value) == (
        f"{path}, column 'position': there is no such column; there are impression_id, query_id, document_id, rank, "
        "click, device. If one of them holds it, say so: --column position=THEIRS."
    )
    with pytest.raises(DataError, match=r"column 'place': there is no such column; .*--column position=THEIRS"):
        open_log(path, columns={"position": "place"})
    with pytest.raises(DataError, match=r"column 'country': there is no such column; there are impression_id,"):
        open_log(folder / "one.parquet", segment="country")


def test_all_missing_columns_are_told_at_once(folder: Path) -> None:
    path = folder / "theirs.parquet"
    pq.write_table(TABLE.rename_columns(["search", "query_id", "sku", "rank", "clicked", "device"]), path)
    with pytest.raises(DataError) as error:
        open_log(path, columns={"click": "clicked", "position": "place", "timestamp": "time"})
    assert str(error.value) == (
        f"{path}: there are no columns 'impression_id', 'document_id', 'place', 'time'; there are search, query_id, "
        "sku, rank, clicked, device. If some of them hold these, say so: --column impression_id=THEIRS "
        "--column document_id=THEIRS --column position=THEIRS --column timestamp=THEIRS."
    )


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("position", ["1", "2", "1", "2", None], "holds string, but must hold numbers; convert it."),
        ("query_id", [1.0, 1.0, 1.0, 1.0, 2.0], "holds float64, but an id is a text or a whole number; convert it."),
        ("document_id", [["a"]] * 5, "holds array<string>, but an id is a text or a whole number; convert it."),
        ("timestamp", [True] * 5, "holds boolean, but must hold times or numbers; convert it."),
    ],
)
def test_columns_of_the_wrong_kind(tmp_path: Path, column: str, values: list[Any], message: str) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({**{name: TABLE[name] for name in TABLE.column_names}, column: values}), path)
    with pytest.raises(DataError, match=re.escape(f"{path}, column '{column}': {message}")):
        open_log(path)


HEADER = "impression_id,query_id,document_id,position,click\n"
NOT_A_NUMBER = "but must hold numbers; correct it, or convert the column."


@pytest.mark.parametrize("text", ["", HEADER])
@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz"])
def test_a_csv_without_rows(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    with pytest.raises(DataError, match=rf"{re.escape(name)}: has no row; there is nothing to aggregate\.$"):
        open_log(tmp_path / name)


def test_a_csv_without_rows_beside_others(folder: Path) -> None:
    (folder / "csv" / "empty.csv").write_text("")
    (folder / "csv" / "header.csv").write_text(HEADER)
    assert rows(folder / "csv") == ROWS


@pytest.mark.parametrize(("column", "line"), [("position", "1,q,b,second,0"), ("click", "1,q,b,2,NA")])
def test_text_in_a_csv_is_told_by_its_ids(tmp_path: Path, column: str, line: str) -> None:
    path, value = tmp_path / "log.csv", line.split(",")[HEADER.strip().split(",").index(column)]
    path.write_text(f"{HEADER}1,q,a,1,0\n1,q,c,,\n{line}\n2,q,a,1,0\n")
    with pytest.raises(DataError) as error:
        open_log(path)
    told = "impression_id 1, query_id q, document_id b"
    assert str(error.value) == f"{path}, column '{column}': got '{value}' for {told}, {NOT_A_NUMBER}"


def test_text_in_parquet_is_told_by_its_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    texts = {"theirs": pa.array(["0", None, "yes", "0", "no"])}
    table = pa.table({**{name: TABLE[name] for name in TABLE.column_names if name != "click"}, **texts})
    pq.write_table(table, "log.parquet")
    with pytest.raises(DataError, match=rf"^log\.parquet, row 2, column 'theirs': got 'yes', {NOT_A_NUMBER}$"):
        open_log("log.parquet", columns={"click": "theirs"})
    Path("days").mkdir()
    for day, part in enumerate((table.slice(0, 2), table.slice(2))):
        pq.write_table(part, f"days/{day}.parquet")
    for source in ("days", "days/*.parquet"):
        with pytest.raises(DataError, match=rf"^days/1\.parquet, row 0, column 'theirs': got 'yes', {NOT_A_NUMBER}$"):
            open_log(source, columns={"click": "theirs"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "1,q,a,x,0",
            ", column 'position': got 'x', but the first lines hold BIGINT; correct it, or convert the log to Parquet.",
        ),
        ("1,q,a,1,0,5", ": Expected Number of Columns: 5 Found: 6; correct the line, or leave it out."),
    ],
)
def test_a_csv_line_unlike_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    """DuckDB looks at 20,480 rows to tell the columns, and stumbles later."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(HEADER + "".join(f"{row},q,a,1,0\n" for row in range(30_000)) + f"{line}\n")
    with pytest.raises(DataError) as error:
        load_log("log.csv")
    assert str(error.value) == f"log.csv, line 30002{message}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty, which no Parquet file is; write it again, or leave it out."),
        (
            b"impression_id,query_id\n",
            "is no Parquet file, or was cut short; write it again, or rename it if it is another kind of file, such as "
            ".csv.",
        ),
        (b"PAR1 garbage PAR1", "cannot be read ("),
    ],
)
def test_no_parquet_file(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str) -> None:
    monkeypatch.chdir(folder)
    Path("log.parquet").write_bytes(content)
    Path("parquet/2.parquet").write_bytes(content)
    for source, file in (("log.parquet", "log.parquet"), ("parquet", "parquet/2.parquet")):
        with pytest.raises(DataError) as error:
            open_log(source)
        if message.endswith("("):
            assert str(error.value).startswith(f"{source}: {message}")
            assert file in str(error.value)
            assert str(error.value).endswith("; correct it, or write it again.")
        else:
            assert str(error.value) == f"{file}: {message}"
        assert str(folder) not in str(error.value)


def test_kinds_of_timestamps(tmp_path: Path) -> None:
    for values in (["2024-01-01", "2024-01-02T10:00:00", "soon", None, "2024-01-05"], [1, 2, 3, 4, 5]):
        pq.write_table(TABLE.append_column("timestamp", pa.array(values)), tmp_path / "log.parquet")
        period = load_log(tmp_path / "log.parquet").manifest["period"]
        assert period == (["2024-01-01T00:00:00", "2024-01-05T00:00:00"] if "soon" in values else ["1", "5"])


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("nowhere.parquet", DataError, "nowhere.parquet: there is no such file or folder; check the path."),
        ("*.none", DataError, "*.none: no file matches this pattern; check the path."),
        ("one.*", DataError, "one.*: matches files of several kinds; narrow the pattern."),
        ("empty", DataError, "empty: has no file *.parquet or *.csv in it."),
        ("text.parquet", DataError, "text.parquet: is no Parquet file, or was cut short;"),
        ("notes.txt", DataError, "notes.txt: is neither a session log nor a file .parquet, .csv, .json;"),
        ("stats", UsageError, "stats is a folder of statistics, aggregated already; give the log"),
        ("duckdb://none.db/clicks", DataError, "none.db/clicks: there is no such database; write duckdb://"),
        ("duckdb://log.db/none", DataError, "log.db: there is no table 'none'; there are clicks, seen."),
        ("duckdb://log.db", DataError, "log.db: name a table, as in duckdb://"),
        ("duckdb://notes.txt/clicks", DataError, "notes.txt: is not a DuckDB database ("),
        ("postgres://host/clicks", UsageError, "give a file, a folder, a pattern, or duckdb://file.db/table."),
    ],
)
def test_nothing_to_open(folder: Path, source: str, kind: type[SaferankError], message: str) -> None:
    (folder / "empty").mkdir()
    (folder / "text.parquet").write_text("hello")
    (folder / "notes.txt").write_text("hello\tworld\n")
    load_log(folder / "one.parquet").write(folder / "stats")
    path = source.replace("duckdb://", f"duckdb://{folder}/") if "://" in source else str(folder / source)
    with pytest.raises(kind) as error:
        open_log(path)
    assert message in str(error.value)


def test_wrong_calls(folder: Path) -> None:
    with pytest.raises(UsageError, match="no layout is called 'wide'; there are auto, long, nested, ubi, session"):
        open_log(folder / "one.parquet", layout="wide")
    with pytest.raises(UsageError, match="no layout is called 'long:click'"):
        open_log(folder / "one.parquet", layout="long:click")
    with pytest.raises(UsageError, match=r"this layout has no column 'clicked'; it has impression_id, .*click, t"):
        open_log(folder / "one.parquet", columns={"clicked": "click"})
