"""The paper's table: NDCG@5 at chosen numbers of interactions, with significance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from saferank.engine.errors import UsageError
from saferank.engine.metrics import Gain
from saferank.lab.results import (
    CONSTANT,
    DELTA,
    LABELS,
    PAPER_METHODS,
    Results,
    Runs,
    differences,
    nearest,
    plain_number,
)
from saferank.lab.significance import SIGNIFICANT, Summary, paired_t_test, summarise

PAPER_INTERACTIONS = (4e2, 4e7, 1e9)
Mark = Literal["lower", "higher", "same", ""]
GAINS: dict[Gain, str] = {"exponential": "gain 2^label - 1", "linear": "gain: the label"}


@dataclass(frozen=True)
class CellStyle:
    """How a rendering writes a cell: templates for the best mean and for a deviation, and the marks."""

    best: str = "{}"
    deviation: str = "({})"
    lower: str = " ▼"
    higher: str = " ▲"
    same: str = " ★"


@dataclass(frozen=True)
class Cell:
    """A method at one N: its summary, its mark against exposure CRM, whether it is the best."""

    summary: Summary
    mark: Mark
    best: bool

    def text(self, style: CellStyle) -> str:
        """Mean, deviation if there are several runs, and mark."""
        text = f"{self.summary.mean:.3f}"
        if self.summary.runs > 1:
            text += " " + style.deviation.format(f"{self.summary.deviation:.3f}")
        return (style.best.format(text) if self.best else text) + (getattr(style, self.mark) if self.mark else "")


@dataclass(frozen=True)
class ResultsTable:
    """NDCG@5 at chosen N, one row per method."""

    columns: tuple[tuple[str, int], ...]
    """(dataset, N)."""
    rows: dict[str, tuple[Cell | None, ...]]
    """Method -> its cells, None where the results have no such run."""
    gain: Gain = "exponential"

    def heading(self) -> list[str]:
        """One text per column, the first for the names of the methods."""
        several = len({dataset for dataset, _ in self.columns}) > 1
        return ["", *(f"{f'{dataset}, ' if several else ''}N = {plain_number(n)}" for dataset, n in self.columns)]

    def text_rows(self, style: CellStyle) -> list[list[str]]:
        """One row of texts per method, its name first."""
        return [
            [LABELS[method], *("-" if cell is None else cell.text(style) for cell in cells)]
            for method, cells in self.rows.items()
        ]

    def legend(self) -> str:
        """What the numbers and marks mean."""
        cells = [cell for row in self.rows.values() for cell in row if cell is not None]
        low, high = (extreme(cell.summary.runs for cell in cells) for extreme in (min, max))
        runs = f"{low} to {high} runs" if low < high else f"{low} run{'s' if low > 1 else ''}"
        tested = (
            "Compared with exposure CRM, run by run, by a two-sided paired Student t-test: ▼ significantly lower, "
            f"▲ significantly higher (p < {SIGNIFICANT}), ★ no significant difference. "
        )
        return (
            f"NDCG@5 ({GAINS[self.gain]}) on the test queries that have a relevant document: mean (standard deviation) "
            f"over {runs}. "
            f"{tested if any(cell.mark for cell in cells) else ''}"
            "Bold: the highest of the paper's methods that learn from clicks."
        )


def results_table(
    results: Results, *, interactions: Sequence[float] = PAPER_INTERACTIONS, delta: float = DELTA
) -> ResultsTable:
    """The paper's table at those N of the grid that are nearest to `interactions`.

    The best is the highest of the paper's methods that learn from clicks (so not the one that knows the logging
    policy), and every other one with the same printed mean. With one run there is no test and no mark.
    """
    columns: list[tuple[str, int]] = []
    cells: dict[str, list[Cell | None]] = {method: [] for method in LABELS}
    for dataset in results.datasets:
        curves = {method: results.run_curve(dataset, method, delta) for method in LABELS}
        grid = {n for curve in curves.values() for n in curve if n > 0}
        for n in dict.fromkeys(point for wanted in interactions if (point := nearest(grid, wanted)) is not None):
            columns.append((dataset, n))
            runs = {
                method: curve[at] for method, curve in curves.items() if (at := 0 if method in CONSTANT else n) in curve
            }
            for method in LABELS:
                cells[method].append(_cell(method, runs))
    rows = {method: tuple(row) for method, row in cells.items() if any(cell is not None for cell in row)}
    if not rows:
        raise UsageError("the results hold no method that learns from clicks yet: nothing to show in a table.")
    return ResultsTable(tuple(columns), rows, results.gain)


def _cell(method: str, runs: dict[str, Runs]) -> Cell | None:
    """The method's cell among the runs of all methods at the same N."""
    if method not in runs:
        return None
    summaries = {name: summarise(list(of.values())) for name, of in runs.items()}
    summary = summaries[method]
    if method in CONSTANT:
        return Cell(summary, "", best=False)
    mark: Mark = ""
    if "exposure-crm" in runs and method != "exposure-crm":
        gaps = differences(runs[method], runs["exposure-crm"])
        if not math.isnan(p := paired_t_test(gaps)):
            mark = "same" if p >= SIGNIFICANT else "lower" if gaps.mean() < 0 else "higher"
    from_clicks = set(PAPER_METHODS) - set(CONSTANT)
    best = max((s.mean for name, s in summaries.items() if name in from_clicks), default=math.inf)
    return Cell(summary, mark, best=method in from_clicks and f"{summary.mean:.3f}" == f"{best:.3f}")
