import json
from functools import partial
from pathlib import Path

import pytest

from saferank.lab.paper_methods import learn_in_world
from saferank.learning.settings import TrainingSettings
from tests.cli.running import Call, cells


@pytest.mark.slow
@pytest.mark.usefixtures("few_queries")
def test_it_learns_certifies_and_reports(saferank: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = partial(learn_in_world, training=TrainingSettings(epochs=2))
    monkeypatch.setattr("saferank.lab.paper_methods.learn_in_world", short)
    sizes = ["--few", "50", "--many", "1e4", "--little", "500", "--much", "5e3"]
    first = saferank("demo", "--seed", "1", *sizes, "--out", tmp_path, "--json")
    assert first.exit_code == 0
    assert max(map(len, first.err.splitlines())) <= max(80, len(str(tmp_path)) + 40)
    rows, made = cells(first.err), json.loads(first.out)  # the screen is elsewhere, because of --json
    assert set(rows) >= {"current ranker", "IPS: trust the clicks", "CRM: price in the risk"}
    production = float(rows["current ranker"][0])
    assert made["current_ranker"] == pytest.approx(production, abs=0.0006)
    crm = [one["ndcg"] for one in made["learned"] if one["method"] == "exposure-crm"]
    assert [f"{value:.3f}" for value in crm] == [cell.split()[0] for cell in rows["CRM: price in the risk"]]
    for name in ("IPS: trust the clicks", "CRM: price in the risk"):
        for cell in rows[name]:
            value, change = cell.split()
            assert float(change.strip("()")) == pytest.approx(float(value) - production, abs=0.0011)
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    for size, name in (("500", "little"), ("5,000", "much")):
        told = json.loads((tmp_path / name / "certificate.json").read_text())
        assert rows[size][-1] == told["verdict"]
        assert float(rows[size][1]) == pytest.approx(told["lower"], abs=1e-4)
        assert float(rows[size][1]) < float(rows[size][2])  # the bound is below the truth
    assert rows["500"][-1] == "MORE DATA"
    assert [(one["interactions"], one["verdict"]) for one in made["verdicts"]] == [
        (500, "MORE DATA"),
        (5_000, rows["5,000"][-1]),
    ]
    assert "<svg" in (tmp_path / "report.html").read_text()
