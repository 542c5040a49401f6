"""Decide on held-out interactions whether a new ranker may replace the one that made the log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank import __version__
from saferank.certification.bounds import BOUNDS, check_bound
from saferank.certification.certificate import (
    BoundRow,
    Certificate,
    CurveRow,
    Needed,
    SegmentRow,
    Verdict,
)
from saferank.certification.checks import check_effective_clicks, check_features, check_known_ranker
from saferank.certification.comparison import Comparison
from saferank.certification.curves import OTHER_POWERS, UNCHECKED, Curves, curves_for
from saferank.certification.held_out import all_pairs, held_out
from saferank.certification.log_doubts import log_doubts
from saferank.certification.new_ranker import NewRanker
from saferank.data.aggregated_log import AggregatedLog, Places
from saferank.data.ranking_data import RankingData
from saferank.errors import DataError, UsageError
from saferank.plackett_luce import placement

Floats = NDArray[np.float64]
DIAL = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
LEARNING_PARTS = ("train", "validation")
WEIGHTS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""Limits of a weight to choose from."""
DEFAULT_WEIGHT = 100.0
"""Where the validation part is too small to choose."""
POWER = 0.8
"""Chance with which `Needed` interactions decide."""
NEW_QUERIES = 0.001
"""Share of the held-out interactions from which new queries are reported apart."""

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
    pairs = all_pairs(log, ranker.data)
    doubts = log_doubts(log, known=logging_scores is not None)
    both = _Rankers.of(ranker, pairs, log.cutoff, logging_scores)
    learning = held_out(log, LEARNING_PARTS, pairs, by_period=doubts.by_period)
    curves = curves_for(
        learning.statistics(),
        examination,
        trust=settings.trust_examination,
        within_periods=doubts.by_period,
        source=log.source,
    )
    rehearsal = both.compare(log, ("validation",), pairs, settings, by_period=doubts.by_period)
    test = both.compare(log, ("certify",), pairs, settings, by_period=doubts.by_period)
    interactions = test.part.patterns.total_interactions
    if interactions == 0:
        raise DataError(
            "the part 'certify' of the log has no interaction; log more, or split otherwise.", file=log.source
        )
    if both.logging_placement is not None:
        check_known_ranker(test.part, both.logging_placement, log.periods, log.source)
    missing = _without_features(test, both, curves.curve)
    if ranker.complete:
        check_features(missing["clicks"], missing["exposure"], source=log.source)
    limits = _weight_limits(rehearsal, curves, interactions, settings)
    guesses = tuple(rehearsal.differences(curves.curve, limit).variance for limit in limits)
    judge = _Judge(test, curves, limits, tuple(guess if guess > 0 else 1.0 for guess in guesses), settings.bound)
    check_effective_clicks(test.effective_clicks(curves.curve, limits[0]))

    delta = settings.delta * settings.spent
    lower, worst = judge.lower(delta)
    upper = judge.upper(delta)
    verdict = decide(lower, upper, settings.tolerance)
    differences = test.differences(curves.curve, limits[0])
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
        logging_exposure="counted" if both.logging_placement is None else "known",
        strata="query and period" if doubts.by_period else "query",
        examination={
            "kind": curves.kind,
            "unchecked": curves.kind == UNCHECKED,
            "curve": curves.curve.tolist(),
            "worst": worst.tolist(),
        },
        effective_clicks=test.effective_clicks(curves.curve, limits[0]),
        unsupported_exposure=test.unsupported(curves.curve),
        without_features=missing,
        covers=_covers(log),
        low=differences.low,
        high=differences.high,
        most_weight=limits[0],
        standard_error=differences.standard_error,
        needed=_needed(judge, delta, settings.tolerance, log) if verdict is Verdict.MORE_DATA else None,
        unit=log.manifest.get("unit"),
        reward=(log.manifest.get("reward") or {}).get("column"),
        doubts=doubts.doubts,
        assumptions=_assumptions(settings, curves, both.logging_placement is not None, doubts.by_period),
        warnings=_warnings(settings, curves, missing, ranker),
        inputs={"model": ranker.description, "log": log.manifest},
        saferank=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return _detailed(certificate, judge, settings, learning.query) if settings.details else certificate


def decide(lower: float, upper: float, tolerance: float) -> Verdict:
    """DEPLOY if surely at least -tolerance, KEEP if surely below it, else MORE DATA."""
    if lower >= -tolerance:
        return Verdict.DEPLOY
    return Verdict.KEEP if upper < -tolerance else Verdict.MORE_DATA


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
        parts: tuple[str, ...],
        pairs: RankingData,
        settings: CertifySettings,
        *,
        by_period: bool,
    ) -> Comparison:
        part = held_out(log, parts, pairs, by_period=by_period)
        if (log.manifest.get("split") or {}).get("by") == "query" and part.patterns.unit is None:
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


