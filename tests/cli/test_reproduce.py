import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import UsageError
from saferank.lab.experiment import Plan
from saferank.lab.results import KNOWN_METHODS, LAST_RANK_METHODS, NEIGHBOURS, PAPER_METHODS, TRUST_METHODS
from tests.cli.running import Call


@pytest.mark.slow
@pytest.mark.usefixtures("few_queries")
def test_a_small_reproduction_writes_table_figures_and_findings(saferank: Call, tmp_path: Path) -> None:
    methods = "logging,exposure-ips,exposure-crm"
    options = ["--methods", methods, "--interactions", "100", "--runs", "1", "--jobs", "1", "--quick"]
    options += ["--gain", "linear", "--stop-by", "objective"]
    ran = saferank("reproduce", "synthetic:small", *options, "--out", tmp_path, "--json")
    assert ran.exit_code == 0, ran.err
    assert "Exposure CRM" in ran.err  # the screen is elsewhere, because of --json
    written = {path.name for path in tmp_path.iterdir()}
    assert {"results.parquet", "manifest.json", "report.md", "table_ndcg.tex", "figure_ndcg.png"} <= written
    assert {"figure_ndcg.svg", "figure_ndcg.html", "figure_ndcg_by_score.png"} <= written
    assert "(a)" in (tmp_path / "report.md").read_text()
    assert "gain: the label" in (tmp_path / "report.md").read_text()
    settings = json.loads((tmp_path / "manifest.json").read_text())["settings"]
    assert (settings["gain"], settings["training"]["stop_by"], settings["training"]["epochs"]) == (
        "linear",
        "objective",
        10,
    )
    assert pq.read_table(tmp_path / "results.parquet")["gain"].unique().to_pylist() == ["linear"]
    made = json.loads(ran.out)
    assert {(cell["method"], cell["interactions"]) for cell in made["table"]} >= {("exposure-crm", 100)}
    assert all(f"{cell['summary']['mean']:.3f}" in ran.err for cell in made["table"])
    assert made["findings"][0]["letter"] == "a"


@pytest.mark.parametrize(
    "wrong",
    [
        ["--methods", "magic"],
        ["--interactions", "lots"],
        ["--constant", "guess"],
        ["--gain", "square"],
        ["--stop-by", "eye"],
    ],
)
def test_a_wrong_call_ends_with_2_and_writes_nothing(wrong: list[str], saferank: Call, tmp_path: Path) -> None:
    ran = saferank("reproduce", "synthetic:small", *wrong, "--out", tmp_path / "x")
    assert ran.exit_code == 2
    assert wrong[1] in ran.err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ([], ()),
        (["--last-rank"], LAST_RANK_METHODS),
        (["--neighbours"], NEIGHBOURS),
        (["--trust"], TRUST_METHODS),
        (["--known-logging-policy", "--last-rank"], (*KNOWN_METHODS, *LAST_RANK_METHODS)),
    ],
)
def test_options_add_methods_to_the_papers(
    options: list[str], added: tuple[str, ...], saferank: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []

    def stop(plan: Plan, *_: object, **__: object) -> Path:
        plans.append(plan)
        raise UsageError("enough")

    monkeypatch.setattr("saferank.lab.reproduce.reproduce", stop)
    saferank("reproduce", "synthetic:small", *options, "--out", tmp_path / "x")
    assert plans[0].methods == (*PAPER_METHODS, *added)
