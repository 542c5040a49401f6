"""The paper's findings, each checked on a table of results."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from saferank.lab.break_even import MARGIN, BreakEven, break_even_points
from saferank.lab.results import (
    CONSTANT,
    DELTA,
    LABELS,
    LOGGING_KNOWN,
    TOLD_METHODS,
    Results,
    RunCurve,
    Runs,
    aligned,
    differences,
    nearest,
    plain_number,
)
from saferank.lab.significance import SIGNIFICANT, summarise

CLEAR = 0.005
"""A difference in NDCG@5 above this is clear."""
NEAR = 0.01
"""A method at most this far below the skyline is near it."""
SAVING = 0.89
"""The paper's saving of interactions compared with exposure IPS."""
ENOUGH = 5
"""Runs from which on a test has the power to find a difference that matters."""
TOO_FEW = "too few runs for a test"
CLAIMS = {
    "a": "at N = 400 exposure CRM is within 0.005 of the logging policy, exposure IPS clearly below",
    "b": "exposure CRM needs at least 89% fewer interactions than exposure IPS to match the logging policy",
    "c": "at N = 10⁹ exposure CRM and IPS differ by less than 0.002 and stand near the skyline",
    "d": "naive and action-based methods stay clearly below both at N = 10⁹",
    "e": "smaller delta keeps exposure CRM nearer to the logging policy at small N, with no loss at large N",
    "f": "with the logging policy known, exposure CRM never falls more than 0.002 below it from N = 100 up",
}


@dataclass(frozen=True)
class PaperFinding:
    """A claim of the paper, and whether the results support it."""

    letter: str
    claim: str
    holds: bool | None
    """None if the results lack what it needs or leave it undecided."""
    evidence: str
    dataset: str = ""


def paper_findings(results: Results, *, delta: float = DELTA) -> list[PaperFinding]:
    """The paper's claims (a) to (e), and (f) beyond it, checked on each data set of the results.

    Methods are compared run by run, in the runs that all of them have. "Clearly below" is by more than `CLEAR` = 0.005
    and, from `ENOUGH` = 5 runs on, significantly so (p < 0.01); "near the skyline" is at most `NEAR` = 0.01 below it;
    N = 400 and N = 10^9 are the nearest points of the grid within a factor of 2; small N is up to 1,000, large N from
    10^7. Break-even points are found with both `MARGIN` and `CLEAR`.
    """
    found = []
    for dataset in results.datasets:
        curves = {method: results.run_curve(dataset, method, delta) for method in LABELS}
        needed = {
            m: {b.method: b for b in break_even_points(results, margin=m, delta=delta) if b.dataset == dataset}
            for m in (MARGIN, CLEAR)
        }
        ablation = {
            method: {d: results.runs[dataset, method, d] for d in results.deltas(dataset, method)}
            for method in ("exposure-crm", "action-crm")
        }
        checks: dict[str, Callable[[], Checked]] = {
            "a": partial(_safe, curves),
            "b": partial(_sooner, needed),
            "c": partial(_converged, curves),
            "d": partial(_others_below, curves),
            "e": partial(_ablated, ablation, curves),
            "f": partial(_never_below, curves),
        }
        for letter, check in checks.items():
            try:
                holds, evidence = check()
            except _Lacking as lacking:
                holds, evidence = None, f"the results lack {lacking}"
            found.append(PaperFinding(letter, CLAIMS[letter], holds, evidence, dataset))
    return found


Checked = tuple[bool | None, str]
"""Whether a claim holds, and the evidence."""


class _Lacking(Exception):
    """The results lack what a claim needs."""


def _need(there: dict[str, object]) -> None:
    """Raise for what is not there, or empty: its names."""
    if lacking := [name for name, found in there.items() if not found]:
        raise _Lacking(", ".join(lacking))