@dataclass(frozen=True, eq=False)
class _Judge:
    """The bounds of the improvement, lowest and highest over the curves that it has to hold for."""

    comparison: Comparison
    curves: Curves
    limits: tuple[float, float]
    """Largest weights, for the lower and for the upper bound."""
    guesses: tuple[float, ...]
    """Variances of a term, for the two, from other interactions."""
    bound: str

    def lower(self, delta: float, bound: str | None = None) -> tuple[float, Floats]:
        """Return the lower bound, and the curve that it is lowest for."""
        curves = self.curves.around(lambda curve: self.comparison.mean(curve, self.limits[0]), self._curve_delta(delta))
        found = [self._lower_at(curve, delta, bound) for curve in curves]
        worst = int(np.argmin(found))
        return found[worst], curves[worst]

    def upper(self, delta: float, bound: str | None = None) -> float:
        """Return the upper bound."""
        curves = self.curves.around(lambda curve: self.comparison.mean(curve, self.limits[1]), self._curve_delta(delta))
        found = []
        for curve in curves:
            negated = replace(self.comparison.differences(curve, self.limits[1]).negated(), guess=self.guesses[1])
            rest = self.comparison.rest(curve, self.limits[1])
            found.append(rest - BOUNDS[bound or self.bound].lower(negated, self._rest(delta)))
        return max(found)

    def at(self, curve: Floats, delta: float) -> tuple[float, float]:
        """Return the estimate and its lower bound if this were the curve."""
        return self.comparison.mean(curve, self.limits[0]), self._lower_at(curve, delta, None)

    def of(self, chosen: NDArray[np.bool_]) -> _Judge:
        """Return the judge of some of the interactions."""
        return replace(self, comparison=self.comparison.of(chosen))

    def _lower_at(self, curve: Floats, delta: float, bound: str | None) -> float:
        differences = replace(self.comparison.differences(curve, self.limits[0]), guess=self.guesses[0])
        return BOUNDS[bound or self.bound].lower(differences, self._rest(delta))

    def _curve_delta(self, delta: float) -> float:
        return max(self.curves.share(), 1e-9) * delta

    def _rest(self, delta: float) -> float:
        return (1.0 - self.curves.share()) * delta


def _weight_limits(
    rehearsal: Comparison, curves: Curves, interactions: int, settings: CertifySettings
) -> tuple[float, float]:
    """Choose the limits that give the narrowest bounds on the validation part, for as many interactions as there are.

    They are fixed before the held-out part is looked at, so any choice is allowed.
    """
    if settings.most_weight is not None:
        return settings.most_weight, settings.most_weight
    if BOUNDS[settings.bound].any_time:  # the log may grow between looks, and the weights must not
        return DEFAULT_WEIGHT, DEFAULT_WEIGHT
    there = rehearsal.part.patterns.total_interactions
    if there < 2:
        return DEFAULT_WEIGHT, DEFAULT_WEIGHT
    delta = settings.delta * settings.spent
    z = NormalDist().inv_cdf(1.0 - delta) * math.sqrt(there / interactions)
    lower, upper = [], []
    for limit in WEIGHTS:
        terms = rehearsal.differences(curves.curve, limit)
        lower.append(terms.mean - z * terms.standard_error)
        heavy = (
            terms.high * terms.largest_size * math.log(1.0 / delta) / (3.0 * interactions)
        )  # as in Bernstein's bound
        upper.append(terms.mean + rehearsal.rest(curves.curve, limit) + z * terms.standard_error + heavy)
    if not np.isfinite([lower, upper]).all():
        return DEFAULT_WEIGHT, DEFAULT_WEIGHT
    return WEIGHTS[int(np.argmax(lower))], WEIGHTS[int(np.argmin(upper))]


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


def _needed(judge: _Judge, delta: float, tolerance: float, log: AggregatedLog) -> Needed | None:
    """Widths fall like 1/sqrt(N). None if the estimate is within a standard error of what has to be proven."""
    lower, above = (judge.comparison.differences(judge.curves.curve, limit) for limit in judge.limits)
    rest = judge.comparison.rest(judge.curves.curve, judge.limits[1])
    normal = NormalDist()
    z = normal.inv_cdf(1.0 - delta) + normal.inv_cdf(POWER)
    if lower.mean + tolerance > lower.standard_error:
        margin, error, verdict = lower.mean + tolerance, lower.standard_error, Verdict.DEPLOY
    elif -(above.mean + rest + tolerance) > above.standard_error:
        margin, error, verdict = -(above.mean + rest + tolerance), above.standard_error, Verdict.KEEP
    else:
        return None
    interactions = lower.interactions
    fewest, most = (
        max(math.ceil(interactions * (z * error / (margin + sign * error)) ** 2), interactions + 1)
        for sign in (1.0, -1.0)
        if margin + sign * error > 0
    )
    per_day = _held_out_per_day(log, interactions)
    days = None if per_day is None else (fewest / per_day, most / per_day)
    return Needed(fewest, most, verdict.value, days)


