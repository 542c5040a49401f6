"""Decide on held-out interactions whether a new ranker may replace the one that made the log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank import __version__
from saferank.engine.bounds.registry import BOUNDS, check_bound
from saferank.engine.errors import DataError, UsageError
from saferank.engine.plackett_luce import placement
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog, Places
from saferank.verdict.certificate import Certificate, Verdict
from saferank.verdict.checks import Refused, check_cutoff, check_features, check_known_ranker, check_ranked
from saferank.verdict.comparison import Comparison
from saferank.verdict.curves import UNCHECKED, Curves, curves_for
from saferank.verdict.details import with_details
from saferank.verdict.held_out import all_pairs, held_out
from saferank.verdict.judge import DEFAULT_WEIGHT, Judge, Rehearsal, rehearse
from saferank.verdict.log_doubts import LogDoubts, log_doubts
from saferank.verdict.needed import needed_to_decide
from saferank.verdict.new_ranker import NewRanker
from saferank.verdict.possible_drift import possible_drift

Floats = NDArray[np.float64]
LEARNING_PARTS = ("train", "validation")
EXAMINATION = "the examination of the ranks is as the log tells it, within its confidence set"
GIVEN = "the examination of the ranks is as it was given, within the range stated"
KNOWN = "the logging policy is Plackett-Luce with the scores given"
STABLE = "the relevance of a document did not change while the ranker changed"
WITHIN = "the relevance of a document did not change within a period"


@dataclass(frozen=True)
class CertifySettings:
    """What to ask of the certificate."""

    delta: float = 0.05
    tolerance: float = 0.0
    """Loss in clicks per interaction that is still accepted."""
    bound: str = "one-look"
    clip: float = 0.0
    """Logging exposure is raised to this at least: lowers the estimate, and its variance."""
    most_weight: float | None = None
    """Limit of a click's weight; chosen on the validation part if None."""
    trust_examination: bool = False
    """Whether a given curve is believed where the log cannot check it."""
    random_per_unit: bool = False
    """Whether rankings that depend on the user were drawn at random, and not by the user's taste."""
    spent: float = 1.0
    """Share of delta for this look: see `Ledger`."""
    look: int = 1
    details: bool = True
    """Whether to work out all that is not needed for the verdict: other bounds, curves, deltas, segments."""

    def __post_init__(self) -> None:
        check_bound(self.bound, self.delta)
        if not 0.0 <= self.tolerance < math.inf:
            raise UsageError(f"tolerance is a loss that is accepted, from 0 up; got {self.tolerance}.")
        if self.clip < 0.0:
            raise UsageError(f"got clip {self.clip}, but an exposure to clip up to cannot be negative.")
        if self.most_weight is not None and not self.most_weight >= 1.0:
            raise UsageError(f"got a most weight of {self.most_weight}, but it must be 1 or more.")


