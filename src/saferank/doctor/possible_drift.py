"""How much demand may have drifted without the log showing it, and how that could bias an estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.drift import excess_pairs
from saferank.doctor.hour_of_day import buckets, hour_counts
from saferank.doctor.log_arrays import sampled_impressions
from saferank.doctor.strata import StratumCounts
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog

Floats = NDArray[np.float64]
Z = 1.645
"""Standard errors above the estimate of drift: with 95% confidence it is not larger."""


@dataclass(frozen=True, eq=False)
class PossibleDrift:
    """What to allow for where the ranker changed over time and no drift of demand was found.

    Clicks on d are counted over all periods. If its relevance R_t varies, and the ranker shows d more in the periods
    in which it is wanted, relevance is overestimated by

        Cov_t(R_t, x_t) / mean x   <=   mean R * at_most * sqrt(variation(d))      (Cauchy-Schwarz)

    with x_t the exposure of d in period t, or in bucket t of the hours of the day.
    """

    at_most: float
    """Standard deviation of relevance over periods, relative to its mean, that cannot be excluded."""
    variation: Floats
    """Of each pair: variance of its exposure over periods, relative to its squared mean. An unbiased estimate may be
    negative for a single pair."""
    by_hour: bool = False

    def allowance(self, earned: Floats) -> float:
        """Return by how much such drift could have moved the clicks that a new ranker is credited with, of each pair.

        The documents that drift may be those whose exposure varies, so the variations are averaged by squares.
        """
        return self.at_most * math.sqrt(float(earned.sum()) * max(float(earned @ self.variation), 0.0))

    def of(self, pairs: NDArray[np.int64]) -> PossibleDrift:
        """Return the same with one entry per given pair."""
        return replace(self, variation=self.variation[pairs])


def possible_drift(
    log: StratumCounts, part: StratumCounts, examination: Floats, pairs: int, *, times: float = 1.0
) -> PossibleDrift:
    """Return what to allow for. `log`: all that was counted; `part`: what is held out; both by query and period.

    `times`: how many times the pairs of clicks of `log` the verdict will have.

    Given the clicks of all periods, the number of pairs of clicks in the same period has a variance of about twice
    its expectation.
    """
    cell, rank = np.nonzero(log.shown)
    place = np.unique(log.pair[cell] * log.shown.shape[1] + rank, return_inverse=True)[1]
    at_most = _at_most(place, log.shown[cell, rank], log.clicked[cell, rank], times)
    return PossibleDrift(at_most, _variation(part, examination, pairs))


def possible_drift_by_hour(
    log: AggregatedLog, pairs: RankingData, examination: Floats, *, times: float = 1.0
) -> PossibleDrift:
    """Return what to allow for if rankings depend on the hour of the day: the same by buckets of hours, on the sample.

    Squared exposures, in a bucket and in all, are estimated without bias, from pairs of interactions. A document that
    no two sampled interactions show varies as the others do.
    """
    sample = sampled_impressions(log, pairs)
    counts = hour_counts(sample, pairs, log.cutoff)
    if sample is None or sample.hour is None or counts is None:
        raise ValueError("the sample does not have the hour of the day.")
    place = counts.document * counts.ranks + counts.rank
    at_most = _at_most(np.unique(place, return_inverse=True)[1], counts.shown, counts.clicked, times)
    # interactions per (query, bucket): of each impression, its first row
    first = sample.offsets[:-1][sample.hour[sample.offsets[:-1]] >= 0]
    asked = pairs.query_of_document[sample.document[first]] * counts.periods + buckets(sample.hour[first])
    issued = np.bincount(asked, minlength=pairs.queries * counts.periods).reshape(pairs.queries, counts.periods)
    cell = counts.document * counts.periods + counts.period
    weight = examination[counts.rank]
    once, twice = (
        np.bincount(cell, counts.shown * weight**power, pairs.documents * counts.periods).reshape(pairs.documents, -1)
        for power in (1, 2)
    )
    n = np.where(issued > 1, issued, 0)[pairs.query_of_document]
    once, twice = np.where(n > 0, once, 0.0), np.where(n > 0, twice, 0.0)
    in_bucket = np.divide(once**2 - twice, n - 1.0, out=np.zeros(once.shape), where=n > 0).sum(axis=1)
    in_bucket *= n.sum(axis=1) - 1.0
    in_all = np.square(once.sum(axis=1)) - twice.sum(axis=1)
    others = float(in_bucket.sum() / in_all.sum()) if in_all.sum() > 0 else 2.0
    variation = np.divide(in_bucket, in_all, out=np.full(pairs.documents, others), where=in_all > 0) - 1.0
    return PossibleDrift(at_most, variation, by_hour=True)


def _at_most(cell: NDArray[np.int64], shown: NDArray[np.int64], clicked: NDArray[np.int64], times: float) -> float:
    excess, expected = excess_pairs(cell, shown, clicked)
    expected *= times
    return min(math.sqrt(max(excess, 0.0) + Z * math.sqrt(2.0 / expected)), 1.0) if expected > 0.0 else 1.0


def _variation(part: StratumCounts, examination: Floats, pairs: int) -> Floats:
    examined = part.shown @ examination
    first = np.bincount(part.pair, examined, pairs)
    second = np.bincount(part.pair, np.square(examined) / np.maximum(part.interactions[part.stratum], 1), pairs)
    issued = np.bincount(part.query, part.interactions, int(part.query.max(initial=0)) + 1)
    total = np.zeros(pairs)
    total[part.pair] = issued[part.query[part.stratum]]
    square = np.divide(total * second, np.square(first), out=np.ones(pairs), where=first > 0) - 1.0
    return np.maximum(square, 0.0)
