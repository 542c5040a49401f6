"""What the table of results says: the paper's table, how soon each method matches the logging policy, its findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.errors import DataError, UsageError
from saferank.experiments.significance import Summary, summarise, t_test

Metric = Literal["ndcg", "ndcg_by_score"]
Source: TypeAlias = pa.Table | Path | str
Curve: TypeAlias = dict[int, NDArray[np.float64]]
"""Number of interactions -> the metric of each run, in rising order."""

KNOWN = "exposure-crm-known"
LABELS = {
    "logging": "Logging",
    "skyline": "Skyline",
    "naive": "Naive",
    "action-ips": "Action IPS",
    "action-crm": "Action CRM",
    "exposure-ips": "Exposure IPS",
    "exposure-crm": "Exposure CRM",
    KNOWN: "Exposure CRM, logging policy known",
}
"""The methods in the paper's order."""
DELTA = 0.01
PAPER_INTERACTIONS = (4e2, 4e7, 1e9)
SIGNIFICANT = 0.01
CLEAR = 0.005
"""By how much NDCG@5 must differ to do so clearly, in the findings."""
NEAR = 0.01
"""How far below the skyline is still near it."""


@dataclass(frozen=True, eq=False)
class Results:
    """One metric of results.parquet, by data set, method, delta and number of interactions."""

    metric: Metric
    values: dict[tuple[str, str, float], Curve]
    """(dataset, method, delta) -> curve; delta is NaN-free: 0 stands for a method that has none."""

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets, as they first appear."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self.values))

    def deltas(self, dataset: str, method: str) -> list[float]:
        """The method's values of delta, falling."""
        return sorted((d for name, of, d in self.values if (name, of) == (dataset, method)), reverse=True)

    def curve(self, dataset: str, method: str, delta: float = DELTA) -> Curve:
        """The method's runs at each N; for a method with several deltas those of the one nearest to `delta`."""
        deltas = self.deltas(dataset, method)
        if not deltas:
            return {}
        return self.values[dataset, method, min(deltas, key=lambda d: abs(math.log(max(d, 1e-300) / delta)))]

    def constant(self, dataset: str, method: str) -> NDArray[np.float64]:
        """The runs of a method that learns from no clicks (logging, skyline); empty if there are none."""
        return self.curve(dataset, method).get(0, np.empty(0))


def read_results(source: Source, metric: Metric = "ndcg") -> Results:
    """Read results.parquet, or take the same as a pyarrow table, and check it."""
    if metric not in ("ndcg", "ndcg_by_score"):
        raise UsageError(f"metric={metric!r} is unknown; choose 'ndcg' or 'ndcg_by_score'.")
    file = None if isinstance(source, pa.Table) else source
    table = source if isinstance(source, pa.Table) else pq.read_table(source)
    names = ("dataset", "method", "interactions", "delta", "run", metric)
    for name in names:
        if name not in table.column_names:
            raise DataError("the column is missing; was this written by `saferank reproduce`?", file=file, column=name)
    runs: dict[tuple[str, str, float], dict[int, dict[int, float]]] = {}
    for row, (dataset, method, interactions, delta, run, value) in enumerate(
        zip(*(table.column(name).to_pylist() for name in names), strict=True)
    ):
        if method not in LABELS:
            raise DataError(f"got {method!r}, choose from: {', '.join(LABELS)}.", file=file, row=row, column="method")
        if value is None or not math.isfinite(value):
            raise DataError(f"got {value}, but every run has a value.", file=file, row=row, column=metric)
        has_none = delta is None or math.isnan(delta)
        cell = runs.setdefault((dataset, method, 0.0 if has_none else delta), {}).setdefault(interactions, {})
        if run in cell:
            raise DataError(f"run {run} of {method} at N = {interactions} is there twice.", file=file, row=row)
        cell[run] = value
    curves = {
        key: {n: np.array([by_n[n][run] for run in sorted(by_n[n])]) for n in sorted(by_n)}
        for key, by_n in runs.items()
    }
    return Results(metric, curves)


def nearest(grid: Iterable[int], interactions: float, *, factor: float = math.inf) -> int | None:
    """The point of the grid nearest to `interactions` on a log scale; None if none lies within the factor."""
    candidates = [n for n in grid if n > 0 and abs(math.log(n / interactions)) <= math.log(factor)]
    return min(candidates, key=lambda n: abs(math.log(n / interactions)), default=None)


# The paper's table


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
        heads = [dataset.replace("_", r"\_") for dataset in datasets]
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


