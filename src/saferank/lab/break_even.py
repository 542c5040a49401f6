"""The break-even point: from how many interactions on a method is as good as the logging policy."""

import math
from dataclasses import dataclass
from typing import Literal

from saferank.lab.results import DELTA, LABELS, Curve, Results, differences, plain_number

MARGIN = 1e-3
"""How far below the logging policy still counts as matching it."""


@dataclass(frozen=True)
class BreakEven:
    """The N from which on a method matches the logging policy."""

    dataset: str
    method: str
    interactions: float
    """Where the curve crosses for good; the end of the grid if it does so before it begins or not within it."""
    when: Literal["before", "at", "never"]
    saving: float | None
    """1 - N / N of exposure IPS; a lower limit if `at_least`, None if the grid gives none."""
    at_least: bool

    @property
    def interactions_text(self) -> str:
        """The number of interactions as a reader sees it."""
        return {"before": "≤ ", "at": "", "never": "> "}[self.when] + plain_number(self.interactions)

    @property
    def saving_text(self) -> str:
        """The saving as a reader sees it."""
        if self.saving is None:
            return "-"
        if self.saving < 0:
            return f"none: {'at most ' if self.at_least else ''}{1.0 - self.saving:.1f} times as many"
        return f"{'at least ' if self.at_least else ''}{self.saving:.1%}"


def break_even_points(results: Results, *, margin: float = MARGIN, delta: float = DELTA) -> list[BreakEven]:
    """Interactions that each method needs to match the logging policy, and the saving compared with exposure IPS.

    The smallest N from which on, to the end of the grid, the mean over runs is at least the logging policy's minus
    `margin`; each run is compared with its own logging policy. Between two points of the grid the mean is
    interpolated linearly in log N. A method that falls below again later has not matched. The margin keeps noise
    about the logging policy's value, where a safe method stays by design, from counting as such a fall.
    """
    found = []
    for dataset in results.datasets:
        logging = results.run_curve(dataset, "logging").get(0, {})
        points = {}
        for method in LABELS:
            curve = results.run_curve(dataset, method, delta)
            gaps = {n: differences(runs, logging) for n, runs in curve.items() if n > 0 and runs.keys() & logging}
            if gaps:
                points[method] = crossing(gaps, -margin)
        for method, (n, when) in points.items():
            base, base_when = points.get("exposure-ips", (math.nan, "before"))
            limited = when != "never" and base_when != "before" and method != "exposure-ips"
            at_least = limited and (when == "before" or base_when == "never")
            found.append(BreakEven(dataset, method, n, when, 1.0 - n / base if limited else None, at_least))
    return found


def crossing(curve: Curve, level: float) -> tuple[float, Literal["before", "at", "never"]]:
    """The N from which on the mean curve stays at or above the level, interpolated in log N."""
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