def _at(curves: dict[str, RunCurve], methods: Iterable[str], n: float) -> tuple[dict[str, NDArray[np.float64]], int]:
    """Return each method's values at the point of the grid nearest to N, and that point.

    The values are those of the runs that all methods have, in the same order.
    """
    grid = {point for method in methods for point in curves[method]}
    at = nearest(grid, n, factor=2.0)
    runs: dict[str, Runs] = {m: curves[m].get(0 if m in CONSTANT else at or -1, {}) for m in methods}
    _need({m if m in CONSTANT else f"{m} at N = {plain_number(n)}": of for m, of in runs.items()})
    values = dict(zip(runs, aligned(*runs.values()), strict=True))
    _need({f"a run at N = {plain_number(n)} of all of {', '.join(runs)}": all(len(of) for of in values.values())})
    return values, at or 0


def _numbers(values: dict[str, NDArray[np.float64]], n: int) -> str:
    texts = []
    for method, of in values.items():
        deviation = f" (sd {of.std(ddof=1):.4f})" if len(of) > 1 else ""
        texts.append(f"{method} {of.mean():.4f}{deviation}")
    runs = min(len(of) for of in values.values())
    return f"N = {plain_number(n)}, {'one run' if runs == 1 else f'{runs} runs'}: {', '.join(texts)}"


def _clearly_below(values: NDArray[np.float64], reference: NDArray[np.float64]) -> tuple[bool, bool]:
    """Whether the values are clearly below, run by run; and whether, with too few runs, the gap alone decided it.

    The paired t-test has p < 0.01 exactly where the 99% confidence interval of the mean difference excludes 0.
    """
    gaps = values - reference
    below = bool(gaps.mean() < -CLEAR)
    significant = summarise(gaps, level=1.0 - SIGNIFICANT).high < 0
    by_gap_alone = below and not significant and len(gaps) < ENOUGH
    return below and (significant or by_gap_alone), by_gap_alone


def _safe(curves: dict[str, RunCurve]) -> Checked:
    values, n = _at(curves, ("logging", "exposure-crm", "exposure-ips"), 400)
    crm, ips = (float((values[m] - values["logging"]).mean()) for m in ("exposure-crm", "exposure-ips"))
    below, by_gap_alone = _clearly_below(values["exposure-ips"], values["logging"])
    tail = f"; {TOO_FEW}" if by_gap_alone else ""
    return abs(crm) <= 0.005 and below, f"{_numbers(values, n)}; against logging CRM {crm:+.4f}, IPS {ips:+.4f}{tail}"


def _sooner(needed: dict[float, dict[str, BreakEven]]) -> Checked:
    """Decided with the first margin; the other shows how much the answer depends on it."""
    decided: list[bool | None] = []
    texts = []
    for margin, found in needed.items():
        _need({"logging, exposure-crm or exposure-ips": {"exposure-crm", "exposure-ips"} <= found.keys()})
        crm, ips = found["exposure-crm"], found["exposure-ips"]
        texts.append(
            f"to within {margin:g} CRM {crm.interactions_text}, IPS {ips.interactions_text}, saving {crm.saving_text}"
        )
        enough = crm.saving is not None and crm.saving >= SAVING
        # Could still be enough: the grid only limits the saving, or both cross beyond the same end of it.
        undecided = not enough and (crm.at_least or crm.when == ips.when != "at")
        decided.append(None if undecided else enough)
    return decided[0], "; ".join(texts)


def _converged(curves: dict[str, RunCurve]) -> Checked:
    values, n = _at(curves, ("skyline", "exposure-crm", "exposure-ips"), 1e9)
    crm, ips = (float((values[m] - values["skyline"]).mean()) for m in ("exposure-crm", "exposure-ips"))
    holds = abs(crm - ips) < 0.002 and min(crm, ips) >= -NEAR
    gaps = f"CRM - IPS {crm - ips:+.4f}, against the skyline CRM {crm:+.4f}, IPS {ips:+.4f}"
    return holds, f"{_numbers(values, n)}; {gaps}"


