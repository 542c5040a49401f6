"""The paper's table: NDCG@5 at chosen numbers of interactions, with significance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.lab.results import (
    DELTA,
    KNOWN,
    LABELS,
    Metric,
    Source,
    latex_number,
    nearest,
    plain_number,
    read_results,
)
from saferank.lab.significance import SIGNIFICANT, Summary, summarise, t_test

PAPER_INTERACTIONS = (4e2, 4e7, 1e9)


@dataclass(frozen=True)
class Cell:
    """A method at one N: its summary, its mark against exposure CRM, whether it is the best."""

    summary: Summary
    mark: Literal["lower", "higher", "same", ""]
    best: bool


@dataclass(frozen=True)
class ResultsTable:
    """NDCG@5 at chosen N, a row a method."""

    columns: tuple[tuple[str, int], ...]
    """(dataset, N)."""
    rows: dict[str, tuple[Cell | None, ...]]
    """Method -> its cells, None where the results have no such run."""

    def markdown(self) -> str:
        """Return the table in Markdown, with a legend below."""
        several = len({dataset for dataset, _ in self.columns}) > 1
        heads = [
            f"{dataset}, N = {plain_number(n)}" if several else f"N = {plain_number(n)}" for dataset, n in self.columns
        ]
        lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
        marks = {"lower": " ▼", "higher": " ▲", "same": " ★", "": ""}
        for method, cells in self.rows.items():
            texts = [_cell(cell, "**{}**", "({})", marks) for cell in cells]
            lines.append(f"| {LABELS[method]} | {' | '.join(texts)} |")
        legend = f"NDCG@5 on the test queries: mean (standard deviation) over {self._runs()}. "
        if any(cell is not None and cell.mark for cells in self.rows.values() for cell in cells):
            legend += "Against exposure CRM, two-sided Student t-test: ▼ significantly lower, ▲ higher "
            legend += f"(p < {SIGNIFICANT}), ★ no significant difference. "
        legend += "Bold: the highest of the paper's methods that learn from clicks."
        return "\n".join([*lines, "", legend, ""])

    def latex(self) -> str:
        """Return the table as a LaTeX tabular; needs booktabs and amssymb."""
        datasets = list(dict.fromkeys(dataset for dataset, _ in self.columns))
        spans = [sum(1 for name, _ in self.columns if name == dataset) for dataset in datasets]
        ends = np.cumsum(spans) + 1
        marks = {
            "lower": r"$^{\blacktriangledown}$",
            "higher": r"$^{\blacktriangle}$",
            "same": r"$^{\star}$",
            "": "",
        }
        heads = [_latex_text(dataset) for dataset in datasets]
        names = " & ".join(rf"\multicolumn{{{span}}}{{c}}{{{h}}}" for h, span in zip(heads, spans, strict=True))
        rules = " ".join(rf"\cmidrule(lr){{{end - span + 1}-{end}}}" for end, span in zip(ends, spans, strict=True))
        lines = [
            rf"\begin{{tabular}}{{l {'c' * len(self.columns)}}}",
            r"\toprule",
            rf"& {names} \\",
            rules,
            "& " + " & ".join(f"$N = {latex_number(n)}$" for _, n in self.columns) + r" \\",
            r"\midrule",
        ]
        learned = False
        for method, cells in self.rows.items():
            if method not in ("logging", "skyline") and not learned:
                learned = True
                lines += [r"\midrule"] if len(lines) > 6 else []
            texts = [_cell(cell, r"\textbf{{{}}}", r"{{\small ({})}}", marks) for cell in cells]
            lines.append(" & ".join([LABELS[method], *texts]) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])

    def _runs(self) -> str:
        counts = {cell.summary.runs for cells in self.rows.values() for cell in cells if cell is not None}
        low, high = min(counts), max(counts)
        return f"{low} run{'s' if low > 1 else ''}" if low == high else f"{low} to {high} runs"


def _latex_text(text: str) -> str:
    """Return the text with LaTeX's special characters escaped."""
    named = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(named.get(c, rf"\{c}" if c in "%&#_${}" else c) for c in text)


def _cell(cell: Cell | None, bold: str, deviation: str, marks: dict[str, str]) -> str:
    if cell is None:
        return "-"
    text = f"{cell.summary.mean:.3f}"
    if cell.summary.runs > 1:
        text += " " + deviation.format(f"{cell.summary.deviation:.3f}")
    return (bold.format(text) if cell.best else text) + marks[cell.mark]


def results_table(
    source: Source, metric: Metric = "ndcg", *, interactions: Sequence[float] = PAPER_INTERACTIONS, delta: float = DELTA
) -> ResultsTable:
    """The paper's table at those N of the grid that are nearest to `interactions`.

    The best, in bold, is the highest of the paper's methods that learn from clicks (so not the one that knows the
    logging policy), and all that print the same mean. With one run there is no test and no mark.
    """
    results = read_results(source, metric)
    columns: list[tuple[str, int]] = []
    cells: dict[str, list[Cell | None]] = {method: [] for method in LABELS}
    for dataset in results.datasets:
        curves = {method: results.curve(dataset, method, delta) for method in LABELS}
        grid = {n for curve in curves.values() for n in curve if n > 0}
        for n in dict.fromkeys(point for wanted in interactions if (point := nearest(grid, wanted)) is not None):
            columns.append((dataset, n))
            means = [curve[n].mean() for method, curve in curves.items() if n in curve and method != KNOWN]
            for method, curve in curves.items():
                values = curve.get(0 if method in ("logging", "skyline") else n)
                cells[method].append(
                    None if values is None else _make_cell(method, values, curves["exposure-crm"].get(n), means)
                )
    rows = {method: tuple(row) for method, row in cells.items() if any(cell is not None for cell in row)}
    if not rows:
        raise UsageError("the results hold no method that learns from clicks yet: nothing to show in a table.")
    return ResultsTable(tuple(columns), rows)


def _make_cell(method: str, values: NDArray[np.float64], crm: NDArray[np.float64] | None, means: list[float]) -> Cell:
    summary = summarise(values)
    if method in ("logging", "skyline"):
        return Cell(summary, "", best=False)
    p = math.nan if crm is None or method == "exposure-crm" else t_test(values, crm)
    mark: Literal["lower", "higher", "same", ""] = ""
    if not math.isnan(p) and crm is not None:
        mark = "same" if p >= SIGNIFICANT else "lower" if summary.mean < crm.mean() else "higher"
    return Cell(summary, mark, best=method != KNOWN and f"{summary.mean:.3f}" == f"{max(means):.3f}")