# Interactions needed to match the logging policy


@dataclass(frozen=True)
class Match:
    """From which N on a method is as good as the logging policy."""

    dataset: str
    method: str
    interactions: float
    """Where the curve crosses for good; the end of the grid if it does so before it begins or not within it."""
    when: Literal["before", "at", "never"]
    saving: float | None
    """1 - N / N of exposure IPS; a lower bound if `at_least`, None if the grid gives none."""
    at_least: bool


def matches(source: Source, metric: Metric = "ndcg", *, tolerance: float = 1e-3, delta: float = DELTA) -> list[Match]:
    """Interactions that each method needs to match the logging policy, and the saving against exposure IPS.

    The smallest N from which on, to the end of the grid, the mean over runs is at least the logging policy's minus
    `tolerance`. Between two points of the grid the mean is interpolated linearly in log N. A later dip counts: a
    method that falls back below has not matched. The tolerance keeps noise about the logging policy's value, where a
    safe method stays by design, from counting as a dip.
    """
    results = read_results(source, metric)
    found = []
    for dataset in results.datasets:
        logging = results.constant(dataset, "logging")
        if not len(logging):
            continue
        curves = {method: results.curve(dataset, method, delta) for method in LABELS}
        learned = {method: curve for method, curve in curves.items() if max(curve, default=0) > 0}
        points = {method: crossing(curve, float(logging.mean()) - tolerance) for method, curve in learned.items()}
        for method, (n, when) in points.items():
            base, base_when = points.get("exposure-ips", (math.nan, "before"))
            bounded = when != "never" and base_when != "before" and method != "exposure-ips"
            at_least = bounded and (when == "before" or base_when == "never")
            found.append(Match(dataset, method, n, when, 1.0 - n / base if bounded else None, at_least))
    return found


def crossing(curve: Curve, level: float) -> tuple[float, Literal["before", "at", "never"]]:
    """From which N on the mean curve stays at or above the level; see `matches`."""
    grid = sorted(n for n in curve if n > 0)
    means = [float(curve[n].mean()) for n in grid]
    below = [i for i, mean in enumerate(means) if mean < level]
    if not below:
        return float(grid[0]), "before"
    last = below[-1]
    if last == len(grid) - 1:
        return float(grid[-1]), "never"
    share = (level - means[last]) / (means[last + 1] - means[last])
    return math.exp(math.log(grid[last]) + share * math.log(grid[last + 1] / grid[last])), "at"


def matches_markdown(found: Iterable[Match]) -> str:
    """Return the matches as a table in Markdown."""
    lines = ["| data set | method | interactions to match the logging policy | saving against exposure IPS |"]
    lines.append("|---|---|---|---|")
    for match in found:
        lines.append(f"| {match.dataset} | {LABELS[match.method]} | {_needed(match)} | {_saving(match)} |")
    return "\n".join([*lines, ""])


def _saving(match: Match) -> str:
    if match.saving is None:
        return "-"
    if match.saving < 0:
        return f"none: {'at most ' if match.at_least else ''}{1.0 - match.saving:.1f} times as many"
    return f"{'at least ' if match.at_least else ''}{match.saving:.1%}"


def _needed(match: Match) -> str:
    return {"before": "≤ ", "at": "", "never": "> "}[match.when] + plain_number(match.interactions)


# Numbers as people write them


def plain_number(n: float) -> str:
    """400, 9,500, 4·10⁷, 3.8·10⁸: two digits from ten thousand up."""
    if n < 9_999.5:
        return f"{n:,.0f}"
    mantissa, exponent = _scientific(n)
    power = "10" + exponent.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if mantissa == "1" else f"{mantissa}·{power}"


def latex_number(n: float) -> str:
    r"""400, 4 \cdot 10^{7}: for math mode."""
    if n < 9_999.5:
        return f"{n:.0f}"
    mantissa, exponent = _scientific(n)
    return f"10^{{{exponent}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{exponent}}}"


def _scientific(n: float) -> tuple[str, str]:
    mantissa, exponent = f"{n:.1e}".split("e")
    return mantissa.removesuffix(".0"), str(int(exponent))


