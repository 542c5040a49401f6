"""From an aggregated log to its health."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saferank.doctor.drift import FEW_REPEATED, demand_drift, personalised, ranker_moved
from saferank.doctor.earlier_searches import earlier_searches
from saferank.doctor.effective_size import effective_size
from saferank.doctor.examination_check import examination_check
from saferank.doctor.feature_columns import feature_columns
from saferank.doctor.groups import groups
from saferank.doctor.health import Health
from saferank.doctor.hidden_context import hidden_context
from saferank.doctor.high_or_missing import high_or_missing
from saferank.doctor.hour_of_day import hour_of_day
from saferank.doctor.inputs import load_inputs
from saferank.doctor.leaking_features import leaking_features
from saferank.doctor.list_ends import list_ends
from saferank.doctor.list_kinds import list_kinds
from saferank.doctor.log_arrays import period_counts, sampled_impressions, shown_pairs
from saferank.doctor.log_findings import findings
from saferank.doctor.log_measures import coverage, randomness, traffic
from saferank.doctor.moment import follows_moment
from saferank.doctor.pinned import pinned
from saferank.doctor.position_based import position_based
from saferank.doctor.ranker_changes import compared, ranker_changes
from saferank.doctor.repeated_impressions import repeated_impressions
from saferank.doctor.strata import counts_by_stratum
from saferank.doctor.suspicious_clicks import likely_unit, suspicious_clicks
from saferank.engine.propensity.examination_estimate import estimate_by_both, estimate_examination
from saferank.engine.types.ranking_data import RankingData
from saferank.features.reader import text_columns
from saferank.files.arrow_tables import Tabular
from saferank.logs.aggregated_log import PARTS, AggregatedLog, is_aggregated, places_of
from saferank.logs.periods import datetime_of

LOGGER = logging.getLogger(__name__)


def diagnose(
    log: str | Path | Tabular | AggregatedLog,
    features: str | Path | Tabular | RankingData | None = None,
    examination: str | ArrayLike | None = None,
    *,
    rankings: bool = True,
    seed: int = 0,
    replicates: int = 200,
    em: bool = True,
    progress: Callable[[str], object] | None = None,
    **options: Any,
) -> Health:
    """Return the health of a log, for learning and for verdicts, over all its parts: what `saferank doctor` shows.

        health = saferank.diagnose("log.parquet", "features.parquet", columns={"click": "clicked"})
        health.level, health.findings, health.blocking

    Args:
        log: A log as files or a table (a pandas or Polars DataFrame, a pyarrow or Ibis table), a folder that
            `saferank aggregate` wrote, or what `load_log` returned.
        features: What `load_features` reads, files or a table, or what it returned: to find candidates that were never
            shown, and features that know the held-out clicks.
        examination: One number per rank or text (`1,0.5,0.3`, `inverse-rank:1`), if it is known. It is estimated in any
            case, and compared with the given one.
        rankings: Whether to count complete rankings too, which takes longer; not of a log that is counted already.
        seed: For the bootstrap, the halves of the log in the test of trust bias, and the redrawn lists.
        replicates: Number of bootstrap replicates.
        em: Whether to estimate examination by EM too, for comparison.
        progress: Called with each step.
        options: How the log is read, as for `load_log`: `columns`, `cutoff`, `layout`, `on_bad_rows`, `unit`. `part`
            is the split of a data set of features.

    Returns:
        Numbers, and `findings`: what the log can and cannot support. Those in `blocking` rule out any verdict.
    """
    if not isinstance(log, AggregatedLog):
        options["rankings"] = rankings and not is_aggregated(log)
    texts = None if features is None or isinstance(features, RankingData) else text_columns(features)
    aggregated, features, given = load_inputs(log, features, examination, progress=progress, **options)
    columns = None
    if features is not None and texts is not None:
        ids = (options.get("columns") or {}).values()
        columns = feature_columns(features, [name for name in texts if name not in ids])
    if progress is not None:
        progress("Estimating examination")
    LOGGER.info("Checking the log %s", aggregated.source)
    rng = np.random.default_rng(seed)
    pairs = shown_pairs(aggregated)
    counts, statistics = period_counts(aggregated, pairs), aggregated.statistics(PARTS, pairs)
    demand, ranker = demand_drift(counts), ranker_moved(counts)
    sample = sampled_impressions(aggregated, pairs)
    hours = hour_of_day(sample, pairs, aggregated.cutoff)
    moment = follows_moment(sample, pairs)
    changes = ranker_changes(counts, demand, ranker, hours, moment)
    within = ranker.significant and (demand.significant or demand.repeated < FEW_REPEATED)
    strata = statistics
    if within:  # a document's relevance has to be the same wherever it is compared
        strata = counts_by_stratum(aggregated, PARTS, pairs, strata=np.arange(counts.periods)).statistics()
    if em:
        harvested, by_em = estimate_by_both(strata, rng, replicates=replicates)
    else:
        harvested, by_em = estimate_examination(strata, rng, replicates=replicates), None
    curve = given if given is not None else harvested.probabilities() if harvested.complete else None
    effective = None
    if curve is not None and (curve > 0).all():
        candidates = None
        if features is not None:
            place = places_of(features).of_queries(pairs.query_ids)
            candidates = np.where(place >= 0, features.lengths[place], 0)
        held_out = aggregated.click_patterns("certify", pairs)
        judged = () if changes.none else compared(aggregated, pairs, curve, changes, ("certify",))
        effective = effective_size(statistics, curve, candidates=candidates, held_out=held_out, judged=judged)
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
        check=examination_check(strata, given),
        periods=tuple(aggregated.periods),
        demand=demand,
        ranker=ranker,
        changes=changes,
        hours=hours,
        moment=moment if changes.stretches is None else follows_moment(sample, pairs, changes.stretches),
        groups=groups(sample, pairs, aggregated.cutoff, by_period=ranker.significant),
        untested_groups=tuple(aggregated.manifest.get("untested_groups") or ()),
        hidden_context=hidden_context(sample, pairs, np.random.default_rng([seed, 3]), by_period=ranker.significant),
        position_based=position_based(sample, strata, rng, by_period=demand.significant or within),
        personalised=personalised(sample, pairs, aggregated.cutoff, by_period=ranker.significant),
        earlier_searches=earlier_searches(sample, pairs, by_period=ranker.significant),
        list_kinds=list_kinds(sample, pairs, np.random.default_rng([seed, 1]), by_period=ranker.significant),
        high_or_missing=high_or_missing(sample, pairs, by_period=ranker.significant),
        pinned=pinned(sample, pairs, by_period=ranker.significant),
        list_ends=list_ends(sample),
        repeated=repeated_impressions(sample, pairs, statistics.total_interactions),
        suspicious=suspicious_clicks(statistics, aggregated.patterns, sample),
        randomness=randomness(statistics, aggregated.rankings),
        coverage=None if features is None else coverage(aggregated, statistics, pairs, features),
        columns=columns,
        leaks=() if features is None else leaking_features(aggregated, features, np.random.default_rng([seed, 2])),
        effective=effective,
        unit=aggregated.manifest.get("unit"),
        likely_unit=likely_unit(aggregated.manifest),
        dropped={str(kind): int(rows) for kind, rows in (aggregated.manifest.get("bad_rows") or {}).items() if rows},
    )
    return replace(health, findings=tuple(findings(health)))


def _to_the_second(time: object) -> str:
    """Return a time without fractions of a second; anything else (a number of another unit, say) as it is."""
    moment = datetime_of(time)
    return str(time) if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")