def certify(
    ranker: NewRanker,
    log: AggregatedLog,
    settings: CertifySettings = CertifySettings(),  # noqa: B008 (frozen)
    *,
    examination: Floats | None = None,
    logging_scores: NDArray[np.float32] | None = None,
) -> Certificate:
    """Return the verdict on the part `certify` of the log.

    DEPLOY if the improvement is at least -tolerance, with confidence 1 - delta; KEEP if it is below, with the same
    confidence; MORE DATA otherwise. Raises `Refused` where no guarantee can be given. `examination`: a curve that the
    caller gives; left out, it is estimated from the parts that are not held out. `logging_scores`: one for each row
    of `ranker.data`, of the Plackett-Luce policy that made the log, if they are known.
    """
    for curve in (examination, ranker.examination):
        if curve is not None and len(curve) != log.cutoff:
            raise UsageError(
                f"the log is counted for {log.cutoff} ranks, but the model is for {len(curve)}; aggregate it with that "
                "cutoff."
            )
    check_cutoff(log.manifest)
    unit = log.manifest.get("unit")
    if _by_query(log) and unit is not None:
        raise UsageError(f"the log is split by query and has units ({unit}) that span queries; leave one of them out.")
    if (unit is not None or _by_query(log)) and not BOUNDS[settings.bound].units:
        raise UsageError(f"the bound '{settings.bound}' cannot take units; choose one-look or betting.")
    pairs = all_pairs(log, ranker.data)
    doubts = log_doubts(log, known=logging_scores is not None, random_per_unit=settings.random_per_unit)
    rankers = _Rankers.of(ranker, pairs, log.cutoff, logging_scores)
    way = _best_way(log, pairs, rankers, settings, doubts, examination)
    test, curves, rehearsal = way.test, way.curves, way.rehearsal
    interactions = test.part.patterns.total_interactions
    if rankers.logging_placement is not None:
        by_period = held_out(log, ("certify",), pairs, strata=np.arange(max(len(log.periods), 1)))
        check_known_ranker(by_period, rankers.logging_placement, log.periods, log.source)
    missing = _without_features(test, rankers, curves.curve)
    check_ranked(missing["interactions"], source=log.source)
    if ranker.complete:
        check_features(missing["clicks"], missing["exposure"], source=log.source)
    judge = Judge(test, curves, rehearsal.limits, rehearsal.guesses, settings.bound)
    limit = rehearsal.limits[0]

    delta = settings.delta * settings.spent
    lower, worst = judge.lower(delta)
    upper = judge.upper(delta)
    verdict = decide(lower, upper, settings.tolerance)
    differences = test.differences(curves.curve, limit)
    certificate = Certificate(
        verdict=verdict,
        improvement=differences.mean,
        lower=lower,
        upper=upper,
        delta=settings.delta,
        spent=delta,
        look=settings.look,
        tolerance=settings.tolerance,
        bound=settings.bound,
        serve_as=ranker.serve_as,
        interactions=interactions,
        click_rate=float(test.part.rewards.sum()) / interactions,
        logging_exposure="counted" if rankers.logging_placement is None else "known",
        strata="query" if way.strata is None else "query and period",
        examination={
            "kind": curves.kind,
            "unchecked": curves.kind == UNCHECKED,
            "curve": curves.curve.tolist(),
            "worst": worst.tolist(),
        },
        effective_clicks=test.effective_clicks(curves.curve, limit),
        unsupported_exposure=test.unsupported(curves.curve),
        without_features=missing,
        covers=_covers(log),
        low=differences.low,
        high=differences.high,
        most_weight=limit,
        standard_error=differences.standard_error,
        drift_allowance=test.allowance(curves.curve, limit),
        needed=needed_to_decide(judge, lower, upper, settings.tolerance, log) if verdict is Verdict.MORE_DATA else None,
        unit="query" if _by_query(log) else log.manifest.get("unit"),
        reward=(log.manifest.get("reward") or {}).get("column"),
        doubts=doubts.doubts,
        assumptions=_assumptions(settings, curves, rankers.logging_placement is not None, way.strata is not None),
        warnings=_warnings(settings, curves, missing, ranker, test, limit),
        inputs={"model": ranker.description, "log": log.manifest},
        saferank=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return with_details(certificate, judge, way.seen_queries) if settings.details else certificate


def decide(lower: float, upper: float, tolerance: float) -> Verdict:
    """DEPLOY if surely at least -tolerance, KEEP if surely below it, else MORE DATA."""
    if lower >= -tolerance:
        return Verdict.DEPLOY
    return Verdict.KEEP if upper < -tolerance else Verdict.MORE_DATA


@dataclass(frozen=True, eq=False)
class _Way:
    """One way to compare the rankers: what counts as a stratum, and what the other parts of the log say for it."""

    test: Comparison
    curves: Curves
    rehearsal: Rehearsal
    strata: NDArray[np.int64] | None
    seen_queries: NDArray[np.int64]
    """Queries that the parts used in training have."""


def _best_way(
    log: AggregatedLog,
    pairs: RankingData,
    rankers: _Rankers,
    settings: CertifySettings,
    doubts: LogDoubts,
    examination: Floats | None,
) -> _Way:
    """Return the way to compare that promises the narrower bound on the validation part.

    If the ranker never changed, or is known, there is one: all interactions of a query together. If it changed, they
    are told apart by the stretches of time in which it did not; or, where no drift of demand was found, taken
    together with an allowance for what may have been missed.
    """

    def way(strata: NDArray[np.int64] | None, *, allow: bool = False) -> _Way:
        learning = held_out(log, LEARNING_PARTS, pairs, strata=strata)
        if learning.cells == 0:
            message = "the parts 'train' and 'validation' are empty, and the examination of ranks comes from them."
            raise DataError(f"{message} Choose another split, such as 20/20/60.", file=log.source)
        curves = curves_for(
            learning.statistics(), examination, trust=settings.trust_examination, within=strata is not None,
            fixed=BOUNDS[settings.bound].any_time, strict=strata is not None and doubts.may_drift,
            source=log.source,
        )  # fmt: skip
        validation, test = (
            rankers.compare(log, part, pairs, settings, strata=strata) for part in ("validation", "certify")
        )
        interactions = test.part.patterns.total_interactions
        if interactions == 0:
            message = "the part 'certify' of the log has no interaction; log more, or choose another split."
            raise DataError(message, file=log.source)
        if allow:
            whole, part = (held_out(log, parts, pairs, strata=doubts.stretches) for parts in (PARTS, ("certify",)))
            drift = possible_drift(whole, part, curves.curve, pairs.documents)
            validation, test = replace(validation, drift=drift), replace(test, drift=drift)
            curves = curves.with_powers(drift.at_most)
        any_time = BOUNDS[settings.bound].any_time  # the log may grow between looks, and the weights must not
        limit = (settings.most_weight or DEFAULT_WEIGHT) if any_time else settings.most_weight
        delta = settings.delta * settings.spent
        rehearsal = rehearse(validation, curves.curve, interactions, delta, most_weight=limit)
        return _Way(test, curves, rehearsal, strata, np.unique(learning.query))

    if doubts.stretches is None:
        return way(None)
    if doubts.may_drift:
        return way(doubts.stretches)
    together = way(None, allow=True)
    try:
        apart = way(doubts.stretches)
    except Refused:  # within a stretch, rankings do not vary enough to tell the curve
        return together
    return max(apart, together, key=lambda one: one.rehearsal.lower)


@dataclass(frozen=True, eq=False)
class _Rankers:
    """The new ranker and, if it is known, the one that made the log, on all pairs."""

    placement: Floats
    logging_placement: Floats | None
    listed: NDArray[np.bool_]
    """Pair -> whether the new ranker can show it."""
    ranked: NDArray[np.bool_]
    """Query -> whether the new ranker ranks it."""

    @classmethod
    def of(
        cls, ranker: NewRanker, pairs: RankingData, cutoff: int, logging_scores: NDArray[np.float32] | None
    ) -> _Rankers:
        data = ranker.data
        query_ids = pa.array(data.query_ids, pa.string())
        places = Places(pairs)
        rows = places.of_pairs(
            query_ids.take(pa.array(data.query_of_document)), pa.array(data.document_ids, pa.string())
        )
        chances = np.zeros((pairs.documents, cutoff))
        chances[rows] = ranker.placement(cutoff)
        listed = np.zeros(pairs.documents, np.bool_)
        listed[rows] = True
        ranked = np.zeros(pairs.queries, np.bool_)
        ranked[places.of_queries(query_ids)] = True
        known = None
        if logging_scores is not None:
            known = np.zeros((pairs.documents, cutoff))
            known[rows] = placement(logging_scores, data.offsets, cutoff)
        return cls(chances, known, listed, ranked)

    def compare(
        self,
        log: AggregatedLog,
        name: str,
        pairs: RankingData,
        settings: CertifySettings,
        *,
        strata: NDArray[np.int64] | None,
    ) -> Comparison:
        part = held_out(log, (name,), pairs, strata=strata)
        if _by_query(log):
            part = replace(part, patterns=replace(part.patterns, unit=part.query[part.patterns.query]))
        return Comparison(
            part,
            self.placement,
            self.ranked,
            pairs.offsets,
            self.logging_placement,
            clip=settings.clip,
            most_reward=float((log.manifest.get("reward") or {}).get("most", 1.0)),
        )


def _without_features(test: Comparison, rankers: _Rankers, curve: Floats) -> dict[str, float]:
    part = test.part
    lacking = ~rankers.listed[part.pair] & rankers.ranked[part.query][part.stratum]
    clicks, examined = part.clicked.sum(axis=1), part.shown @ curve
    unranked = ~rankers.ranked[part.query]
    return {
        "clicks": float(clicks[lacking].sum() / max(clicks.sum(), 1)),
        "exposure": float(examined[lacking].sum() / max(examined.sum(), 1e-300)),
        "interactions": float(part.interactions[unranked].sum() / max(part.interactions.sum(), 1)),
    }


def _by_query(log: AggregatedLog) -> bool:
    """Whether whole queries are held out: then a query is the unit, and the promise is about new ones."""
    return (log.manifest.get("split") or {}).get("by") == "query"


def _covers(log: AggregatedLog) -> str:
    period = log.manifest.get("period")
    when = "" if period is None else f", in the time of the log ({str(period[0])[:16]} to {str(period[1])[:16]})"
    when = f", at ranks 1 to {log.cutoff}{when}"
    if _by_query(log):
        return f"queries like those of the log, new ones included{when}"
    return f"the queries of the log, as often as they were issued in the held-out part{when}"


def _assumptions(settings: CertifySettings, curves: Curves, known: bool, by_period: bool) -> tuple[str, ...]:
    curve = GIVEN if curves.kind == UNCHECKED else EXAMINATION
    ranker = KNOWN if known else WITHIN if by_period else STABLE
    return (*BOUNDS[settings.bound].assumptions, curve, ranker)


FEW_CLICKS = 50.0
"""Effective clicks below which a verdict rests on very little."""


def _warnings(
    settings: CertifySettings,
    curves: Curves,
    missing: dict[str, float],
    ranker: NewRanker,
    test: Comparison,
    limit: float,
) -> tuple[str, ...]:
    found = []
    if curves.kind == UNCHECKED:
        found.append("the examination curve was given and trusted: this log cannot check it.")
    if test.drift is not None:
        found.append(
            "the ranker changed while the log was written. No drift of demand was found; the bounds allow for what the "
            f"log cannot exclude (relevance that varies by up to {test.drift.at_most:.0%} over time). Rankings drawn "
            "at random within the day would need no allowance."
        )
    if not BOUNDS[settings.bound].guarantee:
        found.append(f"the bound '{settings.bound}' promises nothing for a given number of interactions.")
    worth = test.effective_clicks(curves.curve, limit)
    if worth < FEW_CLICKS:
        found.append(f"the held-out clicks are worth only {worth:.0f} after weighting: log more.")
    if missing["clicks"] > 0 or missing["exposure"] > 0:
        why = "have no features" if ranker.complete else "are not listed"
        found.append(
            f"{missing['clicks']:.1%} of the clicks are on documents that {why}: the new ranker cannot earn them, and "
            "they count against it."
        )
    if missing["interactions"] > 0:
        found.append(
            f"{missing['interactions']:.1%} of the interactions are of queries that the new ranker does not rank: the "
            "promise holds if these keep their current ranking."
        )
    return tuple(found)