def _others_below(curves: dict[str, RunCurve]) -> Checked:
    others, both = ("naive", "action-ips", "action-crm"), ("exposure-ips", "exposure-crm")
    values, n = _at(curves, (*others, *both), 1e9)
    found = {(m, reference): _clearly_below(values[m], values[reference]) for m in others for reference in both}
    above = [m for m in others if not all(found[m, reference][0] for reference in both)]
    tail = f"; not clearly below: {', '.join(above)}" if above else ""
    tail += f"; {TOO_FEW}" if any(by_gap_alone for _, by_gap_alone in found.values()) else ""
    return not above, _numbers(values, n) + tail


def _ablated(ablations: dict[str, dict[float, RunCurve]], curves: dict[str, RunCurve]) -> Checked:
    """Holds if the distance to logging, averaged over small N, never grows by more than 0.001 as delta decreases.

    Beside it, as evidence only, action CRM, which the paper found to get worse as delta decreases.
    """
    ablation = ablations["exposure-crm"]
    deltas = sorted((d for d in ablation if d > 0), reverse=True)
    logging = curves["logging"].get(0, {})
    _need({"logging": logging, "exposure-crm with several deltas": len(deltas) > 1})
    shared = sorted(set.intersection(*(set(ablation[d]) for d in deltas)))
    values = {n: aligned(logging, *(ablation[d][n] for d in deltas)) for n in shared}
    common = [n for n, of in values.items() if len(of[0])]
    small, large = [n for n in common if n <= 1_000], [n for n in common if n >= 1e7]
    _need({"small N (up to 1,000) for all deltas": small, "large N (from 10⁷) for all deltas": large})
    means = {n: [float(of.mean()) for of in values[n]] for n in common}  # logging first
    gaps = [float(np.mean([abs(means[n][i] - means[n][0]) for n in small])) for i in range(1, len(deltas) + 1)]
    ends = means[large[-1]][1:]
    nearer = all(b <= a + 0.001 for a, b in pairwise(gaps)) and gaps[-1] < gaps[0]
    no_loss = all(end >= ends[0] - 0.002 for end in ends)
    listed = ", ".join(f"{d:g}: {gap:.4f}" for d, gap in zip(deltas, gaps, strict=True))
    at_end = ", ".join(f"{d:g}: {end:.4f}" for d, end in zip(deltas, ends, strict=True))
    evidence = f"mean distance to logging at N ≤ {plain_number(small[-1])} by delta {listed}"
    evidence += f"; at N = {plain_number(large[-1])} {at_end}"
    others = {d: curve[large[-1]] for d, curve in ablations["action-crm"].items() if d > 0 and large[-1] in curve}
    if len(others) > 1:
        listed = ", ".join(f"{d:g}: {np.mean(list(runs.values())):.4f}" for d, runs in others.items())
        evidence += f", of action CRM {listed}"
    return nearer and no_loss, evidence


def _never_below(curves: dict[str, RunCurve]) -> Checked:
    """The lowest mean against the logging policy, of CRM that knows it; beside it, of what is told less, and of IPS."""
    logging = curves["logging"].get(0, {})
    found = {
        name: {n: differences(runs, logging) for n, runs in curves[name].items() if n >= 100 and runs.keys() & logging}
        for name in TOLD_METHODS
    }
    _need({"logging": logging, LOGGING_KNOWN: curves[LOGGING_KNOWN]})
    _need({f"a run of both logging and {LOGGING_KNOWN}": found[LOGGING_KNOWN]})
    lowest = {
        name: min((float(gaps.mean()), n) for n, gaps in by_run.items()) for name, by_run in found.items() if by_run
    }
    (worst, at), by_run = lowest[LOGGING_KNOWN], found[LOGGING_KNOWN]
    single = min(float(gaps.min()) for gaps in by_run.values())
    evidence = f"lowest mean {worst:+.4f} against logging, at N = {plain_number(at)} of {len(by_run)} from "
    evidence += f"{plain_number(min(by_run))} to {plain_number(max(by_run))}; lowest single run {single:+.4f}"
    others = [f"{LABELS[name]} {gap:+.4f}" for name, (gap, _) in lowest.items() if name != LOGGING_KNOWN]
    return worst >= -0.002, "; ".join([evidence, *others])
