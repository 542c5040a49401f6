"""What `saferank reproduce` writes beside results.parquet: tables, figures and findings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from saferank.lab.break_even import BreakEven, break_even_points
from saferank.lab.paper_findings import paper_findings
from saferank.lab.results import CONSTANT, LABELS, METRICS, read_results, scientific
from saferank.lab.results_table import CellStyle, ResultsTable, results_table
from saferank.report.figures import ablation_figure, main_figure, save_figure

IN_MARKDOWN = CellStyle(best="**{}**")
IN_LATEX = CellStyle(
    best=r"\textbf{{{}}}",
    deviation=r"{{\small ({})}}",
    lower=r"$^{\blacktriangledown}$",
    higher=r"$^{\blacktriangle}$",
    same=r"$^{\star}$",
)
HOLDS = {True: "yes", False: "**no**", None: "undecided"}


def publish(
    results: Path, folder: Path, console: Console, *, delta: float = 0.01, ablation: bool = False
) -> dict[str, Any]:
    """Write tables, figures and findings of both metrics to the folder; print those of the expected NDCG.

    Returns what is printed as values: the table, the break-even points and the findings.
    """
    pages, values = [], []
    for metric, name in METRICS.items():
        read = read_results(results, metric)
        table = results_table(read, delta=delta)
        claims, points = paper_findings(read, delta=delta), break_even_points(read, delta=delta)
        findings = [(f"({one.letter})", one.dataset, one.claim, HOLDS[one.holds], one.evidence) for one in claims]
        values.append({"metric": metric, "table": table_values(table), "break_even_points": points, "findings": claims})
        texts = [
            f"# {name}",
            markdown_table(table.heading(), table.text_rows(IN_MARKDOWN)),
            table.legend(),
            "## Interactions needed to match the logging policy",
            markdown_table(*break_even_rows(points)),
            "## The paper's findings",
            markdown_table(("", "data set", "claim", "holds", "evidence"), findings),
        ]
        pages.append("\n\n".join(texts))
        (folder / f"table_{metric}.tex").write_text(latex_table(table), encoding="utf-8")
        save_figure(main_figure(read, delta=delta), folder, f"figure_{metric}")
    (folder / "report.md").write_text("\n\n".join(pages) + "\n", encoding="utf-8")
    if ablation:
        save_figure(ablation_figure(read_results(results)), folder, "ablation")
    console.print(Markdown(pages[0]))
    console.print(f"\nTables, figures and findings are in {folder}/", highlight=False)
    return values[0]


def table_values(table: ResultsTable) -> list[dict[str, Any]]:
    """Return the cells of the table one by one, by method, data set and number of interactions."""
    return [
        {"method": method, "dataset": dataset, "interactions": interactions, **vars(cell)}
        for method, cells in table.rows.items()
        for (dataset, interactions), cell in zip(table.columns, cells, strict=True)
        if cell is not None
    ]


def break_even_rows(points: Iterable[BreakEven]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Heading and rows of the table of break-even points."""
    heading = ("method", "data set", "interactions", "saving compared with exposure IPS")
    return heading, [(LABELS[one.method], one.dataset, one.interactions_text, one.saving_text) for one in points]


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The table in Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heading, ["---"] * len(heading), *rows))


def latex_table(table: ResultsTable) -> str:
    """The table as a LaTeX tabular; needs booktabs and amssymb."""
    names, rules, end = [], [], 1
    for dataset, span in Counter(dataset for dataset, _ in table.columns).items():
        names.append(rf"\multicolumn{{{span}}}{{c}}{{{latex_text(dataset)}}}")
        rules.append(rf"\cmidrule(lr){{{end + 1}-{end + span}}}")
        end += span
    rows = [" & ".join(cells) + r" \\" for cells in table.text_rows(IN_LATEX)]
    constant = sum(method in CONSTANT for method in table.rows)
    lines = [
        rf"\begin{{tabular}}{{l {'c' * len(table.columns)}}}",
        r"\toprule",
        rf"& {' & '.join(names)} \\",
        " ".join(rules),
        "& " + " & ".join(f"$N = {latex_number(n)}$" for _, n in table.columns) + r" \\",
        r"\midrule",
        *rows[:constant],
        *([r"\midrule"] if 0 < constant < len(rows) else []),
        *rows[constant:],
    ]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def latex_text(text: str) -> str:
    """The text with LaTeX's special characters escaped."""
    named = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(named.get(c, rf"\{c}" if c in "%&#_${}" else c) for c in text)


def latex_number(n: float) -> str:
    r"""400, 4 \cdot 10^{7}: for math mode."""
    if n < 9_999.5:
        return f"{n:.0f}"
    mantissa, exponent = scientific(n)
    return f"10^{{{exponent}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{exponent}}}"