# The paper's findings


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, and whether the results bear it out."""

    letter: str
    claim: str
    holds: bool | None
    """None: the results lack what it needs."""
    evidence: str
    dataset: str = ""


def findings(
    source: Source, metric: Metric = "ndcg", *, tolerance: float = 1e-3, delta: float = DELTA
) -> list[Finding]:
    """Check the paper's claims (a) to (e), and (f) beyond it, on each data set of the results.

    What the words mean: "clearly below" is by more than `CLEAR` = 0.005, and significantly so (p < 0.01) where there
    are several runs; "near the skyline" is no more than `NEAR` = 0.01 below it; N = 400 and N = 10^9 are the nearest
    points of the grid within a factor of 2; small N is up to 1,000, large N from 10^7; `tolerance` as in `matches`.
    """
    results = read_results(source, metric)
    found = []
    for dataset in results.datasets:
        curves = {method: results.curve(dataset, method, delta) for method in LABELS}
        needed = {
            within: [m for m in matches(source, metric, tolerance=within, delta=delta) if m.dataset == dataset]
            for within in (tolerance, CLEAR)
        }
        ablation = {d: results.values[dataset, "exposure-crm", d] for d in results.deltas(dataset, "exposure-crm")}
        checks = {
            "a": (
                "at N = 400 exposure CRM is within 0.005 of the logging policy, exposure IPS clearly below",
                _safe(curves),
            ),
            "b": (
                "exposure CRM needs at least 89% fewer interactions than exposure IPS to match the logging policy",
                _sooner(needed),
            ),
            "c": (
                "at N = 10⁹ exposure CRM and IPS differ by less than 0.002 and stand near the skyline",
                _converged(curves),
            ),
            "d": ("naive and action-based methods stay clearly below both at N = 10⁹", _others_below(curves)),
            "e": (
                "smaller delta keeps exposure CRM nearer to the logging policy at small N, with no loss at large N",
                _ablated(ablation, curves),
            ),
            "f": (
                "with the logging policy known, exposure CRM never falls more than 0.002 below it from N = 100 up",
                _never_below(curves),
            ),
        }
        for letter, (claim, (holds, evidence)) in checks.items():
            found.append(Finding(letter, claim, holds, evidence, dataset))
    return found


Verdict = tuple[bool | None, str]


def _lacks(*what: str) -> Verdict:
    return None, f"the results lack {', '.join(what)}"


def _means(
    curves: dict[str, Curve], methods: Iterable[str], n: float
) -> tuple[dict[str, NDArray[np.float64]], int, list[str]]:
    """Return the runs of each method at the point of the grid nearest to N, that point, and what is missing."""
    grid = {point for method in methods for point in curves[method]}
    at = nearest(grid, n, factor=2.0)
    runs = {m: curves[m].get(0 if m in ("logging", "skyline") else at or -1, np.empty(0)) for m in methods}
    lacking = [
        f"{m}" if m in ("logging", "skyline") else f"{m} at N = {plain_number(n)}" for m in runs if not len(runs[m])
    ]
    return runs, at or 0, lacking


def _numbers(runs: dict[str, NDArray[np.float64]], n: int) -> str:
    parts = []
    for method, values in runs.items():
        deviation = f" (sd {values.std(ddof=1):.4f})" if len(values) > 1 else ""
        parts.append(f"{method} {values.mean():.4f}{deviation}")
    single = ", one run, no test" if any(len(values) == 1 for values in runs.values()) else ""
    return f"N = {plain_number(n)}{single}: {', '.join(parts)}"


def _clearly_below(values: NDArray[np.float64], reference: NDArray[np.float64]) -> bool:
    p = t_test(values, reference)
    return bool(reference.mean() - values.mean() > CLEAR) and (math.isnan(p) or p < SIGNIFICANT)


def _safe(curves: dict[str, Curve]) -> Verdict:
    runs, n, lacking = _means(curves, ("logging", "exposure-crm", "exposure-ips"), 400)
    if lacking:
        return _lacks(*lacking)
    gap = {method: float(values.mean() - runs["logging"].mean()) for method, values in runs.items()}
    holds = abs(gap["exposure-crm"]) <= 0.005 and _clearly_below(runs["exposure-ips"], runs["logging"])
    return holds, f"{_numbers(runs, n)}; against logging CRM {gap['exposure-crm']:+.4f}, IPS {gap['exposure-ips']:+.4f}"


def _sooner(needed: dict[float, list[Match]]) -> Verdict:
    """Decide by the first tolerance; the other shows how much the answer hangs on it."""
    verdicts: list[bool | None] = []
    texts = []
    for tolerance, found in needed.items():
        by_method = {match.method: match for match in found}
        if "exposure-crm" not in by_method or "exposure-ips" not in by_method:
            return _lacks("logging, exposure-crm or exposure-ips")
        crm, ips = by_method["exposure-crm"], by_method["exposure-ips"]
        texts.append(f"to within {tolerance:g} CRM {_needed(crm)}, IPS {_needed(ips)}, saving {_saving(crm)}")
        undecided = crm.saving is None and crm.when != "never"
        verdicts.append(None if undecided else crm.saving is not None and crm.saving >= 0.89)
    return verdicts[0], "; ".join(texts)


def _converged(curves: dict[str, Curve]) -> Verdict:
    runs, n, lacking = _means(curves, ("skyline", "exposure-crm", "exposure-ips"), 1e9)
    if lacking:
        return _lacks(*lacking)
    skyline, crm, ips = (float(runs[m].mean()) for m in ("skyline", "exposure-crm", "exposure-ips"))
    holds = abs(crm - ips) < 0.002 and min(crm, ips) >= skyline - NEAR
    gaps = f"CRM - IPS {crm - ips:+.4f}, against the skyline CRM {crm - skyline:+.4f}, IPS {ips - skyline:+.4f}"
    return holds, f"{_numbers(runs, n)}; {gaps}"


def _others_below(curves: dict[str, Curve]) -> Verdict:
    others, both = ("naive", "action-ips", "action-crm"), ("exposure-ips", "exposure-crm")
    runs, n, lacking = _means(curves, (*others, *both), 1e9)
    if lacking:
        return _lacks(*lacking)
    above = [m for m in others if not all(_clearly_below(runs[m], runs[reference]) for reference in both)]
    tail = f"; not clearly below: {', '.join(above)}" if above else ""
    return not above, _numbers(runs, n) + tail


def _ablated(ablation: dict[float, Curve], curves: dict[str, Curve]) -> Verdict:
    """Distance to logging, averaged over small N, never grows by more than 0.001 from a delta to the next smaller."""
    deltas = sorted((d for d in ablation if d > 0), reverse=True)
    logging = curves["logging"].get(0)
    if logging is None or len(deltas) < 2:
        return _lacks(*["logging"] * (logging is None), *["exposure-crm with several deltas"] * (len(deltas) < 2))
    common = sorted(set.intersection(*(set(ablation[d]) for d in deltas)))
    small, large = [n for n in common if n <= 1_000], [n for n in common if n >= 1e7]
    if not small or not large:
        return _lacks(*["small N (up to 1,000)"] * (not small), *["large N (from 10⁷)"] * (not large), "for all deltas")
    gaps = [float(np.mean([abs(ablation[d][n].mean() - logging.mean()) for n in small])) for d in deltas]
    ends = [float(ablation[d][large[-1]].mean()) for d in deltas]
    nearer = all(b <= a + 0.001 for a, b in pairwise(gaps)) and gaps[-1] < gaps[0]
    no_loss = all(end >= ends[0] - 0.002 for end in ends)
    listed = ", ".join(f"{d:g}: {gap:.4f}" for d, gap in zip(deltas, gaps, strict=True))
    at_end = ", ".join(f"{d:g}: {end:.4f}" for d, end in zip(deltas, ends, strict=True))
    evidence = f"mean distance to logging at N ≤ {plain_number(small[-1])} by delta {listed}"
    return nearer and no_loss, f"{evidence}; at N = {plain_number(large[-1])} {at_end}"


def _never_below(curves: dict[str, Curve]) -> Verdict:
    logging, known = curves["logging"].get(0), {n: v for n, v in curves[KNOWN].items() if n >= 100}
    if logging is None or not known:
        return _lacks(*["logging"] * (logging is None), *[KNOWN] * (not known))
    gaps = {n: float(values.mean() - logging.mean()) for n, values in known.items()}
    worst = min(gaps, key=lambda n: gaps[n])
    single = min(float(values.min() - logging.mean()) for values in known.values())
    evidence = f"lowest mean {gaps[worst]:+.4f} against logging, at N = {plain_number(worst)} of {len(gaps)} from "
    evidence += f"{plain_number(min(gaps))} to {plain_number(max(gaps))}; lowest single run {single:+.4f}"
    return gaps[worst] >= -0.002, evidence


def findings_markdown(found: Iterable[Finding]) -> str:
    """Return the findings as a table in Markdown."""
    answer = {True: "yes", False: "**no**", None: "not tested"}
    lines = ["| | data set | claim | holds | evidence |", "|---|---|---|---|---|"]
    lines += [f"| ({f.letter}) | {f.dataset} | {f.claim} | {answer[f.holds]} | {f.evidence} |" for f in found]
    return "\n".join([*lines, ""])
