"""`saferank split`, and the command that its screen says to run next."""

import json
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.running import run_here
from tests.verdict.equal_shop import INTERACTIONS, by_clicks, equal_shop_log


@pytest.mark.parametrize(
    ("options", "independence"),
    [
        ([], "stated"),
        (["--split", "50/20/30", "--unit", "user_id", "--column", "click=click"], "stated"),
        (["--split-by", "time"], "trained-until"),
    ],
)
def test_what_the_screen_says_to_run_next_holds_out_what_was_held_out(
    options: list[str],
    independence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    table = equal_shop_log(3)
    pq.write_table(table, "log.parquet")
    done = run_here(["split", "log.parquet", "--out", "train.parquet", *options], monkeypatch, capsys)
    assert done.exit_code == 0, done.err
    train = pq.read_table("train.parquet")
    kept = len(train) // 3
    assert f"{kept:,} impressions of {INTERACTIONS:,}; {INTERACTIONS - kept:,} are held out" in done.out
    scores = by_clicks(train)
    pq.write_table(type(train).from_pydict(scores), "scores.parquet")
    words = shlex.split(done.out.splitlines()[-1])
    assert words[:2] == ["saferank", "certify"]
    done = run_here(words[1:], monkeypatch, capsys)
    assert done.exit_code in (3, 4), done.err
    found = json.loads(Path("certificate.json").read_text())
    assert found["independence"] == independence
    if independence == "stated":
        assert found["interactions"] == INTERACTIONS - kept
    else:
        assert found["inputs"]["log"]["parts"]["train"]["interactions"] == pytest.approx(kept, abs=1)


def test_wrong_calls_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    pq.write_table(equal_shop_log(3, 50), "logs/day-1.parquet")
    before = Path("logs/day-1.parquet").read_bytes()
    for log, out, more in (
        ("logs", "logs/train.parquet", []),
        ("logs/day-*.parquet", "logs/day-train.parquet", []),
        ("logs/day-1.parquet", "logs/day-1.parquet", []),
        ("logs", "train.parquet", ["--split", "60/40"]),
        ("logs", "train.parquet", ["--split-by", "unit"]),
        ("logs", "train.parquet", ["--column", "click"]),
    ):
        assert run_here(["split", log, "--out", out, *more], monkeypatch, capsys).exit_code == 2
    assert run_here(["split", "nowhere.parquet", "--out", "train.parquet"], monkeypatch, capsys).exit_code == 1
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["day-1.parquet"]
    assert Path("logs/day-1.parquet").read_bytes() == before
