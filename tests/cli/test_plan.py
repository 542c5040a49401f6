"""The command by itself, on a log of a few thousand rows."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.cli.plan import plan
from saferank.engine.errors import DataError, UsageError
from saferank.logs.load_log import load_log
from tests.cli.running import caller, words
from tests.cli.shown_log import write_shown_log
from tests.report.parsed_page import Page

QUERIES, DOCUMENTS = 30, 6
call = caller(plan)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_shown_log(tmp_path / "log.parquet", queries=QUERIES, impressions=40)


@pytest.fixture
def features(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    table = {
        "query_id": [f"q{q}" for q in range(QUERIES) for _ in range(DOCUMENTS)],
        "document_id": [f"d{d}" for _ in range(QUERIES) for d in range(DOCUMENTS)],
        "price": pa.nulls(QUERIES * DOCUMENTS, pa.float32()),
        "score": rng.normal(size=QUERIES * DOCUMENTS),
    }
    pq.write_table(pa.table(table), tmp_path / "features.parquet")
    return tmp_path / "features.parquet"


def test_one_screen_a_page_and_json(log: Path, features: Path) -> None:
    options = ("--features", features, "--scores", "score", "--examination", "1,0.5", "--most-cost", "20%")
    said = call(log, *options, "--json", "plan.json")
    lines = said.rstrip().splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= 80 or str(log) in line for line in lines)
    written = json.loads(Path("plan.json").read_text())
    assert written["recommendation"] in words(said)
    assert written["per_day"] == pytest.approx(QUERIES * 40 / 10, rel=0.01)
    assert written["most_cost"] == 0.2
    page = Page(Path("plan.html").read_text())
    assert written["recommendation"] in page.text
    assert page.fetched == []
    assert "gain of 10%" in page.text
    assert len(page.ids) == len(set(page.ids))
    for way in written["ways"]:
        assert f"{100 * way['moved']:.1f}%" in said
        assert f"{100 * way['moved']:.1f}%" in page.text
    load_log(log).write("stats")
    again = call("stats", *options)
    assert again.splitlines()[3:] == said.splitlines()[3:]


def test_without_features_the_log_describes_the_ranker(log: Path) -> None:
    said = words(call(log))
    assert "days to certify a gain" in said
    table = pq.read_table(log).drop_columns(["timestamp"])
    pq.write_table(table, log)
    assert "Clicks lost, and interactions to certify a gain" in words(call(log))


def test_wrong_calls(log: Path, features: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`features`"):
        call(log, "--scores", "score")
    for share in ("lots", "100%", "-1%"):
        with pytest.raises(UsageError, match="`most_cost`"):
            call(log, f"--most-cost={share}")
    for option in ("--out", "--json"):
        with pytest.raises(UsageError, match=f"`{option[2:]}` .* is a folder"):
            call(log, option, tmp_path)
        with pytest.raises(UsageError, match=r"log\.parquet is also read by this command"):
            call(log, option, log)
    for column in ("rank", "price"):
        with pytest.raises(DataError) as error:
            call(log, "--features", features, "--scores", column)
        assert error.value.column == column


def test_documents_without_scores_stop_it_unless_dropped(log: Path, features: Path) -> None:
    pq.write_table(pq.read_table(features).slice(1), features)
    options = ("--features", features, "--scores", "score", "--examination", "1,0.5")
    with pytest.raises(DataError) as error:
        call(log, *options)
    assert error.value.file == str(log)
    said = call(log, *options, "--on-bad-rows", "drop")
    clicks = pq.read_table(log).to_pylist()
    lost = [row["click"] for row in clicks if (row["query_id"], row["document_id"]) == ("q0", "d0")]
    assert f"{sum(lost) / sum(row['click'] for row in clicks):.1%} of the clicks" in words(said)
