"""From a log and the current ranker's scores to a plan."""

import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from saferank.doctor.inputs import load_inputs
from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.ranker_changes import changes_of, compared
from saferank.engine.bounds.verdict_choices import FIRST_LOOK
from saferank.engine.errors import DataError, UsageError
from saferank.engine.propensity.examination_estimate import MARGIN, ExaminationEstimate, estimate_examination
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.ragged import ranks_by_score
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import take_column
from saferank.files.arrow_tables import Tabular
from saferank.learning.list_lengths import ListLengths
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.periods import DAY, span_of
from saferank.logs.row_checks import missing_features_error
from saferank.logs.split import DEFAULT_SHARES
from saferank.plan.exploration_cost import exploration_cost, relevance_posterior
from saferank.plan.plan import GAINS, Need, Plan, Way
from saferank.plan.randomisation import BY_SCORE, Kind, Randomisation, moved_exposure, temperature_grid
from saferank.plan.worlds import Worlds

Floats = NDArray[np.float64]
LOGGER = logging.getLogger(__name__)

SWAPS = (0.05, 0.2, 0.5)
CHANGED = (
    "Rankings of this log changed over time. A verdict on such a log allows for a drift of demand that it cannot "
    "exclude (relevance that varies by up to {:.0%}), which shrinks only slowly as the log grows. Rankings drawn at "
    "random from the same scores all day need no such allowance."
)
DRAWN_RANKINGS = 60_000
"""For all queries together, for each way."""


