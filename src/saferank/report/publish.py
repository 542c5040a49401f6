"""From results.parquet to what a reader wants: the table, the figures, and the findings."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from saferank.lab.break_even import matches, matches_markdown
from saferank.lab.paper_findings import findings, findings_markdown
from saferank.lab.results import Metric
from saferank.lab.results_table import results_table
from saferank.report.figures import ablation_figure, main_figure, save_figure


def publish(results: Path, folder: Path, console: Console, *, delta: float = 0.01, ablation: bool = False) -> None:
    """Write table, figures and findings of both metrics to the folder, and show those of the expected NDCG."""
    pages = []
    metrics: dict[Metric, str] = {"ndcg": "expected under the policy", "ndcg_by_score": "ranked by score"}
    for metric, name in metrics.items():
        table = results_table(results, metric=metric, delta=delta)
        parts = [
            f"# NDCG@5, {name}",
            table.markdown(),
            "## Interactions needed to match the logging policy",
            matches_markdown(matches(results, metric, delta=delta)),
            "## The paper's findings",
            findings_markdown(findings(results, metric, delta=delta)),
        ]
        pages.append("\n\n".join(parts))
        (folder / f"table_{metric}.tex").write_text(table.latex() + "\n", encoding="utf-8")
        save_figure(main_figure(results, metric, delta=delta), folder, f"figure_{metric}")
    (folder / "report.md").write_text("\n\n".join(pages) + "\n", encoding="utf-8")
    if ablation:
        save_figure(ablation_figure(results), folder, "ablation")
    console.print(Markdown(pages[0]))
    console.print(f"\nTable, figures and findings are in {folder}/", highlight=False)
