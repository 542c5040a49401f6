"""report.html of a folder that `saferank reproduce` wrote: claims, tables and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from saferank.lab.break_even import break_even_points
from saferank.lab.paper_findings import paper_findings
from saferank.lab.results import METRICS, Metric, Results, read_results
from saferank.lab.results_table import CellStyle, results_table
from saferank.report.chart_style import HEIGHT, chart_svg
from saferank.report.figures import Figure, ablation_figure, main_figure
from saferank.report.page import render
from saferank.report.publish import break_even_rows

RESULTS = "results.parquet"
IN_HTML = CellStyle(best=Markup("<strong>{}</strong>"))


def reproduction_page(folder: Path) -> str:
    """The page as HTML."""
    results = read_results(folder / RESULTS)
    findings = paper_findings(results)
    decided = [one.holds for one in findings if one.holds is not None]
    several_deltas = any(len(results.deltas(dataset, "exposure-crm")) > 1 for dataset in results.datasets)
    return render(
        "reproduction.html",
        name=folder.name,
        datasets=results.datasets,
        findings=findings,
        held=sum(decided),
        decided=len(decided),
        metrics=[_metric(read_results(folder / RESULTS, metric), metric) for metric in METRICS],
        break_even=break_even_rows(break_even_points(results)),
        ablation=_panels(ablation_figure(results), "ablation") if several_deltas else [],
        manifest=_manifest(folder / "manifest.json"),
    )


def _metric(results: Results, metric: Metric) -> dict[str, Any]:
    table = results_table(results)
    return {
        "id": metric,
        "name": METRICS[metric],
        "charts": _panels(main_figure(results), metric),
        "heading": table.heading(),
        "rows": table.text_rows(IN_HTML),
        "legend": table.legend(),
    }


def _panels(figure: Figure, name: str) -> list[Markup]:
    """Each panel of a figure by itself, so that it can be read on a phone."""
    panels = [panel for row in getattr(figure, "vconcat", [figure]) for panel in row.hconcat]
    return [chart_svg(panel, f"{name}-{place}", panel.title, height=HEIGHT + 30) for place, panel in enumerate(panels)]


def _manifest(file: Path) -> str:
    """The manifest as indented text; empty if there is none that can be read."""
    try:
        return json.dumps(json.loads(file.read_text(encoding="utf-8")), indent=2)
    except (OSError, ValueError):
        return ""
