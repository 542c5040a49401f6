"""Every page of made-up inputs, made once for all tests of a process that look at it."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from saferank.report.doctor_page import doctor_page
from saferank.report.plan_page import plan_page
from saferank.report.report_page import Report, report_page
from saferank.report.reproduction_page import reproduction_page
from tests.lab.made_up import made_up
from tests.report.made_report import EVIL, NAME, full_report, made_health, made_manifest, made_plan


def made_reproduction() -> str:
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        run.mkdir()
        pq.write_table(made_up(runs=2, points=5, dataset=EVIL), run / "results.parquet")
        (run / "manifest.json").write_text(json.dumps({"dataset": EVIL}))
        return reproduction_page(run)


PAGES: dict[str, Callable[[], str]] = {
    "doctor": lambda: doctor_page(made_health()),
    "plan": lambda: plan_page(made_plan()),
    "report": lambda: report_page(full_report()),
    "report_bare": lambda: report_page(Report(NAME, made_manifest())),
    "report_candidate": lambda: report_page(Report(NAME, {"candidate": {"source": EVIL}}, health=made_health())),
    "reproduction": made_reproduction,
}
page = cache(lambda name: PAGES[name]())
