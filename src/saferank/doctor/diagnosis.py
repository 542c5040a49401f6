"""From an aggregated log to its health."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from saferank.data.aggregated_log import PARTS, AggregatedLog, Places
from saferank.data.ranking_data import RankingData
from saferank.doctor.coverage import coverage
from saferank.doctor.effective_size import effective_size
from saferank.doctor.findings import findings
from saferank.doctor.health import Health
from saferank.doctor.randomness import randomness
from saferank.doctor.shown_pairs import shown_pairs
from saferank.doctor.traffic import traffic
from saferank.errors import UsageError
from saferank.propensity.examination import check_probabilities
from saferank.propensity.examination_estimate import estimate_by_both


def diagnose(
    aggregated: AggregatedLog,
    data: RankingData | None = None,
    examination: ArrayLike | None = None,
    *,
    seed: int = 0,
    replicates: int = 200,
) -> Health:
    """Measure how fit a log is to learn from, all its parts together, and say what that means.

    `data`: the features, for what was never shown; without them it cannot be told. `examination`: one number a rank,
    if it is known; it is estimated in any case, and held against the given one. `seed` is for the bootstrap.
    """
    given = None if examination is None else check_probabilities("examination", examination)
    if given is not None and len(given) != aggregated.cutoff:
        raise UsageError(f"examination is for {len(given)} ranks, but the log was cut at {aggregated.cutoff}.")
    pairs = shown_pairs(aggregated)
    statistics = aggregated.statistics(PARTS, pairs)
    harvested, em = estimate_by_both(statistics, np.random.default_rng(seed), replicates=replicates)
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
        em=em,
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
