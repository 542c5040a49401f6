"""report.html of a reproduction: the table, the findings and the figures, in the frame of every report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank import __version__
from saferank.lab.break_even import matches, needed_text, saving_text
from saferank.lab.paper_findings import Finding, findings
from saferank.lab.results import LABELS, Metric, plain_number, read_results
from saferank.lab.results_table import Cell, ResultsTable, results_table
from saferank.lab.significance import SIGNIFICANT
from saferank.report.chart_svg import chart_svg
from saferank.report.figures import ablation_figure, main_figure
from saferank.report.page import charts, figure, finding, folded, page, paragraph, section, table
from saferank.report.report_charts import HEIGHT, WIDTH

if TYPE_CHECKING:
    import altair as alt

RESULTS = "results.parquet"
METRICS: dict[Metric, str] = {"ndcg": "NDCG@5, expected under the policy", "ndcg_by_score": "NDCG@5, ranked by score"}
LEVELS = {True: ("good", "holds"), False: ("bad", "does not hold"), None: ("caution", "undecided")}
STYLE = "figure svg { background: #fff; color: #222; border-radius: .5rem; } figure { margin-bottom: 1rem; }"
"""The figures' colours are chosen for white."""
MARKS = {"lower": " ▼", "higher": " ▲", "same": " ★", "": ""}


def run_page(folder: Path) -> str:
    """Return the page of a folder that `saferank reproduce` wrote."""
    results = folder / RESULTS
    read = read_results(results)
    found = findings(results)
    decided = [one.holds for one in found if one.holds is not None]
    body = [
        f"<h1>{sum(decided)} of the {len(decided)} claims that these results can decide hold.</h1>",
        paragraph(f"{folder.name}: {', '.join(read.datasets)}.", "soft source"),
        section("findings", "The paper's claims", *(_finding(one, len(read.datasets)) for one in found)),
    ]
    for metric, name in METRICS.items():
        made = results_table(results, metric=metric)
        drawn = [figure(svg, "") for svg in _drawn(main_figure(results, metric), metric)]
        body.append(section(metric, name, charts(*drawn), _table(made), paragraph(_legend(made), "soft")))
    body.append(
        section(
            "matches",
            "Interactions needed to match the logging policy",
            table(
                ("method", "data set", "interactions", "saving against exposure IPS"),
                [(LABELS[one.method], one.dataset, needed_text(one), saving_text(one)) for one in matches(results)],
            ),
        )
    )
    if any(len(read.deltas(dataset, "exposure-crm")) > 1 for dataset in read.datasets):
        drawn = [figure(svg, "") for svg in _drawn(ablation_figure(results), "ablation")]
        body.append(section("ablation", "How delta matters", charts(*drawn)))
    body += _manifest(folder / "manifest.json")
    body.append(paragraph(f"Made by saferank {__version__}.", "soft"))
    return page(f"saferank report: {folder.name}", body, style=STYLE)


def _finding(one: Finding, datasets: int) -> str:
    where = f" ({one.dataset})" if datasets > 1 else ""
    level, word = LEVELS[one.holds]
    return finding(level, f"({one.letter}) {one.claim}{where}.", f"{one.evidence}.", word=word)


def _table(made: ResultsTable) -> str:
    several = len({dataset for dataset, _ in made.columns}) > 1
    heading = [f"{f'{dataset}, ' if several else ''}N = {plain_number(n)}" for dataset, n in made.columns]
    return table(["", *heading], [[LABELS[method], *map(_cell, cells)] for method, cells in made.rows.items()])


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    deviation = f" ({cell.summary.deviation:.3f})" if cell.summary.runs > 1 else ""
    return f"{cell.summary.mean:.3f}{deviation}{MARKS[cell.mark]}"


def _legend(made: ResultsTable) -> str:
    legend = "On the test queries: mean (standard deviation) over runs."
    if any(cell is not None and cell.mark for cells in made.rows.values() for cell in cells):
        legend += " Against exposure CRM, two-sided Student t-test: ▼ significantly lower, ▲ higher "
        legend += f"(p < {SIGNIFICANT}), ★ no significant difference."
    return legend


def _drawn(chart: Any, name: str) -> Iterator[str]:
    """Draw each panel of a figure by itself, so that it can be read on a phone."""
    for place, panel in enumerate(_panels(chart)):
        yield chart_svg(panel.properties(width=WIDTH, height=HEIGHT + 30), f"{name}-{place}", panel.title)


def _panels(chart: Any) -> Iterator[alt.LayerChart]:
    for row in getattr(chart, "vconcat", [chart]):
        yield from row.hconcat


def _manifest(file: Path) -> list[str]:
    try:
        text = json.dumps(json.loads(file.read_text(encoding="utf-8")), indent=2)
    except (OSError, ValueError):
        return []
    return [section("manifest", "What it was made from", folded("Manifest", f"<pre>{escape(text)}</pre>"))]
