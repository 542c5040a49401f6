"""The pages in a real browser: nothing is fetched, nothing fails, everything is drawn, and can be read."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from saferank.report.doctor_page import doctor_page
from saferank.report.report_page import Report, report_page
from saferank.report.reproduction_page import run_page
from tests.lab.made_up import made_up
from tests.report.made_report import EVIL, NAME, full_report, made_health, made_manifest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
DESKTOP, PHONE = ViewportSize(width=1100, height=900), ViewportSize(width=375, height=800)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here to open pages in")

CHARTS = """() => [...document.querySelectorAll("svg")].map(svg => {
  const box = svg.getBoundingClientRect();
  const marks = [...svg.querySelectorAll("path, rect, line")].map(mark => mark.getBoundingClientRect());
  const cut = [...svg.querySelectorAll("text")].filter(text => {
    const t = text.getBoundingClientRect();
    return t.width > 0 && (t.left < box.left - 3 || t.right > box.right + 3);
  });
  return {width: box.width, height: box.height, marks: marks.filter(m => m.width + m.height > 4).length,
    cut: cut.map(text => text.textContent)};
})"""
COLOURS = """() => [document.body, document.querySelector("h1"), document.querySelector("svg text"),
  document.querySelector("td"), document.querySelector("figcaption, .soft")]
  .map(one => { const s = getComputedStyle(one); return one.tagName === "text" ? s.fill : s.color; })
  .concat(getComputedStyle(document.body).backgroundColor)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    pq.write_table(made_up(runs=2, points=5), folder / "results.parquet")
    made = {
        "full": report_page(full_report()),
        "bare": report_page(Report(NAME, made_manifest())),
        "run": run_page(folder),
        "doctor": doctor_page(made_health()),
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


NAMES = ("full", "bare", "run", "doctor")


def opened(browser: Browser, file: Path, size: ViewportSize = DESKTOP, *, dark: bool = False) -> Page:
    page = browser.new_page(viewport=size, color_scheme="dark" if dark else "light")
    page.goto(file.as_uri())
    return page


@pytest.mark.parametrize("name", NAMES)
def test_it_loads_by_itself_without_a_complaint(browser: Browser, pages: dict[str, Path], name: str) -> None:
    page = browser.new_page(viewport=DESKTOP)
    told: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(pages[name].as_uri())
    page.wait_for_load_state("networkidle")
    assert told == []
    assert requests == [pages[name].as_uri()]
    assert "saferank" in page.title()  # no id of the data has run and changed it
    page.close()


@pytest.mark.parametrize("name", NAMES)
def test_charts_are_drawn_and_no_word_is_cut_off(browser: Browser, pages: dict[str, Path], name: str) -> None:
    page = opened(browser, pages[name])
    charts = page.evaluate(CHARTS)
    assert len(charts) == {"full": 10, "bare": 2, "run": 6, "doctor": 2}[name]
    for chart in charts:
        assert chart["width"] > 200
        assert chart["height"] > 80
        assert chart["marks"] >= 3
        assert chart["cut"] == []
    page.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_phone_need_not_scroll_sideways(browser: Browser, pages: dict[str, Path], name: str) -> None:
    page = opened(browser, pages[name], PHONE)
    for details in page.locator("summary").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert all(chart["width"] <= PHONE["width"] for chart in page.evaluate(CHARTS))
    page.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dark", [False, True])
def test_ink_can_be_read_by_day_and_by_night(browser: Browser, pages: dict[str, Path], name: str, dark: bool) -> None:
    page = opened(browser, pages[name], dark=dark)
    *inks, ground = page.evaluate(COLOURS)
    assert (luminance(ground) < 0.05) == dark
    if name == "run":  # its figures are on white
        inks.pop(2)
    for ink in inks:
        assert contrast(ink, ground) >= 4.5, (ink, ground)
    page.close()


def test_on_paper_it_is_dark_on_white_and_without_links(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["full"], dark=True)
    page.emulate_media(media="print", color_scheme="dark")
    *inks, ground = page.evaluate(COLOURS)
    assert luminance(ground) == pytest.approx(1.0)
    assert all(contrast(ink, ground) >= 4.5 for ink in inks)
    assert page.locator("nav").is_hidden()
    page.close()


def test_what_is_folded_unfolds_without_script(browser: Browser, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["full"].as_uri())
    manifest = page.locator("#manifest pre").first
    assert manifest.is_hidden()
    page.locator("#manifest summary").first.click()
    assert manifest.is_visible()
    context.close()


def test_an_evil_id_is_text(browser: Browser, pages: dict[str, Path]) -> None:
    page = opened(browser, pages["full"])
    assert page.locator("script").count() == 0
    assert EVIL in page.locator("#segments td").first.inner_text()
    page.close()


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, as WCAG 2 has it."""
    shares = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
