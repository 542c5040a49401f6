"""A reproduction in the frame of a report."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from saferank.lab.break_even import matches, needed_text
from saferank.lab.paper_findings import findings
from saferank.lab.results_table import results_table
from saferank.report.reproduction_page import run_page
from tests.lab.made_up import made_up
from tests.report.parsed_page import Page

EVIL = "<script>data</script>"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    pq.write_table(made_up(runs=3, points=8, dataset=EVIL), folder / "results.parquet")
    (folder / "manifest.json").write_text(json.dumps({"dataset": EVIL}))
    return folder


@pytest.fixture(scope="module")
def page(run: Path) -> str:
    return run_page(run)


def test_table_findings_and_matches_are_on_the_page(run: Path, page: str) -> None:
    text = Page(page).text
    results = run / "results.parquet"
    for found in findings(results):
        assert f"({found.letter}) {found.claim}." in text
        assert found.evidence in text
    held = [found.holds for found in findings(results) if found.holds is not None]
    assert f"{sum(held)} of the {len(held)} claims that these results can decide hold." in text
    for cells in results_table(results).rows.values():
        for cell in cells:
            assert cell is None or f"{cell.summary.mean:.3f} ({cell.summary.deviation:.3f})" in text
    for match in matches(results):
        assert f"<td>{needed_text(match)}</td>" in page


def test_figures_of_both_metrics_and_the_ablation(page: str) -> None:
    assert re.findall(r'<section id="(\w+)"', page) == [
        "findings", "ndcg", "ndcg_by_score", "matches", "ablation", "manifest",
    ]  # fmt: skip
    assert page.count("<svg") == 6  # all N and little data, twice; two methods over delta


def test_it_stands_by_itself_and_escapes(run: Path, page: str) -> None:
    parsed = Page(page)
    assert EVIL in parsed.text
    assert "<script" not in page
    assert parsed.fetched == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert run_page(run) == page


def test_without_ablation_and_manifest(tmp_path: Path) -> None:
    pq.write_table(made_up(runs=1, points=3, ablation=False), tmp_path / "results.parquet")
    page = run_page(tmp_path)
    assert 'id="ablation"' not in page
    assert 'id="manifest"' not in page
    assert "★" not in page  # one run, no test
