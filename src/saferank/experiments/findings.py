"""The paper's findings, each checked on a table of results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from saferank.experiments.matches import Match, matches, needed_text, saving_text
from saferank.experiments.results import (
    DELTA,
    KNOWN,
    LABELS,
    Curve,
    Metric,
    Source,
    nearest,
    plain_number,
    read_results,
)
from saferank.experiments.significance import SIGNIFICANT, t_test

CLEAR = 0.005
"""By how much NDCG@5 must differ to do so clearly, in the findings."""
NEAR = 0.01
"""How far below the skyline is still near it."""


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
        texts.append(
            f"to within {tolerance:g} CRM {needed_text(crm)}, IPS {needed_text(ips)}, saving {saving_text(crm)}"
        )
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
