"""report.html of a folder that `saferank reproduce` wrote: claims, tables and figures."""

import json
from pathlib import Path

from markupsafe import Markup

from saferank.lab.break_even import break_even_points
from saferank.lab.paper_findings import paper_findings
from saferank.lab.results import METRICS, read_results
from saferank.lab.results_table import CellStyle, results_table
from saferank.report.chart_style import HEIGHT, chart_svg
from saferank.report.figures import Figure, ablation_figure, main_figure
from saferank.report.page import render
from saferank.report.publish import break_even_rows

RESULTS = "results.parquet"


def reproduction_page(folder: Path) -> str:
    """The page as HTML."""
    by_metric = {metric: read_results(folder / RESULTS, metric) for metric in METRICS}
    results = by_metric["ndcg"]
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
        metrics=METRICS,
        charts={metric: _panels(main_figure(of), metric) for metric, of in by_metric.items()},
        tables={metric: results_table(of) for metric, of in by_metric.items()},
        style=CellStyle(best=Markup("<strong>{}</strong>")),
        break_even=break_even_rows(break_even_points(results)),
        ablation=_panels(ablation_figure(results), "ablation") if several_deltas else [],
        manifest=_manifest(folder / "manifest.json"),
    )


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
