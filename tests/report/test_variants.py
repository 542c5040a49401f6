"""Pages whose input lacks something, or is at an extreme."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.engine.bounds.registry import BOUNDS
from saferank.report.doctor_page import doctor_page
from saferank.report.plan_page import plan_page
from saferank.report.report_charts import dial_chart
from saferank.report.report_page import BROKEN_BY, report_page
from saferank.report.reproduction_page import reproduction_page
from saferank.verdict.certificate import Verdict, confidence, meaning
from saferank.verdict.words import EARLIER, EXAMINATION, GIVEN, KNOWN, NOT_IN_A_LOG, STABLE, UNSEEN, UNTIL, WITHIN
from tests.doctor.logs import aggregated
from tests.lab.made_up import made_up
from tests.report.made_report import LOOKS, full_report, made_certificate, made_changes, made_health, made_plan
from tests.report.parsed_page import Page

SECTIONS = (
    "improvement", "bounds", "curves", "watch", "segments", "traffic", "exposure", "most", "examination", "training",
    "health", "assumptions", "manifest",
)  # fmt: skip


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="([\w-]+)"', page)


@pytest.mark.parametrize(
    ("changes", "gone", "absent"),
    [
        (
            {"certificate": None},
            {"improvement", "bounds", "curves", "watch", "segments", "traffic", "assumptions"},
            "saferank certify, then --certificate",
        ),
        ({"certificate": made_certificate(segments=(), inputs={})}, {"segments", "watch"}, "--segment COLUMN"),
        (
            {"certificate": made_certificate(bounds=(), other_curves=(), traffic=())},
            {"bounds", "curves", "traffic"},
            None,
        ),
        ({"changes": None, "health": None}, {"exposure", "most", "health"}, "--log LOG --features F"),
        ({"manifest": {}}, {"examination", "training"}, None),
    ],
)
def test_sections_without_data_are_left_out(changes: dict[str, Any], gone: set[str], absent: str | None) -> None:
    page = report_page(full_report(**changes))
    present = [name for name in SECTIONS if name not in gone]
    assert [name for name in sections(page) if name != "absent"] == present
    assert re.findall(r'<a href="#(\w+)"', page) == present
    assert ("absent" in sections(page)) == (absent is not None)
    assert absent is None or absent in Page(page).text.split("Not in this report")[1]


@pytest.mark.parametrize(
    ("verdict", "level", "then"),
    [
        (Verdict.DEPLOY, "good", "with rankings drawn from the policy"),
        (Verdict.KEEP, "bad", "smaller --delta"),
        (Verdict.MORE_DATA, "caution", "saferank certify --watch"),
    ],
)
def test_each_verdict_says_what_to_do(verdict: Verdict, level: str, then: str) -> None:
    certificate = made_certificate(verdict=verdict, serve_as="sampled")
    page = report_page(full_report(certificate=certificate, changes=None, health=None))
    assert f'<p class="verdict {level}">{verdict.value}</p>' in page
    assert f"<h1>{meaning(certificate)}</h1>" in page
    assert then in " ".join(Page(page).text.split())


def test_what_weakens_a_verdict_is_said() -> None:
    examination = made_certificate().examination | {"unchecked": True}
    weak = made_certificate(
        examination=examination, bound="student-t", tolerance=0.01, inputs={"looks": LOOKS[:1]}, segments=()
    )
    page = report_page(full_report(certificate=weak, changes=None, health=None))
    assert 0 < page.index("that the log cannot check") < page.index('class="verdict')
    assert "Even then, this bound gives no promise." in page
    assert "too much worse" in page  # the line is at the tolerance
    assert "watch-0" not in page  # one look is no curve
    assert "<td>2026-01-01</td>" in page


def test_the_dial_measures_by_the_loss_that_is_accepted() -> None:
    bounds = ((0.2, 0.003), (0.1, -0.002), (0.01, -0.02))
    drawn = dial_chart(made_certificate(tolerance=0.01, delta=0.05, lower=-0.01, delta_dial=bounds))
    marks = re.findall(r"1 - delta: ([\d.]+%); lower bound: [^;]*; is: ([\w ]+)", drawn)
    assert dict(marks) == {"80%": "DEPLOY", "90%": "DEPLOY", "95%": "DEPLOY", "99%": "not DEPLOY"}
    assert "limit: −0.01" in drawn  # noqa: RUF001 (as charts write a minus)


def test_the_dial_never_rises_with_the_confidence() -> None:
    bounds = ((0.2, 0.021), (0.1, 0.008), (0.01, 0.012), (0.001, -0.004))
    drawn = dial_chart(made_certificate(delta=0.05, lower=0.01, delta_dial=bounds))
    marks = re.findall(r"1 - delta: ([\d.]+%); lower bound: ([^;\"]*); is", drawn)
    assert list(dict(marks).items()) == [("80%", "0.021"), ("95%", "0.01"), ("99%", "0.01"), ("99.9%", "−0.004")]  # noqa: RUF001


def test_what_would_break_every_assumption_is_known() -> None:
    of_bounds = {text for bound in BOUNDS.values() for text in bound.assumptions}
    assert set(BROKEN_BY) == of_bounds | {
        EARLIER,
        EXAMINATION,
        GIVEN,
        KNOWN,
        *NOT_IN_A_LOG,
        STABLE,
        UNSEEN,
        UNTIL,
        WITHIN,
    }


def test_what_would_break_an_assumption_with_a_moment_in_it() -> None:
    certificate = replace(made_certificate(), assumptions=(UNTIL.format("2026-03-01"),))
    assert "made from clicks after that moment" in report_page(full_report(certificate=certificate))


def test_many_ranks_are_drawn_in_groups_and_a_log_may_have_no_click() -> None:
    moves = np.eye(26)
    moves[-1, -1] = 0.0
    health = replace(made_health(), clicked=made_health().clicked * 0)
    page = report_page(full_report(certificate=None, health=health, changes=replace(made_changes(), moves=moves)))
    for group in ("4-5", "6-10", "11-20", "21-25"):
        assert group in page


@pytest.mark.parametrize(("delta", "sure"), [(0.05, "95%"), (0.001, "99.9%"), (0.005, "99.5%"), (1e-7, "99.99999%")])
def test_confidence_is_not_rounded_to_certainty(delta: float, sure: str) -> None:
    assert confidence(delta) == sure
    assert f"With {sure} confidence" in meaning(made_certificate(delta=delta))


def test_what_the_log_cannot_tell_is_unknown() -> None:
    """Nothing moved, no features, nothing held out, rank 3 never shown."""
    page = Page(doctor_page(diagnose(aggregated([("a", ["x", "y"], ["x"])] * 12, cutoff=3), replicates=2)))
    assert "tr: 3 | 0 | 0 | unknown | unknown | unknown |" in "\n".join(page.lines)
    for absent in ("candidates never shown", "effective clicks,", "different rankings", "given"):
        assert absent not in page.text


def test_a_plan_without_timestamps_counts_interactions() -> None:
    page = Page(plan_page(made_plan(per_day=None)))
    assert "interactions 5% |" in "\n".join(page.lines)
    assert "interactions per day" not in page.text


def test_a_reproduction_without_ablation_and_manifest(tmp_path: Path) -> None:
    pq.write_table(made_up(runs=1, points=3, ablation=False), tmp_path / "results.parquet")
    page = reproduction_page(tmp_path)
    assert sections(page) == ["findings", "ndcg", "ndcg_by_score", "break-even"]
    assert "★" not in page  # one run, no test
