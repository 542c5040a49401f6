"""Where a log may lie, and what is said if it does not: every source gives the same rows."""

import gzip
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
from saferank.logs.run_query import connect, fetch, quietly

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
    found = open_log(path).source
    assert found.name == path
    files = found.describe_files()
    assert len(files) == (2 if source.startswith(("parquet", "csv")) else 1)
    assert all(len(file["sha256"]) == 64 and file["bytes"] > 0 for file in files)


@pytest.mark.parametrize("source", ["csv", "duckdb://{folder}/log.db/clicks"])
def test_the_manifest_names_source_and_files(folder: Path, source: str) -> None:
    path = source.format(folder=folder) if "://" in source else str(folder / source)
    log = load_log(path)
    assert (log.source, log.manifest["rows"]) == (path, 5)
    assert log.manifest["files"] == open_log(path).source.describe_files()


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
    assert log.manifest["other_columns"] == []
    assert load_log(folder / "theirs.parquet", columns=columns).manifest["other_columns"] == ["device"]
    assert set(log.patterns["segment"].to_pylist()) == {"phone", "desk", None}


@pytest.mark.parametrize("segment", ["impression_id", "query_id", "document_id", "position", "click"])
def test_what_is_no_segment(folder: Path, segment: str) -> None:
    with pytest.raises(UsageError):
        open_log(folder / "one.parquet", segment=segment)
    theirs = TABLE.rename_columns(["theirs" if name == segment else name for name in TABLE.column_names])
    pq.write_table(theirs, folder / "theirs.parquet")
    with pytest.raises(UsageError):
        open_log(folder / "theirs.parquet", columns={segment: "theirs"}, segment="theirs")


def test_a_segment_that_differs_within_an_impression(folder: Path) -> None:
    brands = pa.array(["x", "x", "x", "y", None])
    pq.write_table(TABLE.append_column("brand", brands), folder / "log.parquet")
    with pytest.raises(DataError) as error:
        load_log(folder / "log.parquet", segment="brand")
    assert (error.value.file, error.value.column) == (str(folder / "log.parquet"), "brand")


def test_a_folder_of_several_kinds_is_not_half_read(folder: Path) -> None:
    path = folder / "parquet"
    (path / "notes.json").write_text("{}")
    (path / "0.ledger.json").write_text("{}")
    assert rows(path) == ROWS
    pyarrow.csv.write_csv(TABLE, path / "more.csv")
    with pytest.raises(DataError, match=r"0\.parquet and more\.csv") as error:
        open_log(path)
    assert error.value.file == str(path)


def test_a_missing_column(folder: Path) -> None:
    path = folder / "less.parquet"
    pq.write_table(TABLE.rename_columns(["impression_id", "query_id", "document_id", "rank", "click", "device"]), path)
    with pytest.raises(DataError) as error:
        open_log(path)
    assert str(error.value) == (
        f"{path}, column 'position': there is no such column; the log has impression_id, query_id, document_id, rank, "
        "click, device. If it has another name there, use `columns={'position': 'THEIRS'}`."
    )
    assert "--column position=THEIRS" in error.value.args[0]
    for source, options, column in (
        (path, {"columns": {"position": "place"}}, "place"),
        (folder / "one.parquet", {"segment": "country"}, "country"),
    ):
        with pytest.raises(DataError) as error:
            open_log(source, **options)
        assert error.value.column == column


def test_all_missing_columns_are_reported_at_once(folder: Path) -> None:
    path = folder / "theirs.parquet"
    pq.write_table(TABLE.rename_columns(["search", "query_id", "sku", "rank", "clicked", "device"]), path)
    with pytest.raises(DataError) as error:
        open_log(path, columns={"click": "clicked", "position": "place", "timestamp": "time"})
    assert "there are no columns 'impression_id', 'document_id', 'place', 'time';" in str(error.value)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("position", ["1", "2", "1", "2", None]),
        ("query_id", [1.0, 1.0, 1.0, 1.0, 2.0]),
        ("document_id", [["a"]] * 5),
        ("timestamp", [True] * 5),
    ],
)
def test_columns_of_the_wrong_kind(tmp_path: Path, column: str, values: list[Any]) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({**{name: TABLE[name] for name in TABLE.column_names}, column: values}), path)
    with pytest.raises(DataError) as error:
        open_log(path)
    assert (error.value.file, error.value.column) == (str(path), column)


