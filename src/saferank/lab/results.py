"""results.parquet, read and checked: one metric by data set, method, delta and number of interactions."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.metrics import Gain
from saferank.learning.methods import METHODS

Metric = Literal["ndcg", "ndcg_by_score"]
METRICS: dict[Metric, str] = {"ndcg": "NDCG@5, expected under the policy", "ndcg_by_score": "NDCG@5, ranked by score"}
"""Column of results.parquet -> its name for a reader."""
Runs: TypeAlias = dict[int, float]
"""Run -> its metric, in increasing order of the run."""
Curve: TypeAlias = dict[int, NDArray[np.float64]]
"""Number of interactions N, increasing -> the metric of each run."""
RunCurve: TypeAlias = dict[int, Runs]
"""The same with the runs' numbers: methods are compared run by run, see `aligned`."""

LOGGING_KNOWN = "exposure-crm-known"


@dataclass(frozen=True)
class Told:
    """What a method is told about the logging policy, and about trust bias."""

    label: str = ""
    exposure: bool = False
    """Its exact exposure, in place of the counted one."""
    start: bool = False
    """Its weights: learning begins with them, and may end with them."""
    last_rank: bool = False
    """The exposure that its last rank gives; that of the other ranks is counted, as in the authors' later code."""
    deploy: str = ""
    """Its scorer, to be kept unless this rule of DEPLOYMENT_RULES is satisfied."""
    trust: Literal["", "known", "estimated", "none"] = ""
    """In place of the examination curve of the paper's users: alpha and beta of these users, what the log says of them,
    or what it says of a position-based curve, without trust bias."""


TOLD = {
    "-known": Told(", logging policy known", exposure=True, start=True),
    "-known-exposure": Told(", exposure known", exposure=True),
    "-known-start": Told(", start known", start=True),
    "-last-rank": Told(", last rank known", last_rank=True),
    "-sea": Told(" with SEA", deploy="sea"),
    "-genspec": Told(" with GENSPEC", deploy="genspec"),
    "-known-trust": Told(", trust known", trust="known"),
    "-estimated-trust": Told(", trust estimated", trust="estimated"),
    "-estimated-curve": Told(", curve estimated", trust="none"),
}
"""Suffix of a method's name -> what it is told."""


def method_and_told(name: str) -> tuple[str, Told]:
    """Return the method behind a name in results, and what it is told."""
    suffix = next((suffix for suffix in sorted(TOLD, key=len, reverse=True) if name.endswith(suffix)), "")
    return name.removesuffix(suffix), TOLD.get(suffix, Told())


TOLD_METHODS = tuple(
    f"{method}{suffix}"
    for method in ("exposure-ips", "exposure-crm", "doubly-robust", "safe-doubly-robust", "prpo")
    for suffix, told in TOLD.items()
    if told.trust or method.startswith("exposure")
)
LAST_RANK_METHODS = tuple(name for name in TOLD_METHODS if name.endswith("-last-rank"))
TRUST_METHODS = tuple(name for name in TOLD_METHODS if method_and_told(name)[1].trust)
KNOWN_METHODS = tuple(name for name in TOLD_METHODS if name.endswith(("-known", "-known-exposure", "-known-start")))
"""Told the exposure of all ranks, the start, or both."""
NEIGHBOURS = (
    *("doubly-robust", "safe-doubly-robust", "prpo", "gain-bound", "exposure-poem"),
    *("exposure-ips-sea", "exposure-ips-genspec"),
)
"""What came after the paper, or stands beside it."""
LABELS = {
    "logging": "Logging",
    "skyline": "Skyline",
    **{method.name: method.label for method in METHODS.values()},
    **{
        name: f"{METHODS[method].label}{told.label}"
        for name in TOLD_METHODS
        for method, told in [method_and_told(name)]
    },
}
"""The methods in the paper's order."""
CONSTANT = ("logging", "skyline")
"""Methods that learn from no clicks: the same at every N."""
PAPER_METHODS = (*CONSTANT, "naive", "action-ips", "action-crm", "exposure-ips", "exposure-crm")
"""The methods that the paper compares."""
DELTA = 0.01


