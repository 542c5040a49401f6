"""An output that cannot be written is found before the work, by every command that writes one."""

from pathlib import Path

import pytest

from tests.cli.running import Call

COMMANDS = {
    "demo": [],
    "simulate": ["synthetic:small", "--interactions", "10"],
    "aggregate": ["no.parquet"],
    "doctor": ["no.parquet"],
    "plan": ["no.parquet"],
    "fit": ["no.parquet", "--features", "no.parquet"],
    "split": ["no.parquet"],
    "certify": ["no", "no.parquet", "--features", "no.parquet"],
    "report": ["no"],
    "rank": ["no", "candidates.csv"],
    "reproduce": ["synthetic:small"],
}
"""None of these inputs is there, except the candidates, so the output has been checked first."""
PLACES = [
    pytest.param("a.txt/out.csv", id="below-a-file"),
    pytest.param(
        "/proc/self/out.csv",
        id="takes-no-files",
        marks=pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that takes no files"),
    ),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("command", COMMANDS)
def test_before_the_work(
    command: str, place: str, saferank: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "candidates.csv"):
        (tmp_path / name).write_text("query_id,document_id\n")
    ran = saferank(command, *COMMANDS[command], "--out", place)
    assert (ran.exit_code, ran.out) == (2, "")
    assert ran.err.removeprefix("Error:").split(":")[0].strip() == place
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.txt", "candidates.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["certify", "no", "no.parquet", "--features", "no.parquet", "--ledger", "a.txt/looks.json"],
        ["plan", "no.parquet", "--json", "a.txt/plan.json"],
    ],
    ids=["ledger", "json"],
)
def test_other_outputs(arguments: list[str], saferank: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("")
    ran = saferank(*arguments)
    assert (ran.exit_code, ran.out) == (2, "")
    assert ran.err.removeprefix("Error:").split(":")[0].strip() == arguments[-1]
