"""From an aggregated log to its health."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from saferank.doctor.coverage import coverage
from saferank.doctor.drift import FEW_REPEATED, demand_drift, ranker_moved
from saferank.doctor.effective_size import effective_size
from saferank.doctor.examination_check import examination_check
from saferank.doctor.health import Health
from saferank.doctor.log_findings import findings
from saferank.doctor.period_counts import PeriodCounts, codes, period_counts, within_periods
from saferank.doctor.personalised import personalised
from saferank.doctor.position_based import position_based
from saferank.doctor.randomness import randomness
from saferank.doctor.sampled_impressions import sampled_impressions
from saferank.doctor.shown_pairs import shown_pairs
from saferank.doctor.suspicious_clicks import Units, suspicious_clicks, units_of
from saferank.doctor.traffic import traffic
from saferank.engine.click_models.examination import check_probabilities
from saferank.engine.errors import UsageError
from saferank.engine.propensity.examination_estimate import ExaminationEstimate, estimate_by_both, estimate_examination
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import AggregatedLog, Places


def diagnose(
    aggregated: AggregatedLog,
    data: RankingData | None = None,
    examination: ArrayLike | None = None,
    *,
    seed: int = 0,
    replicates: int = 200,
    em: bool = True,
) -> Health:
    """Return how fit a log is to learn from and to decide by, all its parts together, and what that means.

    Args:
        data: The features, for what was never shown; without them it cannot be told.
        examination: One number per rank, if it is known; it is estimated in any case, and compared with the given one.
        seed: For the bootstrap, and for the halves of the log in the test of trust bias.
        replicates: Of the bootstrap.
        em: Whether to estimate examination by EM too, for comparison.
    """
    given = None if examination is None else check_probabilities("examination", examination)
    if given is not None and len(given) != aggregated.cutoff:
        raise UsageError(f"examination is for {len(given)} ranks, but the log was cut at {aggregated.cutoff}.")
    rng = np.random.default_rng(seed)
    pairs = shown_pairs(aggregated)
    places = Places(pairs)
    counts = period_counts(aggregated, pairs, places)
    statistics = _statistics(aggregated, counts, pairs, places)
    demand, ranker = demand_drift(counts), ranker_moved(counts)
    within = ranker.significant and (demand.significant or demand.repeated < FEW_REPEATED)
    compared = within_periods(aggregated, counts, places) if within else statistics
    harvested, by_em = _examination(compared, rng, replicates, em=em)
    sample = sampled_impressions(aggregated, places)
    without_click = pc.equal(pc.list_value_length(aggregated.patterns["clicked"]), 0).combine_chunks()
    period = aggregated.manifest.get("period")
    health = Health(
        source=aggregated.source,
        cutoff=aggregated.cutoff,
        period=None if period is None else (_to_the_second(period[0]), _to_the_second(period[1])),
        traffic=traffic(statistics),
        shown=statistics.shown.sum(axis=0),
        clicked=statistics.clicked.sum(axis=0),
        given=given,
        harvested=harvested,
        em=by_em,
        within_periods=within,
        check=examination_check(compared, given),
        periods=tuple(aggregated.periods),
        demand=demand,
        ranker=ranker,
        position_based=position_based(sample, compared, rng, by_period=demand.significant or within),
        personalised=personalised(sample, pairs, aggregated.cutoff, by_period=ranker.significant),
        suspicious=suspicious_clicks(
            statistics,
            int(aggregated.patterns["interactions"].to_numpy()[without_click.to_numpy(zero_copy_only=False)].sum()),
            sample,
            _units(aggregated.patterns),
        ),
        randomness=randomness(statistics, aggregated.rankings),
        coverage=None if data is None else coverage(aggregated, pairs, data),
        effective=None,
        dropped={str(kind): int(rows) for kind, rows in (aggregated.manifest.get("bad_rows") or {}).items() if rows},
    )
    if health.examination is not None and (health.examination > 0).all():
        effective = effective_size(
            statistics,
            health.examination,
            candidates=None if data is None else _candidates(pairs, data),
            held_out=aggregated.click_patterns("certify", pairs),
        )
        health = replace(health, effective=effective)
    return replace(health, findings=tuple(findings(health)))


def _statistics(aggregated: AggregatedLog, counts: PeriodCounts, pairs: RankingData, places: Places) -> LogStatistics:
    """Return the counts over all periods."""
    cell = counts.document * counts.ranks + counts.rank
    size = pairs.documents * counts.ranks
    shown, clicked = (
        np.bincount(cell, values, size).astype(np.int64).reshape(-1, counts.ranks)
        for values in (counts.shown, counts.clicked)
    )
    query = places.of_queries(aggregated.patterns["query_id"])
    times = aggregated.patterns["interactions"].to_numpy()
    interactions = np.bincount(query[query >= 0], times[query >= 0], pairs.queries).astype(np.int64)
    return LogStatistics(pairs.offsets, interactions, shown, clicked)


def _examination(
    statistics: LogStatistics, rng: np.random.Generator, replicates: int, *, em: bool
) -> tuple[ExaminationEstimate, ExaminationEstimate | None]:
    if em:
        return estimate_by_both(statistics, rng, replicates=replicates)
    return estimate_examination(statistics, rng, replicates=replicates), None


def _units(patterns: pa.Table) -> Units | None:
    if patterns["unit"].null_count == len(patterns):
        return None
    clicks = pc.list_value_length(patterns["clicked"]).to_numpy().astype(np.int64)
    return units_of(codes(patterns["unit"]), patterns["interactions"].to_numpy(), clicks)


def _candidates(pairs: RankingData, data: RankingData) -> NDArray[np.int64]:
    """Return how many documents the features have for each of the log's queries; 0 where they lack the query."""
    assert pairs.query_ids is not None
    place = Places(data).of_queries(pa.array(pairs.query_ids, pa.string()))
    return np.where(place >= 0, data.lengths[place], 0)


def _to_the_second(time: object) -> str:
    """Return an ISO time as one reads it; what is none (a count of milliseconds, say) as it is."""
    try:
        return datetime.fromisoformat(str(time)).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return str(time)
