"""The page holds what the health says, stands by itself, and is written whole or not at all."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.health import Health
from saferank.report import doctor_page as module
from saferank.report.doctor_charts import COLOURS, curve_chart, traffic_chart
from saferank.report.doctor_page import HEADLINES, doctor_page, write_doctor_page
from tests.doctor.logs import aggregated, candidates, random_interactions
from tests.report.parsed_page import Page


@pytest.fixture(scope="module")
def health() -> Health:
    interactions = random_interactions(40, 30, examination=[1.0, 0.5, 0.3])
    log = aggregated(interactions[::2], interactions[1::2], cutoff=3, rankings=True, source="a<b>&c.parquet")
    return diagnose(log, candidates(**{f"q{q}": ["d0", "d1", "never"] for q in range(40)}), [1.0, 0.5, 0.3])


def test_everything_is_on_the_page(health: Health) -> None:
    page = Page(doctor_page(health))
    assert HEADLINES[health.level] in page.text
    assert "a<b>&c.parquet" in page.text
    for finding in health.findings:
        assert finding.text in page.text
        assert finding.remedy in page.text
    for number in (health.traffic.interactions, health.traffic.clicks, *health.shown, *health.clicked):
        assert f"{number:,}" in page.text
    low, high = health.harvested.low[2], health.harvested.high[2]
    assert f"{health.harvested.curve[2]:.3f} ({low:.3f} to {high:.3f})" in page.text
    for warning in health.harvested.warnings:
        assert warning in page.text
    for name in ("given", "different rankings of a query", "candidates never shown", "half-way to random"):
        assert name in page.text


def test_it_needs_no_network_and_no_script(health: Health) -> None:
    page = doctor_page(health)
    assert Page(page).fetched == []
    assert "url(http" not in page
    assert "@import" not in page
    assert len(page) < 100_000
    assert "prefers-color-scheme: dark" in page


def test_charts_take_the_ink_of_the_page_and_share_no_id(health: Health) -> None:
    page = doctor_page(health)
    ids = Page(page).ids
    assert ids
    assert len(ids) == len(set(ids))
    for used in re.findall(r"url\(#([^)]+)\)", page):
        assert used in ids
    for chart in (curve_chart(health), traffic_chart(health)):
        ElementTree.fromstring(chart)
        assert "currentColor" in chart
        assert not re.findall(r'(?:fill|stroke)="(?:#000|black|#888|#333|white|#fff)', chart)
    for name, colour in COLOURS.items():
        assert name in curve_chart(health)
        assert colour in curve_chart(health)


def test_what_is_unknown_is_said_to_be() -> None:
    """Nothing moved, no features, nothing held out."""
    bare = diagnose(aggregated([("a", ["x", "y"], ["x"])] * 12, cutoff=2))
    page = Page(doctor_page(bare))
    assert HEADLINES["bad"] in page.text
    assert "unknown" in page.text
    for absent in ("never shown,", "effective clicks,", "different rankings", "given"):
        assert absent not in page.text
    none = diagnose(aggregated([("a", ["x", "y"], [])] * 3, cutoff=3))
    assert "There is no click in this log" in Page(doctor_page(none)).text  # and rank 3 was never shown


def test_written_whole_or_not_at_all(health: Health, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "new" / "doctor.html"
    write_doctor_page(health, out)
    assert out.read_text(encoding="utf-8") == doctor_page(health)
    assert list(out.parent.iterdir()) == [out]

    def fails(_: Health) -> str:
        raise RuntimeError("no picture")

    monkeypatch.setattr(module, "curve_chart", fails)
    with pytest.raises(RuntimeError):
        write_doctor_page(health, out)
    assert "</html>" in out.read_text()
    assert list(out.parent.iterdir()) == [out]