def make_plan(
    log: str | Path | Tabular | AggregatedLog,
    features: str | Path | Tabular | RankingData | None = None,
    scores: str | ArrayLike | None = None,
    examination: str | ArrayLike | None = None,
    *,
    delta: float = 0.05,
    most_cost: float = 0.01,
    seed: int = 0,
    on_bad_rows: str = "error",
    progress: Callable[[str], object] | None = None,
    **options: Any,
) -> Plan:
    """Return which randomness to log next, what it costs and how soon it decides: what `saferank plan` shows.

    All parts of the log are used, because a plan does not affect any certificate.

        plan = saferank.make_plan("log.parquet", "features.parquet", scores="score")
        plan.advised, plan.ways

    Args:
        log: As for `diagnose`.
        features: The candidates, as for `diagnose`; by default what the log shows.
        scores: The current ranker's scores, on any scale: a column of the features, or one number per candidate. By
            default, minus the mean rank in the log.
        examination: As for `diagnose`; without it, estimated from the log.
        delta: As for `certify`.
        most_cost: Share of the clicks that may be lost while logging.
        on_bad_rows: What to do with rows that cannot be used or lack features: `error`, or `drop`.
        progress: Called with each step.
        options: How the log is read, as for `diagnose`.

    Returns:
        All `ways` to log that were considered, and the one that is `advised`, if any.
    """
    if not 0.0 < delta < 0.5:
        raise UsageError(f"got delta {delta}, but it must lie between 0 and 0.5.")
    if not most_cost >= 0.0:
        raise UsageError(f"got a largest cost of {most_cost}, but it must be a share of the clicks, 0 or more.")
    column = scores if isinstance(scores, str) else None
    if column is not None and features is None:
        raise UsageError(f"the scores {column} are a column of the features; give --features too.")
    if not isinstance(log, AggregatedLog):
        options["on_bad_rows"] = on_bad_rows
    log, data, given = load_inputs(
        log, features, examination, feature_columns=None if column is None else [column], progress=progress, **options
    )
    if data is None:
        data = shown_pairs(log)
    elif on_bad_rows == "error" and (error := missing_features_error(log, data)) is not None:
        raise error
    if column is not None:
        data, scores = take_column(data, column)
    LOGGER.info("Planning from %s", log.source)
    report = progress or (lambda _: None)
    rng = np.random.default_rng(seed)
    statistics = log.statistics(PARTS, data)
    interactions = statistics.total_interactions
    if not interactions or not statistics.clicks.any():
        what = "clicks on" if interactions else "interactions with"
        raise DataError(f"has no {what} these candidates; check --features and the ids.", file=log.source)
    patterns = log.click_patterns(PARTS, data)
    report("Estimating examination")
    curve, curve_from, notes = _examination(log, statistics, given, rng)
    clicks = int(pc.sum(log.shown_counts["clicked"]).as_py() or 0)
    if missing := clicks - int(statistics.clicks.sum()):
        notes.append(f"{missing / clicks:.1%} of the clicks are on documents without features and are left out.")
    ranker, ranker_from = mean_rank_scores(statistics), "minus the mean rank in the log (so T is in ranks)"
    if scores is not None:
        ranker, ranker_from = np.ascontiguousarray(scores, np.float64), "given"
        if ranker.shape != (statistics.documents,):
            raise UsageError(f"{ranker.shape} scores for {statistics.documents} documents.")
    now = estimated_logging_exposure(statistics, curve)
    posterior = relevance_posterior(statistics, curve, ranks_by_score(ranker, statistics.offsets))

    report("Making better policies")
    lengths = ListLengths.of(statistics)
    worlds = Worlds(statistics, ranker, lengths.full_exposure(statistics, curve), posterior, curve, rng)
    report("Choosing temperatures")
    grid = temperature_grid(worlds.scores, worlds.offsets, curve, worlds.weight)
    if not grid:
        raise DataError("has no query with two candidates, so there is no order to vary.", file=log.source)
    randomisations = [BY_SCORE, *(Randomisation("temperature", amount) for amount in grid)]
    if len(curve) > 1:
        randomisations += [Randomisation("swap", amount) for amount in SWAPS]
    click_rate = float(statistics.clicks.sum()) / interactions
    total_days = logged_days(log)
    per_day = None if total_days is None else interactions / total_days
    if total_days is not None and total_days < 1.0:
        notes.append(f"The log spans only {24 * total_days:.1f} hours, so the numbers of days are a rough guess.")
    held_out = float((log.manifest.get("split") or {}).get("shares", DEFAULT_SHARES)[-1])

    def shown_by(one: Randomisation) -> Floats:
        return lengths.mean(lambda examination: one.exposure(ranker, statistics.offsets, examination), curve)

    by_score = shown_by(BY_SCORE)
    per_document = np.repeat(statistics.interactions / interactions, np.diff(statistics.offsets))

    def need(gain: float, needed: tuple[float, float]) -> Need:
        number, clip = needed
        with_all = None if per_day is None else number / per_day
        with_share = None if per_day is None else number / (per_day * held_out) if held_out > 0 else math.inf
        return Need(gain, number, clip if math.isfinite(clip) else None, with_share, with_all)

    def way(kind: Kind, amount: float, exposure: Floats, needed: Sequence[tuple[float, float]]) -> Way:
        cost, at_most = exploration_cost(exposure, statistics, patterns, posterior, curve)
        moved, needs = moved_exposure(exposure, by_score, per_document), tuple(map(need, GAINS, needed))
        return Way(kind, amount or None, moved, cost, at_most, cost / click_rate, at_most / click_rate, needs)

    first_look = delta * FIRST_LOOK
    used = log.of(PARTS, data)
    changes = changes_of(used, data)
    drifts = () if changes.none else compared(used, data, curve, changes, PARTS)[0].drifts
    if drifts:
        notes.append(CHANGED.format(max(drift.at_most for drift in drifts)))
    ways = [way("as logged", 0.0, now, worlds.needed(worlds.now, None, first_look, drifts))]
    for place, one in enumerate(randomisations, 1):
        report(f"Planning: {place} of {len(randomisations)} ways to randomise")
        samples = max(DRAWN_RANKINGS // (len(worlds.offsets) - 1), 8)
        rankings = one.rankings(worlds.scores, worlds.offsets, len(curve), samples, rng)
        needed = worlds.needed(one.exposure(worlds.scores, worlds.offsets, curve), rankings, first_look)
        ways.append(way(one.kind, one.amount, shown_by(one), needed))
    return Plan(
        source=log.source,
        interactions=interactions,
        queries=int((statistics.interactions > 0).sum()),
        click_rate=click_rate,
        cutoff=log.cutoff,
        examination=tuple(curve.tolist()),
        examination_from=curve_from,
        scores_from=ranker_from,
        delta=delta,
        held_out_share=held_out,
        per_day=per_day,
        most_cost=most_cost,
        unreachable=worlds.unreachable,
        ways=tuple(ways),
        notes=tuple(notes),
    )


def _examination(
    log: AggregatedLog, statistics: LogStatistics, curve: Floats | None, rng: np.random.Generator
) -> tuple[Floats, str, list[str]]:
    """Return the curve, where it is from, and what is doubtful about it."""
    if curve is not None and not curve[0] > 0:
        raise UsageError("the examination of rank 1 is 0, but it must be positive: users click there.")
    estimate = estimate_examination(statistics, rng)
    if curve is not None:
        return curve, "given", _doubts(curve / curve[0], estimate)
    if not estimate.complete:
        note = (
            "Too few documents were shown at several ranks to estimate how often each rank is examined. This plan "
            "assumes 1/rank, so it is a rough guide; no verdict will use this curve. If you know the curve from an "
            "experiment, give it."
        )
        return 1.0 / np.arange(1.0, log.cutoff + 1.0), "assumed: 1/rank", [note]
    return estimate.probabilities(), f"estimated by {estimate.method}", [f"Examination: {w}" for w in estimate.warnings]


def _doubts(relative: Floats, estimate: ExaminationEstimate) -> list[str]:
    """Return how the log contradicts a given curve, relative to rank 1, or that it cannot check it."""
    if not estimate.complete:
        return ["Rankings vary too little to check the given examination curve. If it is wrong, so is this plan."]
    off = (relative * (1.0 + MARGIN) < estimate.low) | (relative > estimate.high * (1.0 + MARGIN))
    if not off.any():
        return []
    rank = int(np.flatnonzero(off)[0])
    return [
        f"The log contradicts the given curve: rank {rank + 1} is given as {relative[rank]:.2f} of rank 1, but "
        f"is examined {estimate.low[rank]:.2f} to {estimate.high[rank]:.2f} times as often. Leave it out."
    ]


def mean_rank_scores(statistics: LogStatistics) -> Floats:
    """Return minus the mean rank of each document, where not being shown counts as rank K + 1."""
    beyond = statistics.cutoff + 1
    interactions = np.repeat(statistics.interactions, np.diff(statistics.offsets))
    total = statistics.shown @ np.arange(1, beyond) + beyond * (interactions - statistics.times_shown)
    mean: Floats = np.full(len(total), float(beyond))
    np.divide(total, interactions, out=mean, where=interactions > 0)
    return -mean


def logged_days(log: AggregatedLog) -> float | None:
    """Return the days from the first to the last timestamp; None without timestamps, or if all are the same."""
    first, last = span_of(log.manifest.get("period")) or (0.0, 0.0)
    return (last - first) / DAY if last > first else None
