"""How many interactions each method needs to match the logging policy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from saferank.lab.results import (
    DELTA,
    LABELS,
    Curve,
    Metric,
    Source,
    differences,
    plain_number,
    read_results,
)


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
    `tolerance`; each run is compared with its own logging policy. Between two points of the grid the mean is
    interpolated linearly in log N. A later dip counts: a method that falls back below has not matched. The tolerance
    keeps noise about the logging policy's value, where a safe method stays by design, from counting as a dip.
    """
    results = read_results(source, metric)
    found = []
    for dataset in results.datasets:
        logging = results.run_curve(dataset, "logging").get(0, {})
        points = {}
        for method in LABELS:
            curve = results.run_curve(dataset, method, delta)
            gaps = {n: differences(runs, logging) for n, runs in curve.items() if n > 0 and runs.keys() & logging}
            if gaps:
                points[method] = crossing(gaps, -tolerance)
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
        lines.append(f"| {match.dataset} | {LABELS[match.method]} | {needed_text(match)} | {saving_text(match)} |")
    return "\n".join([*lines, ""])


def saving_text(match: Match) -> str:
    """Return the saving against exposure IPS in words."""
    if match.saving is None:
        return "-"
    if match.saving < 0:
        return f"none: {'at most ' if match.at_least else ''}{1.0 - match.saving:.1f} times as many"
    return f"{'at least ' if match.at_least else ''}{match.saving:.1%}"


def needed_text(match: Match) -> str:
    """Return the number of interactions in words."""
    return {"before": "≤ ", "at": "", "never": "> "}[match.when] + plain_number(match.interactions)
