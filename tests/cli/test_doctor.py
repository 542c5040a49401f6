"""The command by itself, on logs of a few hundred rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from saferank.cli.doctor import doctor
from saferank.doctor.diagnosis import diagnose
from saferank.engine.errors import DataError, UsageError
from saferank.logs.load_log import load_log
from tests.doctor.logs import random_interactions

app = typer.Typer()
app.command()(doctor)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """60 queries with rankings in random order, one row a shown document."""
    rows = [
        {"impression_id": i, "query_id": query, "document_id": document, "position": rank, "click": document in clicked}
        for i, (query, ranking, clicked) in enumerate(random_interactions(60, 20, examination=[1.0, 0.5]))
        for rank, document in enumerate(ranking, 1)
    ]
    table = pa.Table.from_pylist(rows)
    file = tmp_path / "log.parquet"
    pq.write_table(table.set_column(4, "click", table["click"].cast(pa.int8())), file)
    return file


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def call(*arguments: str | Path) -> str:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False).output


def words(text: str) -> str:
    return " ".join(text.split())


def test_one_screen_and_a_page(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "doctor.html"
    said = call(log, "--out", out)
    lines = said.rstrip().splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 80 or str(out) in line or str(log) in line for line in lines)
    health = diagnose(load_log(log, rankings=True))
    assert "interactions 1,200 clicks" in words(said)
    assert f"rankings a query {health.randomness.rankings:.1f}" in words(said)
    for finding in health.findings:
        assert words(f"{finding.level} {finding.text} {finding.remedy}") in words(said)
    low, high = health.harvested.low[1], health.harvested.high[1]
    assert health.em is not None
    assert f"{health.harvested.curve[1]:.2f} {low:.2f} to {high:.2f} {health.em.curve[1]:.2f}" in words(said)
    assert "Without --features, which candidates were never shown is unknown." in words(said)
    assert f"All numbers, with pictures: {out}" in said
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "1,200" in page


def test_what_keeps_a_verdict_from_being_given(log: Path, tmp_path: Path) -> None:
    table = pq.read_table(log)
    pq.write_table(table.filter(pc.equal(table["click"], 1)), log)
    out = tmp_path / "doctor.html"
    said = call(log, "--out", out)
    assert all(len(line) <= 80 or str(out) in line or str(log) in line for line in said.splitlines())
    assert "No verdict is possible from this log: only-clicked-rows." in words(said)
    assert "good" not in said.split()
    assert "No verdict is possible from this log: only-clicked-rows." in out.read_text(encoding="utf-8")


def test_features_tell_what_was_never_shown(log: Path, tmp_path: Path) -> None:
    pairs = [(f"q{q}", f"d{d}") for q in range(60) for d in range(8)]
    names = [list(column) for column in zip(*pairs, strict=True)]
    features = pa.table({"query_id": names[0], "document_id": names[1], "price": np.ones(len(pairs))})
    pq.write_table(features, tmp_path / "features.parquet")
    said = words(call(log, "--features", tmp_path / "features.parquet", "--out", tmp_path / "doctor.html"))
    assert "25% of the candidates were never shown: nothing can be said about them." in said


def test_holes_in_features_do_not_keep_it_from_looking_at_the_log(log: Path, tmp_path: Path) -> None:
    queries = [f"q{q}" for q in range(60)]
    features = pa.table({"query_id": queries, "document_id": ["d0"] * 60, "price": pa.nulls(60, pa.float32())})
    pq.write_table(features, tmp_path / "features.parquet")
    said = words(call(log, "--features", tmp_path / "features.parquet", "--out", tmp_path / "doctor.html"))
    assert "0% of the candidates were never shown." in said


def test_one_document_a_query_leaves_nothing_to_order(tmp_path: Path) -> None:
    rows = [
        {"impression_id": i, "query_id": f"q{i % 30}", "document_id": "d1", "position": 1, "click": i % 2}
        for i in range(600)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    said = words(call(tmp_path / "log.parquet", "--out", tmp_path / "doctor.html"))
    assert "bad No query was ever shown with two documents: there is no order to learn." in said
    assert "can prove gains" not in said
    assert "Position bias" not in said


@pytest.mark.parametrize("name", ["log.parquet", "features.parquet"])
def test_the_page_does_not_replace_what_is_read(log: Path, tmp_path: Path, name: str) -> None:
    features = tmp_path / "features.parquet"
    pq.write_table(pa.table({"query_id": ["q0"], "document_id": ["d0"], "price": [1.0]}), features)
    before = (tmp_path / name).read_bytes()
    with pytest.raises(UsageError, match=rf"{name} is what is read; name another file"):
        call(log, "--features", features, "--out", tmp_path / name)
    with pytest.raises(UsageError, match=rf"{name} is a file; name a file in a folder"):
        call(log, "--features", features, "--out", tmp_path / name / "doctor.html")
    assert (tmp_path / name).read_bytes() == before


def test_statistics_in_place_of_the_log(log: Path, tmp_path: Path) -> None:
    load_log(log).write(tmp_path / "stats")
    said = call(tmp_path / "stats", "--out", tmp_path / "doctor.html")
    assert "rankings a query not counted" in words(said)
    assert "interactions 1,200 clicks" in words(said)
    with pytest.raises(UsageError, match="was aggregated with cutoff 2, not 1"):
        call(tmp_path / "stats", "--cutoff", "1", "--out", tmp_path / "doctor.html")


def test_options(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "doctor.html"
    table = pq.read_table(log)
    pq.write_table(table.rename_columns(["impression_id", "query_id", "document_id", "position", "clicked"]), log)
    said = call(log, "--column", "click=clicked", "--examination", "inverse-rank:3", "--no-rankings", "--out", out)
    assert "The log contradicts the given examination: rank 2 is given as 0.12 of rank 1" in words(said)
    assert "rankings a query not counted" in words(said)
    said = call(log, "--column", "click=clicked", "--examination", "1", "--out", out)
    assert "Rankings vary" in said
    assert "\n   2 " not in said  # a list of one says that there is one rank
    broken = table.set_column(3, "position", pa.array([0, *table["position"].to_pylist()[1:]]))
    pq.write_table(broken, log)
    with pytest.raises(DataError, match="has rows that cannot be used"):
        call(log, "--out", out)
    assert "Left out: 1 impression" in words(call(log, "--on-bad-rows", "drop", "--out", out))


def test_wrong_calls(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"--out {tmp_path} is a folder; name a file, such as .*/doctor.html"):
        call(log, "--out", tmp_path)
    with pytest.raises(UsageError, match="--column clicked: write OURS=THEIRS, such as click=clicked"):
        call(log, "--column", "clicked")
    with pytest.raises(UsageError, match=r"examination 1,0.5,0.3 is for 3 ranks, but the cutoff is 2"):
        call(log, "--cutoff", "2", "--examination", "1,0.5,0.3")
    with pytest.raises(UsageError, match="examination steep: write inverse-rank:POWER"):
        call(log, "--examination", "steep")


def test_help_says_what_it_is_for() -> None:
    said = words(call("--help").replace("│", " "))
    assert "Tell whether a click log is fit to learn from, and what to log differently." in said
    assert "exit code 0 whatever it finds" in said
