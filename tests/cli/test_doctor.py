"""The command by itself, on logs of a few hundred rows."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from saferank.cli.doctor import doctor
from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import NO_VERDICT
from saferank.engine.errors import DataError, UsageError
from saferank.logs.load_log import load_log
from tests.cli.running import caller, words
from tests.cli.shown_log import write_shown_log

call = caller(doctor)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return pq.read_table(write_shown_log(tmp_path_factory.mktemp("doctor") / "log.parquet", queries=60))


@pytest.fixture
def log(original: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(original, "log.parquet")
    return Path("log.parquet")


def test_one_screen_and_a_page(log: Path) -> None:
    said = call(log)
    lines = said.rstrip().splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    health = diagnose(load_log(log, rankings=True))
    assert "interactions 1,200 clicks" in words(said)
    assert f"rankings per query {health.randomness.rankings:.1f}" in words(said)
    for finding in health.findings:
        assert words(f"{finding.level} {finding.text} {finding.remedy}") in words(said)
    low, high = health.harvested.low[1], health.harvested.high[1]
    assert health.em is not None
    assert f"{health.harvested.curve[1]:.2f} {low:.2f} to {high:.2f} {health.em.curve[1]:.2f}" in words(said)
    assert Path("doctor.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_findings_that_rule_a_verdict_out_are_named(log: Path, original: pa.Table) -> None:
    pq.write_table(original.filter(pc.equal(original["click"], 1)), log)
    said = call(log)
    (finding,) = diagnose(load_log(log)).blocking
    assert f"blocking {finding.text}" in words(said)
    assert words(NO_VERDICT) in words(said)
    assert "good" not in said.split()


@pytest.mark.parametrize(("documents", "share"), [(8, "25%"), (1, "0%")])
def test_features_show_what_was_never_shown_even_with_missing_values(log: Path, documents: int, share: str) -> None:
    ids = {
        "query_id": [f"q{query}" for query in range(60) for _ in range(documents)],
        "document_id": [f"d{document}" for _ in range(60) for document in range(documents)],
    }
    pq.write_table(pa.table(ids | {"price": pa.nulls(60 * documents, pa.float32())}), "features.parquet")
    assert f"never shown {share}" in words(call(log, "--features", "features.parquet"))


def test_columns_that_fit_stops_at_or_leaves_out_and_ids_in_another_form(log: Path) -> None:
    rows = [
        {"query": f"Q{query}", "document_id": f"d{price}", "price": price or None, "age": 1, "brand": "x"}
        for query in range(60)
        for price in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), "features.parquet")
    asked = "--features", "features.parquet", "--column", "query_id=query", "--no-rankings"
    pq.write_table(pq.read_table(log).rename_columns({"query_id": "query"}), log)
    found = json.loads(call(log, *asked, "--json"))
    columns, (ids,) = found["columns"], found["coverage"]["unmatched"]
    assert (columns["missing"], columns["constant"], columns["text"]) == ({"price": 60}, ["age"], ["brand"])
    assert (ids["column"], ids["unmatched"], ids["alike"], ids["differ_in"]) == ("query", 60, 60, "case")
    said, page = words(call(log, *asked)), words(Path("doctor.html").read_text(encoding="utf-8"))
    codes = ("missing-values", "text-columns", "constant-features", "unmatched-ids")
    for finding in (one for one in found["findings"] if one["code"] in codes):
        assert words(f"{finding['text']} {finding['remedy']}") in said
        assert words(finding["text"].replace("`fit`", "<code>fit</code>")) in page
    assert {*codes} <= {one["code"] for one in found["findings"]}


def test_a_column_of_users_that_is_not_named(log: Path, original: pa.Table) -> None:
    users = [f"u{row // 40}" for row in range(len(original))]
    pq.write_table(original.append_column("UserID", pa.array(users)), log)
    assert "--unit=UserID" in words(call(log))
    assert "--unit UserID" not in words(call(log, "--unit", "UserID"))


def test_statistics_in_place_of_the_log(log: Path) -> None:
    load_log(log).write("stats")
    said = words(call("stats"))
    assert "rankings per query not counted" in said
    assert "interactions 1,200 clicks" in said
    with pytest.raises(UsageError):
        call("stats", "--cutoff", "1")


def test_options(log: Path, original: pa.Table) -> None:
    names = ["clicked" if name == "click" else name for name in original.column_names]
    positions = original["position"].to_pylist()
    positions[0] = 0
    place = names.index("position")
    pq.write_table(original.rename_columns(names).set_column(place, "position", pa.array(positions)), log)
    with pytest.raises(DataError) as error:
        call(log, "--column", "click=clicked")
    assert error.value.file == str(log)
    usable = "--column", "click=clicked", "--on-bad-rows", "drop", "--no-rankings"
    said = words(call(log, *usable, "--examination", "inverse-rank:3"))
    assert "rankings per query not counted" in said
    assert "interactions 1,199 clicks" in said
    assert "EM given" in said
    assert "0.12" in said  # of rank 2, as given
    assert "\n   2 " not in call(log, *usable, "--examination", "1")  # a list of one: one rank


def test_wrong_calls(log: Path) -> None:
    for wrong in (["--column", "clicked"], ["--cutoff", "2", "--examination", "1,0.5,0.3"], ["--examination", "steep"]):
        with pytest.raises(UsageError, match=wrong[-1]):
            call(log, *wrong)
    with pytest.raises(UsageError, match="`out`"):
        call(log, "--out", "log.parquet")
    assert not Path("doctor.html").exists()