@dataclass(frozen=True, eq=False)
class Results:
    """One metric of results.parquet, by data set, method, delta and number of interactions."""

    metric: Metric
    runs: dict[tuple[str, str, float], RunCurve]
    """(dataset, method, delta) -> curve; delta is 0 for a method that has none."""
    gain: Gain = "exponential"
    """Of the NDCG."""

    @cached_property
    def values(self) -> dict[tuple[str, str, float], Curve]:
        """The same without the runs' numbers."""
        return {key: _values(curve) for key, curve in self.runs.items()}

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets, in order of appearance."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self.runs))

    def deltas(self, dataset: str, method: str) -> list[float]:
        """The method's values of delta, decreasing."""
        return sorted((d for name, of, d in self.runs if (name, of) == (dataset, method)), reverse=True)

    def curve(self, dataset: str, method: str, delta: float = DELTA) -> Curve:
        """The method's runs at each N; for a method with several deltas those of the one nearest to `delta`."""
        return _values(self.run_curve(dataset, method, delta))

    def run_curve(self, dataset: str, method: str, delta: float = DELTA) -> RunCurve:
        """The same as `curve`, with the runs' numbers."""
        deltas = self.deltas(dataset, method)
        if not deltas:
            return {}
        return self.runs[dataset, method, min(deltas, key=lambda d: abs(math.log(max(d, 1e-300) / delta)))]

    def constant(self, dataset: str, method: str) -> NDArray[np.float64]:
        """The runs of a method that learns from no clicks (logging, skyline); empty if there are none."""
        return self.curve(dataset, method).get(0, np.empty(0))


def read_results(source: pa.Table | Path | str, metric: Metric = "ndcg") -> Results:
    """One metric of results.parquet, or of the same as a pyarrow table; raises DataError where it cannot be used."""
    if metric not in METRICS:
        raise UsageError(f"metric={metric!r} is unknown; choose one of: {', '.join(METRICS)}.")
    file = None if isinstance(source, pa.Table) else source
    table = source if isinstance(source, pa.Table) else pq.read_table(source)
    names = ("dataset", "method", "interactions", "delta", "run", metric)
    for name in names:
        if name not in table.column_names:
            raise DataError("the column is missing; was this written by `saferank reproduce`?", file=file, column=name)
    runs: dict[tuple[str, str, float], RunCurve] = {}
    for row, (dataset, method, interactions, delta, run, value) in enumerate(
        zip(*(table.column(name).to_pylist() for name in names), strict=True)
    ):
        if method not in LABELS:
            raise DataError(f"got {method!r}; choose one of: {', '.join(LABELS)}.", file=file, row=row, column="method")
        if value is None or not math.isfinite(value):
            raise DataError(f"got {value}, but every run has a value.", file=file, row=row, column=metric)
        has_none = delta is None or math.isnan(delta)
        cell = runs.setdefault((dataset, method, 0.0 if has_none else delta), {}).setdefault(interactions, {})
        if run in cell:
            raise DataError(f"run {run} of {method} at N = {interactions} appears twice.", file=file, row=row)
        cell[run] = value
    ordered = {key: {n: dict(sorted(curve[n].items())) for n in sorted(curve)} for key, curve in runs.items()}
    return Results(metric, ordered, _gain(table, file))


def _gain(table: pa.Table, file: Path | str | None) -> Gain:
    """The gain of the table's NDCG; the exponential one in tables from before there was a choice."""
    if "gain" not in table.column_names:
        return "exponential"
    if len(found := table.column("gain").unique().to_pylist()) > 1:
        raise DataError(f"got {' and '.join(map(str, found))}: not in one table.", file=file, column="gain")
    return found[0] if found else "exponential"


def _values(curve: RunCurve) -> Curve:
    return {n: np.array(list(runs.values())) for n, runs in curve.items()}


def aligned(*samples: Runs) -> list[NDArray[np.float64]]:
    """The values of the runs that all samples have, in the same order.

    Methods are compared run by run: each run has its own logging policy, which shifts all methods of that run together.
    """
    common = sorted(set.intersection(*(set(runs) for runs in samples)))
    return [np.array([runs[run] for run in common], dtype=np.float64) for runs in samples]


def differences(runs: Runs, reference: Runs) -> NDArray[np.float64]:
    """Value minus reference for each run that both have."""
    values, base = aligned(runs, reference)
    return values - base


def nearest(grid: Iterable[int], interactions: float, *, factor: float = math.inf) -> int | None:
    """The point of the grid nearest to `interactions` on a log scale; None if none lies within the factor."""
    candidates = [n for n in grid if n > 0 and abs(math.log(n / interactions)) <= math.log(factor)]
    return min(candidates, key=lambda n: abs(math.log(n / interactions)), default=None)


def plain_number(n: float) -> str:
    """400, 9,500, 4·10⁷, 3.8·10⁸: two digits from ten thousand up."""
    if n < 9_999.5:
        return f"{n:,.0f}"
    mantissa, exponent = scientific(n)
    power = "10" + exponent.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if mantissa == "1" else f"{mantissa}·{power}"


def scientific(n: float) -> tuple[str, str]:
    """Mantissa with two digits, without a trailing zero, and exponent."""
    mantissa, exponent = f"{n:.1e}".split("e")
    return mantissa.removesuffix(".0"), str(int(exponent))
