"""The pages in a browser: nothing is fetched, nothing fails, all charts are drawn, and the text can be read."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tests.report.made_pages import page as made_page
from tests.report.made_report import EVIL

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
    """As files; made once for these tests and those of their text."""
    folder = tmp_path_factory.mktemp("pages")
    files = {name: folder / f"{name}.html" for name in CHARTS_OF}
    for name, file in files.items():
        file.write_text(made_page(name), encoding="utf-8")
    return files


CHARTS_OF = {"report": 10, "reproduction": 6, "doctor": 2, "plan": 1}


@pytest.mark.parametrize("name", CHARTS_OF)
def test_it_loads_by_itself_with_every_chart_drawn(browser: Browser, pages: dict[str, Path], name: str) -> None:
    page = browser.new_page(viewport=DESKTOP, color_scheme="light")
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(pages[name].as_uri())
    page.wait_for_load_state("networkidle")
    assert messages == []
    assert requests == [pages[name].as_uri()]
    assert "saferank" in page.title()  # no id of the data has run as a script and changed it
    charts = page.evaluate(CHARTS)
    assert len(charts) == CHARTS_OF[name]
    for chart in charts:
        assert chart["width"] > 200
        assert chart["height"] > 80
        assert chart["marks"] >= 3
        assert chart["cut"] == []
    check_contrast(page, name, dark=False)
    page.close()


@pytest.mark.parametrize("name", CHARTS_OF)
def test_a_dark_phone_can_read_it_without_scrolling_sideways(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    page = browser.new_page(viewport=PHONE, color_scheme="dark")
    page.goto(pages[name].as_uri())
    for details in page.locator("summary").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert all(chart["width"] <= PHONE["width"] for chart in page.evaluate(CHARTS))
    check_contrast(page, name, dark=True)
    page.close()


def test_on_paper_it_is_dark_on_white_and_without_links(browser: Browser, pages: dict[str, Path]) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(pages["report"].as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    check_contrast(page, "report", dark=False)
    assert page.locator("nav").is_hidden()
    page.close()


def test_details_open_without_script_and_an_evil_id_is_text(browser: Browser, pages: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["report"].as_uri())
    manifest = page.locator("#manifest pre").first
    assert manifest.is_hidden()
    page.locator("#manifest summary").first.click()
    assert manifest.is_visible()
    assert EVIL in page.locator("#segments td").first.inner_text()
    context.close()


def check_contrast(page: Page, name: str, *, dark: bool) -> None:
    *inks, ground = page.evaluate(COLOURS)
    assert (luminance(ground) < 0.05) == dark
    if name == "reproduction":  # its figures are on white
        inks.pop(2)
    assert all(contrast(ink, ground) >= 4.5 for ink in inks), (inks, ground)


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` by WCAG 2."""
    shares = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
