"""The page holds what the certificate, the model and the log say; what there is no data for is left out."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saferank.engine.bounds.registry import BOUNDS
from saferank.report.report_page import NOT_CERTIFIED, Report, report_page
from saferank.report.verdict_sections import BREAKS
from saferank.verdict.certificate import Needed, Verdict, confidence, meaning
from saferank.verdict.decision import EXAMINATION, GIVEN, KNOWN, STABLE, WITHIN
from tests.report.made_report import (
    EVIL,
    LOOKS,
    NAME,
    full_report,
    made_certificate,
    made_changes,
    made_health,
    made_manifest,
)
from tests.report.parsed_page import Page

ALL = ["improvement", "bounds", "curves", "watch", "segments", "traffic", "exposure", "most", "examination",
       "training", "health", "assumptions", "manifest"]  # fmt: skip


@pytest.fixture(scope="module")
def page() -> str:
    return report_page(full_report())


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="(\w+)"', page)


def test_every_section_is_linked_to(page: str) -> None:
    assert re.findall(r'<a href="#(\w+)"', page) == ALL


def test_every_section_is_there(page: str) -> None:
    assert sections(page) == ALL
    parsed = Page(page)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(parsed.ids)


@pytest.mark.parametrize(
    ("changes", "gone", "words"),
    [
        (
            {"certificate": None},
            {"improvement", "bounds", "curves", "watch", "segments", "traffic", "assumptions"},
            "saferank certify, then --certificate",
        ),
        ({"certificate": made_certificate(segments=())}, {"segments"}, "certify --segment COLUMN"),
        ({"certificate": made_certificate(inputs={})}, {"watch"}, "certify --watch"),
        ({"certificate": made_certificate(bounds=())}, {"bounds"}, None),
        ({"certificate": made_certificate(other_curves=(), traffic=())}, {"curves", "traffic"}, None),
        ({"changes": None}, {"exposure", "most"}, "--log LOG --features F"),
        ({"health": None}, {"health"}, "--log LOG"),
        ({"manifest": {"examination": [1.0, 0.5]}}, {"training"}, None),
    ],
)
def test_sections_without_data_are_left_out(changes: dict[str, Any], gone: set[str], words: str | None) -> None:
    page = report_page(full_report(**changes))
    assert [name for name in sections(page) if name != "absent"] == [name for name in ALL if name not in gone]
    assert ("absent" in sections(page)) == (words is not None)
    assert words is None or words in Page(page).text.split("Not in this report")[1]
    assert set(re.findall(r'<a href="#(\w+)"', page)) <= set(ALL) - gone


def test_a_bare_model_is_not_certified() -> None:
    page = Page(report_page(Report(NAME, made_manifest())))
    assert NOT_CERTIFIED in page.text
    assert f"saferank certify {NAME} LOG --features F" in page.text
    assert "DEPLOY" not in page.text


@pytest.mark.parametrize(
    ("changes", "level", "then"),
    [
        ({"verdict": Verdict.DEPLOY}, "good", "Next: put it live, served by score, as it was certified."),
        ({"verdict": Verdict.DEPLOY, "serve_as": "sampled"}, "good", "served as rankings drawn from the policy"),
        ({"verdict": Verdict.KEEP}, "bad", "Next: keep the current ranker. Fit again"),
        (
            {"verdict": Verdict.MORE_DATA, "needed": Needed(50_000, 77_000, "DEPLOY", (3.0, 9.0))},
            "caution",
            "go on logging it",
        ),
    ],
)
def test_the_verdict_and_what_to_do(changes: dict[str, Any], level: str, then: str) -> None:
    certificate = made_certificate(**changes)
    page = report_page(full_report(certificate=certificate))
    assert f'<p class="verdict {level}">{certificate.verdict.value}</p>' in page
    assert f"<h1>{meaning(certificate)}</h1>" in page
    assert then in Page(page).text


def test_numbers_are_those_of_the_certificate(page: str) -> None:
    certificate, text = made_certificate(), Page(page).text
    for value in (certificate.improvement, certificate.lower, certificate.upper):
        assert text.count(f"{value:+.5f}") >= 2  # chart and words
        assert f"{value / certificate.click_rate:+.1%}" in text
        assert f"{value / certificate.click_rate:+.2%}" in text
    for told in ("12,345", "0.43210", "2,346", "1.2%"):
        assert told in text
    for row in certificate.bounds:
        holds = "at every look" if row.any_time else "at one look" if row.guarantee else "no promise"
        cells = (row.name, f"{row.lower:+.5f}", f"{row.upper:+.5f}", holds)
        assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    assert page.count('<tr class="chosen">') == 2  # a bound and a curve
    assert page.count('<tr class="soft">') == 2
    for delta, _ in certificate.delta_dial:
        assert confidence(delta) in text
    for curve in certificate.other_curves:
        assert f"<td>{curve.curve}</td><td>{curve.last:.2f}</td><td>{curve.improvement:+.5f}</td>" in page
    for look in LOOKS:
        assert f"<td>{look['at']}</td><td>{look['interactions']:,}</td>" in page
    for segment in (*certificate.segments, *certificate.traffic):
        assert f"<td>{segment.improvement:+.5f}</td><td>{segment.lower:+.5f}</td>" in page
    assert [cell for cell in ("loses", "open", "gains") if f"<td>{cell}</td>" in page] == ["loses", "open", "gains"]


def test_numbers_of_changes_training_and_health(page: str) -> None:
    changes, health, text = made_changes(), made_health(), Page(page).text
    assert f"{changes.moved:.1%} of all exposure goes to other documents" in text
    assert f"{changes.top_stays:.1%} of cases" in text
    assert changes.queries
    for query in changes.queries:
        assert f"<td>{query.interactions:,}</td><td>{query.moved:.0%}</td>" in page
    for document in (*changes.gained, *changes.lost):
        assert f"<td>{document.logging:.3f}</td><td>{document.new:.3f}</td>" in page
    for band in changes.bands:
        assert f"<td>{band.pairs:,}</td><td>{band.logging:.2%}</td><td>{band.new:.2%}</td>" in page
    for share in changes.moves.ravel():
        assert share < 0.005 or f"{share:.0%}" in text
    assert "Epoch 3 of 4 had the best validation" in text
    assert "<td>0.4321</td><td>0.3456</td><td>1.2345</td><td>3.21%</td>" in page
    assert "<td>0.3456</td><td>unknown</td><td>3.21%</td>" in page
    assert "Not a certificate." in text
    for finding in health.findings:
        assert finding.text in text
        assert finding.remedy in text
    assert "It is given: 1,0.5,0.25." in text


def test_what_comes_from_data_is_escaped(page: str) -> None:
    """It is in the ids, a segment, a policy's name, the log's name, a warning and the manifest."""
    parsed = Page(page)
    assert EVIL not in page
    assert parsed.text.count(EVIL) >= 6
    assert "<script" not in page
    assert "<b>" not in re.sub(r'<div class="tile"><b>', "", page)  # the model's name
    assert [what for what in parsed.fetched if not what.startswith("#")] == []


def test_it_stands_by_itself(page: str) -> None:
    assert "url(http" not in page
    assert "@import" not in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert len(page) < 300_000
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        assert "currentColor" in svg
        assert not re.findall(r'(?:fill|stroke)="(?:#000|black|#888|#333|white|#fff)"', svg)


def test_the_same_input_gives_the_same_bytes(page: str) -> None:
    assert report_page(full_report()) == page


def test_what_would_break_every_assumption_is_told(page: str) -> None:
    known = {text for bound in BOUNDS.values() for text in bound.assumptions} | {
        EXAMINATION,
        GIVEN,
        KNOWN,
        STABLE,
        WITHIN,
    }
    assert set(BREAKS) == known
    text = Page(page).text.split("What it assumes")[-1]
    for assumption in made_certificate().assumptions:
        assert assumption[1:] in text
    assert text.count("Broken by: ") == len(made_certificate().assumptions) - 1  # one is new to the page


def test_a_bound_without_promise_says_so() -> None:
    text = Page(report_page(full_report(certificate=made_certificate(bound="student-t")))).text
    assert "This bound gives no promise even so." in text


def test_an_unchecked_curve_is_said_before_the_verdict() -> None:
    unchecked = made_certificate(examination=made_certificate().examination | {"unchecked": True})
    page = report_page(full_report(certificate=unchecked))
    assert 0 < page.index("that the log cannot check") < page.index('class="verdict')
    assert "that the log cannot check" not in report_page(full_report())


def test_doubts_and_what_the_promise_covers_are_on_the_page(page: str) -> None:
    text = Page(page).text
    for doubt in made_certificate().doubts:
        assert f"{doubt.text} {doubt.remedy}" in text
    assert f"The promise covers {made_certificate().covers}." in text


def test_one_look_is_no_curve() -> None:
    page = report_page(full_report(certificate=made_certificate(inputs={"looks": LOOKS[:1]})))
    assert "watch-0" not in page
    assert "<td>2026-01-01</td>" in page


def test_a_tolerance_moves_the_line_not_zero() -> None:
    text = Page(report_page(full_report(certificate=made_certificate(tolerance=0.01)))).text
    assert "too much worse" in text
    assert "minus 0.01" in text


def test_many_ranks_are_drawn_in_groups() -> None:
    moves = np.eye(26)
    moves[-1, -1] = 0.0
    page = report_page(full_report(changes=replace(made_changes(), moves=moves)))
    for group in ("4-5", "6-10", "11-20", "21-25"):
        assert group in page


def test_a_clickless_log_has_a_page() -> None:
    health = replace(made_health(), clicked=made_health().clicked * 0)
    assert "Health of the log" in report_page(full_report(health=health))


@pytest.mark.parametrize(("delta", "sure"), [(0.05, "95%"), (0.001, "99.9%"), (0.005, "99.5%"), (1e-4, "99.99%")])
def test_confidence_is_not_rounded_to_certainty(delta: float, sure: str) -> None:
    assert confidence(delta) == sure
    assert f"With {sure} confidence" in meaning(made_certificate(delta=delta))


def test_a_tiny_delta_is_not_certainty() -> None:
    assert confidence(1e-7) == "99.99999%"
