"""The examination curve estimated from a log's own counts, with intervals, and with what is doubtful about it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.propensity.curve_fit import CurveFit, bootstrap
from saferank.engine.propensity.harvesting import harvest
from saferank.engine.propensity.interventions import Interventions, find_interventions
from saferank.engine.propensity.position_based_em import expectation_maximisation
from saferank.engine.types.log_statistics import LogStatistics

Method = Literal["harvesting", "em"]
NAMES: dict[Method, str] = {"harvesting": "harvesting", "em": "EM"}
Floats = NDArray[np.float64]

FEW_INTERVENTIONS = 50
"""Interventions at a rank below which there is a warning: the rate of some 50 clicks is known to about 30%
(2/sqrt(50))."""
FEW_QUERIES = 20
"""Queries with interventions below which intervals from resampling queries are too narrow."""
WIDE = 2.0
"""An interval whose ends differ by more than this factor says little: a weight 1/examination is off by as much."""
MARGIN = 0.1
"""Relative difference between the two methods that is accepted, however certain both are: it changes no decision."""
FEW_CLICKS = 10
"""Clicks per intervention below which EM, which fits each its relevance, is off by more than a few per cent."""


@dataclass(frozen=True, eq=False)
class ExaminationEstimate:
    """Examination of each rank relative to rank 1, from documents that were shown at several ranks.

    Clicks determine only ratios: a factor common to all ranks cannot be separated from the relevances.
    """

    curve: Floats
    """1 at rank 1; NaN at a rank that cannot be compared with rank 1."""
    low: Floats
    high: Floats
    """Ends of the interval; NaN where there is none."""
    method: Method
    confidence: float
    interventions: NDArray[np.int64]
    """Query-document pairs that were shown at the rank and at another one, and clicked at least once."""
    clicks_per_intervention: float
    """Clicks on such a pair, on average: what EM has to estimate its relevance from."""
    iterations: int
    replicates: int
    warnings: tuple[str, ...] = ()
    queries: int = 0
    """Queries with interventions: what the intervals rest on."""
    log_covariance: Floats | None = None
    """(rank, rank): covariance of the logarithm of the curve, by the bootstrap; 0 at rank 1, None without intervals."""

    @property
    def complete(self) -> bool:
        """Whether there is an estimate above 0 for every rank."""
        return bool((self.curve > 0.0).all())

    def probabilities(self) -> Floats:
        """Return the curve with its highest rank at 1, as the objectives take it, or raise if it has gaps."""
        missing = np.flatnonzero(~(self.curve > 0.0))
        if len(missing):
            raise DataError(
                f"the log does not show how often {_ranks(missing)} {'is' if len(missing) == 1 else 'are'} examined: "
                "too few documents were shown there and at other ranks; let rankings vary at all ranks that are "
                "clicked, give a smaller --cutoff if few clicks are below it, or --examination if you know it."
            )
        scaled: Floats = self.curve / self.curve.max()
        return scaled


def estimate_examination(
    statistics: LogStatistics, rng: np.random.Generator, *, replicates: int = 200, confidence: float = 0.95
) -> ExaminationEstimate:
    """Estimate the curve by intervention harvesting (see `harvest`), with bootstrap intervals.

    Intervals are percentiles over `replicates` logs of resampled queries, at a confidence for each rank by itself. At
    a rank where no intervention was clicked, the estimate is 0, and `high` the examination that would have given no
    click with chance (1 - confidence)/2.
    """
    return _estimate(find_interventions(statistics), rng, "harvesting", replicates, confidence)


def estimate_by_both(
    statistics: LogStatistics, rng: np.random.Generator, *, replicates: int = 200
) -> tuple[ExaminationEstimate, ExaminationEstimate]:
    """Estimate by harvesting and by EM; where they contradict each other, both carry a warning."""
    found = find_interventions(statistics)
    harvested = _estimate(found, rng, "harvesting", replicates)
    em = _estimate(found, rng, "em", replicates)
    contradiction = disagreement(harvested, em)
    if contradiction is None:
        return harvested, em
    return tuple(replace(one, warnings=(*one.warnings, contradiction)) for one in (harvested, em))  # type: ignore[return-value]


def disagreement(one: ExaminationEstimate, other: ExaminationEstimate) -> str | None:
    """Say at which ranks each of two estimates lies outside the other's interval, by more than the margin."""
    with np.errstate(invalid="ignore", divide="ignore"):
        outside = [(a.curve < b.low) | (a.curve > b.high) for a, b in ((one, other), (other, one))]
        apart = np.abs(np.log(one.curve / other.curve))
    ranks = np.flatnonzero(outside[0] & outside[1] & (apart > math.log1p(MARGIN)) & np.isfinite(apart))
    if not len(ranks):
        return None
    worst = ranks[np.argmax(apart[ranks])]
    clicks = min(one.clicks_per_intervention, other.clicks_per_intervention)
    why = (
        f"with {clicks:.1f} clicks per document shown at several ranks, EM is known to be off; trust harvesting."
        if clicks < FEW_CLICKS
        else "clicks may depend on more than rank and document."
    )
    return (
        f"{NAMES[one.method]} and {NAMES[other.method]} contradict each other at {_ranks(ranks)} "
        f"(rank {worst + 1}: {one.curve[worst]:.2f} and {other.curve[worst]:.2f}): {why}"
    )


