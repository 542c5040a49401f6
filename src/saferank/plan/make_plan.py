"""From a log and the production ranker's scores to a plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from saferank.engine.click_models.examination import check_probabilities
from saferank.engine.errors import DataError, UsageError
from saferank.engine.propensity.examination_estimate import MARGIN, ExaminationEstimate, estimate_examination
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.ragged import ranks_by_score
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData, flat_rows
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.split import DEFAULT_SHARES
from saferank.plan.better_policy import better_exposures
from saferank.plan.exploration_cost import exploration_cost
from saferank.plan.mean_rank import mean_rank_scores
from saferank.plan.needed_interactions import Needed, Traffic, needed_interactions
from saferank.plan.plan import CONFIDENCE, GAINS, Need, Plan, Way, WayKind
from saferank.plan.randomisation import ByScore, NeighbourSwaps, Randomisation, Temperature
from saferank.plan.relevance_posterior import RelevancePosterior, relevance_posterior
from saferank.plan.temperature_grid import moved_exposure, temperature_grid
from saferank.plan.traffic_per_day import logged_days

Floats = NDArray[np.float64]

SWAPS = (0.05, 0.2, 0.5)
WORLDS = 5
"""Sets of relevances that are drawn; what is needed is the median over them."""
MOST_DOCUMENTS = 100_000
"""Documents, of queries drawn by their traffic, from which needed interactions are computed."""
DRAWN_RANKINGS = 60_000
"""Of all queries together, for each way."""


def make_plan(
    log: AggregatedLog,
    data: RankingData,
    scores: ArrayLike | None = None,
    examination: ArrayLike | None = None,
    *,
    delta: float = 0.05,
    most_cost: float = 0.01,
    gains: Sequence[float] = GAINS,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
) -> Plan:
    """Return the plan.

    `data` are the candidates; `scores` the production ranker's, one for each of them (without: minus the mean rank in
    the log); `examination` one number for each rank (without: estimated from the log). All parts of the log are used:
    a plan decides nothing that a certificate will have to answer for.
    """
    if not 0.0 < delta < 0.5:
        raise UsageError(f"got delta {delta}, but it lies between 0 and 0.5.")
    if not most_cost >= 0.0:
        raise UsageError(f"got a cost of at most {most_cost}, but it is a share of the clicks, from 0 up.")
    tell = progress or (lambda _: None)
    rng = np.random.default_rng(seed)
    statistics = log.statistics(PARTS, data)
    issued = statistics.interactions > 0
    if not issued.any() or not statistics.clicks.any():
        what = "click on" if issued.any() else "interaction with"
        raise DataError(f"has no {what} these candidates; check --features and the ids.", file=log.source)
    patterns = log.click_patterns(PARTS, data)
    tell("Estimating examination")
    curve, curve_from, notes = _examination(log, statistics, examination, rng)
    notes += _left_out(log, statistics)
    ranker, ranker_from = _scores(statistics, scores)
    now = estimated_logging_exposure(statistics, curve)
    posterior = relevance_posterior(statistics, curve, ranks_by_score(ranker, statistics.offsets))
    interactions = statistics.total_interactions
    per_document = np.repeat(statistics.interactions / interactions, np.diff(statistics.offsets))

    tell("Making better policies")
    world = _Worlds.of(statistics, ranker, now, posterior, curve, gains, rng)
    tell("Choosing temperatures")
    grid = temperature_grid(world.scores, world.offsets, curve, np.repeat(world.share, np.diff(world.offsets)))
    if not grid:
        raise DataError("has no query with two candidates: there is no order to vary.", file=log.source)
    randomisations: list[Randomisation] = [ByScore(), *map(Temperature, grid)]
    if len(curve) > 1:
        randomisations += map(NeighbourSwaps, SWAPS)
    click_rate = float(statistics.clicks.sum()) / interactions
    total_days = logged_days(log)
    per_day = None if total_days is None else interactions / total_days
    held_out = float((log.manifest.get("split") or {}).get("shares", DEFAULT_SHARES)[-1])
    by_score = ByScore().exposure(ranker, statistics.offsets, curve)

    def way(kind: WayKind, amount: float | None, exposure: Floats, needed: Sequence[Needed]) -> Way:
        cost = exploration_cost(exposure, statistics, patterns, posterior, curve, confidence=CONFIDENCE)
        return Way(
            kind=kind,
            amount=amount,
            moved=moved_exposure(exposure, by_score, per_document),
            cost=cost.estimate,
            cost_at_most=cost.at_most,
            relative_cost=cost.estimate / click_rate,
            relative_cost_at_most=cost.at_most / click_rate,
            needs=tuple(_need(*pair, per_day, held_out) for pair in zip(gains, needed, strict=True)),
        )

    ways = [way("as logged", None, now, world.needed(world.now, None, delta))]
    for place, one in enumerate(randomisations, 1):
        tell(f"Planning: {place} of {len(randomisations)} ways to randomise")
        samples = max(DRAWN_RANKINGS // (len(world.offsets) - 1), 8)
        rankings = one.rankings(world.scores, world.offsets, len(curve), samples, rng)
        needed = world.needed(one.exposure(world.scores, world.offsets, curve), rankings, delta)
        exposure = one.exposure(ranker, statistics.offsets, curve)
        ways.append(way(one.kind, one.amount or None, exposure, needed))
    if total_days is not None and total_days < 1.0:
        notes.append(f"The log spans {24 * total_days:.1f} hours: days at its own traffic are a rough guess.")
    return Plan(
        source=log.source,
        interactions=interactions,
        queries=int(issued.sum()),
        click_rate=click_rate,
        cutoff=log.cutoff,
        examination=tuple(curve.tolist()),
        examination_from=curve_from,
        scores_from=ranker_from,
        delta=delta,
        held_out_share=held_out,
        per_day=per_day,
        most_cost=most_cost,
        unreachable=world.unreachable,
        ways=tuple(ways),
        notes=tuple(notes),
    )


def _need(gain: float, needed: Needed, per_day: float | None, held_out: float) -> Need:
    number = needed.interactions
    return Need(
        gain=gain,
        interactions=number,
        clip=needed.clip,
        days_held_out=None if per_day is None else number / (per_day * held_out) if held_out > 0 else math.inf,
        days_all=None if per_day is None else number / per_day,
    )


def _examination(
    log: AggregatedLog, statistics: LogStatistics, given: ArrayLike | None, rng: np.random.Generator
) -> tuple[Floats, str, list[str]]:
    """Return the curve, where it is from, and what is doubtful about it."""
    if given is not None:
        curve = check_probabilities("examination", given)
        if len(curve) != log.cutoff:
            raise UsageError(f"examination is for {len(curve)} ranks, but the log was cut at {log.cutoff}.")
        if not curve[0] > 0:
            raise UsageError("examination of rank 1 is 0, but there would be no click there; give a positive one.")
        return curve, "given", _doubts(curve / curve[0], estimate_examination(statistics, rng))
    estimate = estimate_examination(statistics, rng)
    if not estimate.complete:
        raise DataError(
            "does not tell how often each rank is looked at: too few documents were shown at several ranks. Give "
            "--examination if it is known from an experiment, or a smaller --cutoff.",
            file=log.source,
        )
    return estimate.probabilities(), f"estimated by {estimate.method}", [f"Examination: {w}" for w in estimate.warnings]


def _doubts(relative: Floats, estimate: ExaminationEstimate) -> list[str]:
    """Return what the log has to say against a given curve, relative to rank 1."""
    if not estimate.complete:
        return ["This log varies too little to check the given examination; if that is wrong, so are all numbers here."]
    off = (relative * (1.0 + MARGIN) < estimate.low) | (relative > estimate.high * (1.0 + MARGIN))
    if not off.any():
        return []
    rank = int(np.flatnonzero(off)[0])
    return [
        f"The log contradicts the given examination: rank {rank + 1} is given as {relative[rank]:.2f} of rank 1, but "
        f"is looked at {estimate.low[rank]:.2f} to {estimate.high[rank]:.2f} times as often. Leave --examination out."
    ]


def _left_out(log: AggregatedLog, statistics: LogStatistics) -> list[str]:
    total = int(pc.sum(log.impressions["clicked"]).as_py() or 0)
    missing = total - int(statistics.clicks.sum())
    if not missing:
        return []
    return [f"{missing / total:.1%} of the clicks are on documents that F lacks: they are left out of all numbers."]


def _scores(statistics: LogStatistics, given: ArrayLike | None) -> tuple[Floats, str]:
    if given is None:
        return mean_rank_scores(statistics), "minus the mean rank in the log (so T is in ranks)"
    scores = np.ascontiguousarray(given, np.float64)
    if scores.shape != (statistics.documents,):
        raise UsageError(f"{scores.shape} scores for {statistics.documents} documents.")
    return scores, "given"


class _Worlds:
    """Queries drawn by their traffic, with several sets of relevances and for each gain a policy that reaches it."""

    def __init__(
        self,
        offsets: NDArray[np.int64],
        share: Floats,
        scores: Floats,
        now: Floats,
        relevances: Sequence[Floats],
        examination: Floats,
        gains: Sequence[float],
        rng: np.random.Generator,
    ) -> None:
        self.offsets, self.share, self.scores, self.now = offsets, share, scores, now
        self.relevances, self.examination, self.gains = relevances, examination, gains
        weight = np.repeat(share, np.diff(offsets))
        self.better = [
            better_exposures(scores, relevance, offsets, examination, weight, now, gains, rng)
            for relevance in relevances
        ]

    @classmethod
    def of(
        cls,
        statistics: LogStatistics,
        scores: Floats,
        now: Floats,
        posterior: RelevancePosterior,
        examination: Floats,
        gains: Sequence[float],
        rng: np.random.Generator,
    ) -> _Worlds:
        """Take all issued queries, or if they have too many documents a sample of them."""
        lengths, share = np.diff(statistics.offsets), statistics.interactions / statistics.total_interactions
        if int(lengths[share > 0].sum()) > MOST_DOCUMENTS:
            draws = max(int(MOST_DOCUMENTS / float(lengths @ share)), 1)
            share = rng.multinomial(draws, share) / draws
        chosen = np.flatnonzero(share)
        rows = flat_rows(statistics.offsets, chosen)
        return cls(
            offsets=np.concatenate([[0], np.cumsum(lengths[chosen])]),
            share=share[chosen],
            scores=scores[rows],
            now=now[rows],
            relevances=[posterior.draw(rng)[rows] for _ in range(WORLDS)],
            examination=examination,
            gains=gains,
            rng=rng,
        )

    @property
    def unreachable(self) -> tuple[float, ...]:
        """Gains that no policy reaches in most worlds."""
        missed = [sum(found[place] is None for found in self.better) for place in range(len(self.gains))]
        return tuple(gain for gain, times in zip(self.gains, missed, strict=True) if 2 * times > len(self.better))

    def needed(self, logging_exposure: Floats, rankings: NDArray[np.int64] | None, delta: float) -> list[Needed]:
        """Return for each gain what this way of logging needs: the median over worlds."""
        weight = np.repeat(self.share, np.diff(self.offsets))
        found: list[list[Needed]] = [[] for _ in self.gains]
        for relevance, better in zip(self.relevances, self.better, strict=True):
            traffic = Traffic(self.offsets, self.share, relevance, self.examination, logging_exposure, rankings)
            shortfall = float((self.now - logging_exposure) @ (weight * relevance))
            for place, exposure in enumerate(better):
                if exposure is None:
                    found[place].append(Needed(math.inf, None))
                else:
                    found[place].append(needed_interactions(exposure, traffic, shortfall=shortfall, delta=delta))
        return [sorted(one, key=lambda needed: needed.interactions)[len(one) // 2] for one in found]
