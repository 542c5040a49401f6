"""Every page: its text and structure as committed, and that it is safe, complete and by itself."""

import os
import re
from pathlib import Path

import pytest

from saferank import __version__
from tests.report.made_pages import PAGES, page
from tests.report.made_report import EVIL
from tests.report.parsed_page import Page

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("name", PAGES)
def test_it_is_as_committed(name: str) -> None:
    found = "\n".join(Page(page(name)).lines).replace(__version__, "VERSION") + "\n"
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), "if this is meant: UPDATE_SNAPSHOTS=1 pytest tests/report"


@pytest.mark.parametrize("name", PAGES)
def test_ids_and_names_of_the_data_are_text(name: str) -> None:
    assert "<script" not in page(name)
    assert EVIL in Page(page(name)).text
    assert "<b>" not in page(name).replace('<div class="tile"><b>', "")  # the model's name


@pytest.mark.parametrize("name", PAGES)
def test_it_needs_nothing_else(name: str) -> None:
    html, parsed = page(name), Page(page(name))
    assert {link for link in parsed.fetched if link != "#"} <= {f"#{id}" for id in parsed.ids}
    assert len(parsed.ids) == len(set(parsed.ids))
    assert set(re.findall(r"url\(([^)]+)\)", html)) <= {f"#{id}" for id in parsed.ids}
    assert "@import" not in html
    assert len(html) < 300_000


@pytest.mark.parametrize("name", ["doctor", "plan", "report", "report_bare"])
def test_charts_take_the_ink_of_the_page(name: str) -> None:
    charts = re.findall(r"<svg.*?</svg>", page(name), re.DOTALL)
    assert charts
    for svg in charts:
        assert "currentColor" in svg
        assert not re.findall(r'(?:fill|stroke)="(?:#000|black|#888|#333|white|#fff)"', svg)


def test_the_same_input_gives_the_same_bytes() -> None:
    """Also inside the charts, which the committed text leaves out."""
    assert PAGES["report_bare"]() == page("report_bare")