HEADER = "impression_id,query_id,document_id,position,click\n"


def test_a_csv_without_rows(folder: Path) -> None:
    for name, text in (("log.csv", ""), ("log.csv", HEADER), ("log.csv.gz", HEADER)):
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        with pytest.raises(DataError, match="has no row"):
            open_log(folder / name)
    (folder / "csv" / "empty.csv").write_text("")
    (folder / "csv" / "header.csv").write_text(HEADER)
    assert rows(folder / "csv") == ROWS


@pytest.mark.parametrize(("column", "line"), [("position", "1,q,b,second,0"), ("click", "1,q,b,2,NA")])
def test_text_in_a_csv_is_named_by_its_ids(tmp_path: Path, column: str, line: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{HEADER}1,q,a,1,0\n1,q,c,,\n{line}\n2,q,a,1,0\n")
    with pytest.raises(DataError, match="for impression_id 1, query_id q, document_id b") as error:
        open_log(path)
    assert (error.value.file, error.value.column) == (str(path), column)


def test_text_in_parquet_is_named_by_its_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    texts = {"theirs": pa.array(["0", None, "yes", "0", "no"])}
    table = pa.table({**{name: TABLE[name] for name in TABLE.column_names if name != "click"}, **texts})
    pq.write_table(table, "log.parquet")
    Path("days").mkdir()
    for day, part in enumerate((table.slice(0, 2), table.slice(2))):
        pq.write_table(part, f"days/{day}.parquet")
    for source, file, row in (("log.parquet", "log.parquet", 2), ("days", "days/1.parquet", 0)):
        with pytest.raises(DataError, match="got 'yes'") as error:
            open_log(source, columns={"click": "theirs"})
        assert (error.value.file, error.value.row, error.value.column) == (file, row, "theirs")


WORDS = [("True", "False"), ("true", "false"), ("TRUE", "FALSE"), ("t", "f"), ("T", "F"), ("1", "0"), ('"1"', '"0"')]


@pytest.mark.parametrize(
    ("kind", "clicked", "not_clicked"),
    [*(("csv", *words) for words in WORDS[-3::2]), *(("parquet", *words) for words in WORDS)],
)
def test_clicks_as_words(tmp_path: Path, kind: str, clicked: str, not_clicked: str) -> None:
    said = [clicked if click else not_clicked for click in TABLE["click"].to_pylist()]
    path = tmp_path / f"log.{kind}"
    if kind == "parquet":
        texts = pa.array([word.strip('"') for word in said])
        pq.write_table(TABLE.set_column(4, "click", texts), path)
    else:
        lines = [f"{i},{q},{d},{p},{word}\n" for (i, q, d, p), word in zip(_shown(), said, strict=True)]
        path.write_text(HEADER + "".join(lines))
    assert rows(path) == ROWS
    if clicked == "T":  # as every other word, once it was read
        assert sum(load_log(path).shown_counts["clicked"].to_pylist()) == 2


def _shown() -> list[tuple[Any, ...]]:
    return [tuple(row.values())[:4] for row in TABLE.to_pylist()]


def test_true_and_false(tmp_path: Path) -> None:
    """A column of truth values in Parquet, and as pandas writes it to CSV; null stays missing."""
    frame = TABLE.set_column(4, "click", TABLE["click"].cast(pa.bool_()))
    pq.write_table(frame, tmp_path / "log.parquet")
    frame.to_pandas().to_csv(tmp_path / "log.csv", index=False)
    for name in ("log.parquet", "log.csv"):
        assert rows(tmp_path / name) == ROWS
    clicks = pa.array([False, None, True, False, False])
    pq.write_table(TABLE.set_column(4, "click", clicks), tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text(HEADER + "1,q,a,1,False\n1,q,b,2,\n2,q,b,1,True\n2,q,a,2,False\n3,p,c,1,False\n")
    for name in ("log.parquet", "log.csv"):
        assert load_log(tmp_path / name, on_bad_rows="drop").manifest["bad_rows"] == {"bad click": 1}


def test_a_date_that_cannot_be_read(tmp_path: Path) -> None:
    """The error is about the date: no line before it holds another kind."""
    path = tmp_path / "log.csv"
    path.write_text(HEADER.strip() + ",timestamp\n" + "".join(f"{row},q,a,1,0,20/10/2025 00:25\n" for row in range(3)))
    with pytest.raises(DataError, match="2025-10-20 00:25") as error:
        load_log(path)
    assert (error.value.column, error.value.line) == ("timestamp", 2)
    times = pa.array(["2025-10-20 00:25", "20/10/2025 00:25", None, "", "2025-10-20"])
    with pytest.raises(DataError, match="20/10/2025") as error:
        load_log(TABLE.append_column("timestamp", times))
    assert (error.value.column, error.value.row) == ("timestamp", 1)


@pytest.mark.parametrize(("line", "column"), [("1,q,a,x,0", "position"), ("1,q,a,1,0,5", None)])
def test_a_csv_line_unlike_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, column: str | None
) -> None:
    """DuckDB takes the types from the first 20,480 rows, and fails later."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(HEADER + "".join(f"{row},q,a,1,0\n" for row in range(30_000)) + f"{line}\n")
    with pytest.raises(DataError) as error:
        load_log("log.csv")
    assert (error.value.file, error.value.line, error.value.column) == ("log.csv", 30_002, column)


@pytest.mark.parametrize("content", [b"", b"impression_id,query_id\n", b"PAR1 garbage PAR1"])
def test_no_parquet_file(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """The broken file is named as it is called from here, also if it is one of many."""
    monkeypatch.chdir(folder)
    for file, source in (("log.parquet", "log.parquet"), ("parquet/2.parquet", "parquet")):
        Path(file).write_bytes(content)
        with pytest.raises(DataError) as error:
            open_log(source)
        assert str(error.value.file) == file
        assert str(folder) not in str(error.value)


def test_kinds_of_timestamps(tmp_path: Path) -> None:
    for values in (["2024-01-01", "2024-01-02T10:00:00", "", None, "2024-01-05"], [1, 2, 3, 4, 5]):
        pq.write_table(TABLE.append_column("timestamp", pa.array(values)), tmp_path / "log.parquet")
        period = load_log(tmp_path / "log.parquet").manifest["period"]
        assert period == (["2024-01-01T00:00:00", "2024-01-05T00:00:00"] if "" in values else ["1", "5"])


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("nowhere.parquet", DataError, "no such file or folder"),
        ("*.none", DataError, "no file matches"),
        ("one.*", DataError, "several kinds"),
        ("empty", DataError, "contains no file"),
        ("notes.txt", DataError, "not a session log, and its name does not end in one of .parquet, .csv, .json"),
        ("stats", UsageError, "an aggregated log"),
        ("duckdb://none.db/clicks", DataError, "no such database"),
        ("duckdb://log.db/none", DataError, "there are clicks, seen"),
        ("duckdb://log.db", DataError, "name a table"),
        ("duckdb://notes.txt/clicks", DataError, "not a DuckDB database"),
        ("ftp://host/clicks", UsageError, "duckdb://file.db/table"),
    ],
)
def test_nothing_to_open(folder: Path, source: str, kind: type[SaferankError], message: str) -> None:
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("hello\tworld\n")
    if source == "stats":
        load_log(folder / "one.parquet").write(folder / "stats")
    path = source.replace("duckdb://", f"duckdb://{folder}/") if "://" in source else str(folder / source)
    with pytest.raises(kind, match=message):
        open_log(path)


@pytest.mark.parametrize("options", [{"layout": "wide"}, {"layout": "long:click"}, {"columns": {"clicked": "click"}}])
def test_wrong_calls(folder: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        open_log(folder / "one.parquet", **options)
