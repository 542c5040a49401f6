"""report.html: a policy, its verdict and what it changes, on one page that needs no network and no script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from saferank import __version__
from saferank.doctor.health import Health
from saferank.report.log_sections import changes_sections, examination_section, health_section
from saferank.report.page import beside, figure, folded, items, page, paragraph, section, table
from saferank.report.report_charts import training_chart
from saferank.report.verdict_sections import assumptions_section, verdict_head, verdict_sections
from saferank.verdict.certificate import Certificate
from saferank.verdict.exposure_shift import Changes

STYLE = """
.verdict { display: inline-block; margin: 0 0 .8rem; padding: .25rem 1rem; border-radius: .5rem; font-size: 2rem;
  font-weight: 700; letter-spacing: .03em; color: var(--page); background: var(--soft); }
.verdict.good { background: var(--good); } .verdict.caution { background: var(--caution); }
.verdict.bad { background: var(--bad); } .next { font-size: 1.05rem; }
nav { margin: 1rem 0; font-size: .9rem; } nav a { color: var(--soft); margin-right: 1rem; white-space: nowrap; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
tr.chosen td { font-weight: 600; } li p { margin: .2rem 0; }
@media print { nav { display: none; } }
"""
TITLES = {
    "improvement": "Improvement", "bounds": "Bounds", "curves": "Curves", "watch": "Over time", "segments": "Segments",
    "traffic": "New queries",
    "exposure": "Exposure moved", "most": "What changes most", "examination": "Examination", "training": "Training",
    "health": "Log health", "assumptions": "Assumptions", "manifest": "Manifest",
}  # fmt: skip
"""Section -> its name in the list at the top."""
NOT_CERTIFIED = "Not certified: nothing says yet that this policy is as good as the ranker in use."


@dataclass(frozen=True, eq=False)
class Report:
    """What there is to tell about a policy; what is None is left out, with a word on how to get it."""

    name: str
    manifest: Mapping[str, Any]
    """Of the model."""
    certificate: Certificate | None = None
    changes: Changes | None = None
    health: Health | None = None


def report_page(report: Report) -> str:
    """Return the page."""
    sections = list(_sections(report))
    body = [
        *_head(report),
        _contents(sections),
        *sections,
        *_absent(report),
        paragraph(f"Made by saferank {__version__}.", "soft"),
    ]
    return page(f"saferank report: {report.name}", body, style=STYLE)


def _head(report: Report) -> Iterator[str]:
    manifest, certificate = report.manifest, report.certificate
    if certificate is None:
        yield '<p class="verdict">NOT CERTIFIED</p>'
        yield f"<h1>{escape(NOT_CERTIFIED)}</h1>"
        yield paragraph(
            f"Next: `saferank certify {report.name} LOG --features F`, on interactions that training never saw.", "next"
        )
    else:
        yield from verdict_head(certificate)
    log = manifest.get("inputs", {}).get("log") or {}
    pieces = [f"Model {report.name}", str(manifest.get("settings", {}).get("method", ""))]
    if log:
        pieces.append(f"learned from {log.get('source')}")
        period = log.get("period")
        pieces.append(f"{str(period[0])[:10]} to {str(period[1])[:10]}" if period else "")
    if certificate is not None:
        pieces.append(f"certified {certificate.created[:10]}")
    yield paragraph(", ".join(piece for piece in pieces if piece) + ".", "soft source")


def _contents(sections: list[str]) -> str:
    links = [
        f'<a href="#{name}">{escape(title)}</a>'
        for name, title in TITLES.items()
        if any(text.startswith(f'<section id="{name}"') for text in sections)
    ]
    return f'<nav aria-label="Contents">{" ".join(links)}</nav>'


def _sections(report: Report) -> Iterator[str]:
    manifest = report.manifest
    if report.certificate is not None:
        yield from verdict_sections(report.certificate)
    if report.changes is not None:
        yield from changes_sections(report.changes)
    origin = manifest.get("inputs", {}).get("examination")
    if manifest.get("examination"):
        yield examination_section(manifest["examination"], origin, report.health)
    if manifest.get("training", {}).get("history") or manifest.get("comparison"):
        yield _training(manifest)
    if report.health is not None:
        yield health_section(report.health)
    if report.certificate is not None:
        yield assumptions_section(report.certificate)
    yield _manifest(report)


def _training(manifest: Mapping[str, Any]) -> str:
    training, comparison = manifest.get("training", {}), manifest.get("comparison") or {}
    body = []
    if training.get("history"):
        caption = (
            f"Epoch {training['best_epoch']} of {len(training['history'])} had the best validation, and was kept. "
            "Risk is the price of uncertainty: the width of the bound that training maximises."
        )
        body.append(figure(training_chart(training["history"], training["best_epoch"]), caption))
    if comparison.get("policies"):
        rows = [
            (
                str(row["name"]),
                *(_decimal(row[name]) for name in ("estimate", "lower_bound", "divergence")),
                _share(row["never_shown"]),
            )
            for row in comparison["policies"]
        ]
        heading = ("policy", "clicks", "lower bound", "divergence", "never shown")
        told = table(heading, rows) + paragraph(str(comparison.get("note", "")), "soft")
        body.append(f"<div><h3>On the part {escape(str(comparison.get('part', '')))}</h3>{told}</div>")
    return section("training", "Training and comparison", beside(*body))


def _manifest(report: Report) -> str:
    body = [folded("Model", _json(report.manifest))]
    if report.certificate is not None:
        values = asdict(report.certificate) | {"verdict": report.certificate.verdict.value}
        body.append(folded("Certificate", _json(values)))
    return section("manifest", "What it was made from", *body)


def _absent(report: Report) -> Iterator[str]:
    missing = []
    if report.certificate is None:
        missing.append("The verdict, its bounds and what it assumes: `saferank certify`, then `--certificate`.")
    else:
        if not report.certificate.segments:
            missing.append("Who gains and who loses: `saferank certify --segment COLUMN`.")
        if not report.certificate.inputs.get("looks"):
            missing.append("The verdict over time: `saferank certify --watch`.")
    if report.health is None:
        missing.append("The health of the log: `--log LOG`.")
    if report.changes is None:
        missing.append("Exposure moved, and what changes most: `--log LOG --features F`.")
    if missing:
        yield section("absent", "Not in this report", items(missing))


def _json(values: Mapping[str, Any]) -> str:
    return f"<pre>{escape(json.dumps(values, indent=2))}</pre>"


def _decimal(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2%}"