def _held_out_per_day(log: AggregatedLog, interactions: int) -> float | None:
    period = log.manifest.get("period")
    if period is None:
        return None
    try:
        first, last = (datetime.fromisoformat(str(moment)) for moment in period)
        seconds = (last - first).total_seconds()
    except ValueError:
        try:
            seconds = float(period[1]) - float(period[0])
        except (TypeError, ValueError):
            return None
        seconds /= 1000.0 if float(period[1]) > 1e11 else 1.0
    if (log.manifest.get("split") or {}).get("by") == "time":
        seconds *= float(log.manifest["split"]["shares"][-1])
    return interactions / (seconds / 86400.0) if seconds > 0 else None


def _detailed(
    certificate: Certificate, judge: _Judge, settings: CertifySettings, seen_queries: NDArray[np.int64]
) -> Certificate:
    """Return the certificate with what is not needed for the verdict."""
    delta = settings.delta * settings.spent
    units = judge.comparison.part.patterns.unit is not None
    curve = judge.curves.curve
    curves = []
    for power in OTHER_POWERS:
        if power == 1.0:
            improvement, lower, name = certificate.improvement, certificate.lower, "as used"
        else:
            improvement, lower = judge.at(curve**power, delta)
            name = "all ranks alike" if power == 0.0 else f"to the power {power:g}"
        verdict = Verdict.DEPLOY.value if lower >= -settings.tolerance else "no DEPLOY"
        curves.append(CurveRow(name, float(curve[-1] ** power), improvement, lower, verdict))
    return replace(
        certificate,
        bounds=tuple(
            BoundRow(name, judge.lower(delta, name)[0], judge.upper(delta, name), bound.guarantee, bound.any_time)
            for name, bound in BOUNDS.items()
            if bound.units or not units
        ),
        delta_dial=tuple((each, judge.lower(each * settings.spent)[0]) for each in DIAL),
        other_curves=tuple(curves),
        segments=_segments(judge, delta),
        traffic=_traffic(judge, delta, seen_queries),
    )


def _segments(judge: _Judge, delta: float) -> tuple[SegmentRow, ...]:
    """Return the improvement in each segment, worst first; delta is shared out, so that all intervals hold together."""
    segment = judge.comparison.part.patterns.segment
    if segment is None:
        return ()
    names = np.unique(segment)
    rows = [_row(str(name), judge.of(segment == name), delta / len(names)) for name in names]
    return tuple(sorted(rows, key=lambda row: row.lower))


def _traffic(judge: _Judge, delta: float, seen_queries: NDArray[np.int64]) -> tuple[SegmentRow, ...]:
    """Return the improvement in queries that the training parts have, and in those that they do not have."""
    part = judge.comparison.part
    seen = np.isin(part.query, seen_queries)[part.patterns.query]
    new = float(part.patterns.interactions[~seen].sum()) / part.patterns.total_interactions
    if not NEW_QUERIES < new < 1.0:
        return ()
    named = (("queries seen in training", seen), ("new queries", ~seen))
    return tuple(_row(name, judge.of(chosen), delta / 2.0) for name, chosen in named)


def _row(name: str, judge: _Judge, delta: float) -> SegmentRow:
    differences = judge.comparison.differences(judge.curves.curve, judge.limits[0])
    return SegmentRow(name, differences.interactions, differences.mean, judge.lower(delta)[0], judge.upper(delta))


def _covers(log: AggregatedLog) -> str:
    split = (log.manifest.get("split") or {}).get("by")
    period = log.manifest.get("period")
    when = "" if period is None else f", in the time of the log ({str(period[0])[:16]} to {str(period[1])[:16]})"
    if split == "query":
        return f"queries like those of the log, new ones included{when}"
    return f"the queries of the log, as often as they were issued in the held-out part{when}"


def _assumptions(settings: CertifySettings, curves: Curves, known: bool, by_period: bool) -> tuple[str, ...]:
    curve = GIVEN if curves.kind == UNCHECKED else EXAMINATION
    ranker = KNOWN if known else WITHIN if by_period else STABLE
    return (*BOUNDS[settings.bound].assumptions, curve, ranker)


def _warnings(
    settings: CertifySettings, curves: Curves, missing: dict[str, float], ranker: NewRanker
) -> tuple[str, ...]:
    found = []
    if curves.kind == UNCHECKED:
        found.append("the examination curve was given and trusted: this log cannot check it.")
    if not BOUNDS[settings.bound].guarantee:
        found.append(f"the bound '{settings.bound}' promises nothing for a given number of interactions.")
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