def _estimate(
    found: Interventions, rng: np.random.Generator, method: Method, replicates: int, confidence: float = 0.95
) -> ExaminationEstimate:
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"got confidence {confidence}, but it lies between 0 and 1.")
    if replicates < 2:
        raise UsageError(f"got {replicates} replicates, but an interval needs at least 2.")
    cutoff = len(found.per_rank)
    curve, low, high = (np.full(cutoff, np.nan) for _ in range(3))
    curve[0] = low[0] = high[0] = 1.0
    fit: CurveFit | None = None
    covariance = None
    tail = (1.0 - confidence) / 2.0
    if len(found.ranks) > 1:
        fit = harvest(found) if method == "harvesting" else expectation_maximisation(found)
        curve[found.ranks] = np.exp(fit.log_curve)
        if found.queries > 1:
            refits = bootstrap(fit, found.query, replicates, rng)
            low[found.ranks], high[found.ranks] = np.exp(np.quantile(refits, [tail, 1.0 - tail], axis=0))
            covariance = np.zeros((cutoff, cutoff))
            covariance[np.ix_(found.ranks, found.ranks)] = np.cov(refits, rowvar=False)
    if len(found.unclicked):
        curve[found.unclicked] = low[found.unclicked] = 0.0
        # With rank k examined like rank 1, a pair would have got shown_k * clicks / (exposure at the other ranks).
        relevance = found.clicked.sum(axis=1) / (found.shown @ curve[found.ranks])
        high[found.unclicked] = -math.log(tail) / (relevance @ found.unclicked_shown)
    return ExaminationEstimate(
        curve=curve,
        low=low,
        high=high,
        method=method,
        confidence=confidence,
        interventions=found.per_rank,
        clicks_per_intervention=float(found.clicked.sum()) / max(found.pairs, 1),
        iterations=0 if fit is None else fit.iterations,
        replicates=replicates,
        warnings=tuple(_warnings(found, fit, curve, low, high)),
        queries=found.queries,
        log_covariance=covariance,
    )


def _warnings(found: Interventions, fit: CurveFit | None, curve: Floats, low: Floats, high: Floats) -> Iterable[str]:
    unknown = np.flatnonzero(np.isnan(curve))
    if len(unknown):
        which = "any rank but the first" if len(unknown) == len(curve) - 1 else _ranks(unknown)
        both, it = ("both", "it") if len(unknown) == 1 else ("each", "them")
        yield (
            f"examination of {which} cannot be estimated: no chain of documents, shown at several ranks and clicked "
            f"at {both}, connects {it} with rank 1."
        )
    if len(found.unclicked):
        yield (
            f"no document shown at several ranks was clicked at {_ranks(found.unclicked)}: "
            "only an upper limit is known there."
        )
    known = curve > 0.0
    known[0] = False
    few = np.flatnonzero(known & (found.per_rank < FEW_INTERVENTIONS))
    if len(few):
        yield (
            f"few documents were shown at {_ranks(few)} and at other ranks, and clicked "
            f"({found.per_rank[few].min():,} at the fewest, {FEW_INTERVENTIONS} are wanted)."
        )
    wide = np.flatnonzero(known & (high > WIDE * low))
    if len(wide):
        yield f"the interval at {_ranks(wide)} is wide (more than a factor of {WIDE:g})."
    if fit is not None and found.queries < FEW_QUERIES:
        has = "query has" if found.queries == 1 else "queries have"
        yield (
            f"only {found.queries} {has} documents that were shown at several ranks and clicked: "
            f"intervals from fewer than {FEW_QUERIES} are too narrow{' or missing' * (found.queries == 1)}."
        )
    if fit is not None and not fit.converged:
        yield f"the estimate had not converged after {fit.iterations} iterations."


def _ranks(ranks: NDArray[np.int64]) -> str:
    """Ranks, from 0, as a user counts them: `rank 3`, `ranks 3, 5-8`."""
    runs = np.split(ranks, np.flatnonzero(np.diff(ranks) > 1) + 1)
    parts = [f"{run[0] + 1}" if len(run) == 1 else f"{run[0] + 1}-{run[-1] + 1}" for run in runs]
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(parts)}"
