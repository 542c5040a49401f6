"""The decision on held-out interactions: which interactions are compared, by which curves, and what that proves."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from saferank import __version__
from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.strata import by_query, counts_by_stratum
from saferank.engine.bounds.registry import BOUNDS, check_bound
from saferank.engine.errors import DataError, UsageError
from saferank.engine.types.log_statistics import LogStatistics, stacked
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.logs.earlier_logs import described
from saferank.logs.periods import moment_text
from saferank.verdict.certificate import Certificate, FlatterRow, Verdict
from saferank.verdict.checks import (
    Refused,
    check_cutoff,
    check_dated,
    check_features,
    check_known_ranker,
    check_listed,
    check_ranked,
)
from saferank.verdict.comparison import Comparison, Rankers
from saferank.verdict.curves import UNCHECKED, curves_for
from saferank.verdict.details import with_details
from saferank.verdict.inputs import VerdictInputs
from saferank.verdict.judge import DEFAULT_WEIGHT, Judge, prepare_judge
from saferank.verdict.log_doubts import LogDoubts, log_doubts
from saferank.verdict.needed import needed_to_decide
from saferank.verdict.new_ranker import NewRanker
from saferank.verdict.possible_drift import possible_drift, possible_drift_by_hour

Floats = NDArray[np.float64]
LEARNING_PARTS = ("train", "validation")
EXAMINATION = "the examination of the ranks is as estimated from the log, within its confidence set"
GIVEN = "the examination of the ranks is as it was given, within the range stated"
KNOWN = "the current ranker draws rankings with Plackett-Luce from the scores given"
STABLE = "the relevance of a document did not change while the ranker changed"
EARLIER = "one ranker made each earlier log, and its users examined the ranks as the users of this log do"
WITHIN = "the relevance of a document did not change within a period"
UNSEEN = "the ranker was made without the held-out part of the log, as its maker states"
UNTIL = "the ranker was made from nothing after {}, as its maker states; only later interactions are evaluated"
TEMPERATURES = (1.25, 1.5, 2.0, 3.0)
"""Of the flatter policies that are tried, in this order."""
NEGLIGIBLE = 1e-6
"""Loss in clicks per interaction that may be rounding: no reason to say KEEP."""
FEW_TIED = 0.01
"""Share of the exposure on documents with equal scores that goes without saying."""
FEW_CLICKS = 50.0
"""Effective clicks below which a verdict rests on very little."""


@dataclass(frozen=True)
class CertifySettings:
    """What to ask of a certificate; the defaults of `certify` and of `saferank certify`."""

    delta: float = 0.05
    """Accepted probability of a wrong DEPLOY."""
    tolerance: float = 0.0
    """Accepted loss, in clicks per interaction."""
    bound: str = "one-look"
    """Name of the confidence bound: see `engine.bounds.registry`."""
    clip: float = 0.0
    """Smallest logging exposure; lower values are raised to it, which lowers the estimate and its variance."""
    most_weight: float | None = None
    """Largest weight of a click; chosen on the validation part if None."""
    trust_examination: bool = False
    """Whether to trust a given curve that the log cannot check."""
    trust_stability: bool = False
    """Whether to trust that ranker and demand did not change, if the log has no timestamps."""
    trust_candidates: bool = False
    """Whether to trust that any candidate could be shown in every impression, though lists come in kinds."""
    random_per_unit: bool = False
    """Whether rankings that differ between users were drawn at random, and not personalised."""
    spent: float = 1.0
    """Share of delta for this look: see `Ledger`."""
    look: int = 1
    explore: bool = False
    """Whether to try flatter policies too, if rankings are drawn and the verdict is DEPLOY."""
    details: bool = True
    """Whether to add what the verdict does not need: other bounds, curves and deltas, and segments."""

    def __post_init__(self) -> None:
        check_bound(self.bound, self.delta)
        if not 0.0 <= self.tolerance < math.inf:
            raise UsageError(f"tolerance is an accepted loss and must be 0 or more; got {self.tolerance}.")
        if self.clip < 0.0:
            raise UsageError(f"clip is an exposure and must be 0 or more; got {self.clip}.")
        if self.most_weight is not None and not self.most_weight >= 1.0:
            raise UsageError(f"the largest weight must be 1 or more; got {self.most_weight}.")


def decide(lower: float, upper: float, tolerance: float) -> Verdict:
    """DEPLOY if the improvement is proven to be at least -tolerance, KEEP if proven below it, else MORE DATA."""
    if lower >= -tolerance:
        return Verdict.DEPLOY
    return Verdict.KEEP if upper < -tolerance - NEGLIGIBLE else Verdict.MORE_DATA


def certificate_of(inputs: VerdictInputs, settings: CertifySettings, doubts: LogDoubts | None = None) -> Certificate:
    """Return the verdict on the part `certify` of the log, at level settings.delta * settings.spent.

    `doubts`: those about this log, if they are known already.
    """
    log, ranker = inputs.log, inputs.ranker
    _check_call(inputs, settings)
    check_cutoff(log.manifest)
    check_dated(log, known=inputs.logging_scores is not None, trust=settings.trust_stability)
    doubts = doubts or log_doubts(
        log,
        ranker.data if ranker.complete else None,
        known=inputs.logging_scores is not None,
        random_per_unit=settings.random_per_unit,
        trust_candidates=settings.trust_candidates,
    )
    rankers = Rankers(log, ranker, inputs.logging_scores)
    past = [one.statistics(PARTS, shown_pairs(one)) for one in inputs.earlier]
    judge, by_period, seen_queries = _best_judge(rankers, settings, doubts, inputs.examination, past)
    test, curves, limit = judge.comparison, judge.curves, judge.limits[0]
    known = rankers.logging_placement is not None
    if rankers.logging_placement is not None:
        daily = counts_by_stratum(log, ("certify",), rankers.pairs, strata=np.arange(max(len(log.periods), 1)))
        check_known_ranker(daily, rankers.logging_placement, log.periods, log.source)
    missing = _missing(test, rankers, curves.curve)
    check_ranked(missing["interactions"], source=log.source)
    check_listed(log, ranker.data)
    if ranker.complete:
        check_features(missing["clicks"], missing["exposure"], source=log.source)

    until = inputs.trained_until
    independence = "trained-until" if until is not None else "stated" if ranker.made_elsewhere else None
    delta = settings.delta * settings.spent
    lower, worst = judge.lower(delta)
    upper = judge.upper(delta)
    verdict = decide(lower, upper, settings.tolerance)
    differences = test.differences(curves.curve, limit)
    worth = test.effective_clicks(curves.curve, limit)
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
        interactions=differences.interactions,
        click_rate=float(test.part.rewards.sum()) / differences.interactions,
        logging_exposure="known" if known else "counted",
        strata="query and period" if by_period else "query",
        examination={
            "kind": curves.kind,
            "unchecked": curves.kind == UNCHECKED,
            "curve": curves.curve.tolist(),
            "worst": worst.tolist(),
        },
        effective_clicks=worth,
        unsupported_exposure=test.unsupported(curves.curve),
        without_features=missing,
        covers=_covers(log),
        low=differences.low,
        high=differences.high,
        most_weight=limit,
        standard_error=differences.standard_error,
        drift_allowance=test.allowance(curves.curve, limit),
        independence=independence,
        trained_until=until,
        needed=needed_to_decide(judge, lower, upper, settings.tolerance, log) if verdict is Verdict.MORE_DATA else None,
        unit="query" if by_query(log) else log.manifest.get("unit"),
        reward=(log.manifest.get("reward") or {}).get("column"),
        doubts=doubts.doubts,
        assumptions=(
            *BOUNDS[settings.bound].assumptions,
            GIVEN if curves.kind == UNCHECKED else EXAMINATION,
            KNOWN if known else WITHIN if by_period else STABLE,
            *([EARLIER] if inputs.earlier else []),
            *([] if independence is None else [UNSEEN if until is None else UNTIL.format(until)]),
        ),
        warnings=tuple(_warnings(judge, worth, missing, ranker, changes=not lower == upper == 0.0)),
        inputs={"model": ranker.description, "log": log.manifest}
        | ({"earlier": [described(one.manifest) for one in inputs.earlier]} if inputs.earlier else {}),
        saferank=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if settings.explore and verdict is Verdict.DEPLOY and ranker.serve_as == "sampled":
        certificate = replace(certificate, exploration=tuple(_flatter(inputs, settings, doubts)))
    return with_details(certificate, judge, seen_queries) if settings.details else certificate


def _flatter(inputs: VerdictInputs, settings: CertifySettings, doubts: LogDoubts) -> Iterator[FlatterRow]:
    """Yield the flatter policies that are proven, in order, up to the first that is not.

    All are tested at the level of the policy itself, in an order that is fixed beforehand, and each only if all before
    it were proven. A wrong DEPLOY among them begins with the first one that is worse than the current ranker, and that
    one is proven with probability at most delta.
    """
    for temperature in TEMPERATURES:
        flatter = replace(inputs.ranker, scores=inputs.ranker.scores / np.float32(temperature))
        asked = replace(settings, explore=False, details=False)
        found = certificate_of(replace(inputs, ranker=flatter), asked, doubts)
        if found.verdict is not Verdict.DEPLOY:
            return
        yield FlatterRow(temperature, found.improvement, found.lower)


def _check_call(inputs: VerdictInputs, settings: CertifySettings) -> None:
    log = inputs.log
    for curve in (inputs.examination, inputs.ranker.examination):
        if curve is not None and len(curve) != log.cutoff:
            raise UsageError(
                f"the log is counted for {log.cutoff} ranks, but the model is for {len(curve)}; aggregate the log with "
                "that cutoff."
            )
    unit = log.manifest.get("unit")
    if by_query(log) and unit is not None:
        raise UsageError(f"the log is split by query, but its units ({unit}) span queries; choose one of the two.")
    if (unit is not None or by_query(log)) and not BOUNDS[settings.bound].units:
        raise UsageError(f"the bound '{settings.bound}' cannot take units; choose one-look or betting.")


def _best_judge(
    rankers: Rankers,
    settings: CertifySettings,
    doubts: LogDoubts,
    examination: Floats | None,
    past: Sequence[LogStatistics] = (),
) -> tuple[Judge, bool, NDArray[np.int64]]:
    """Return the judge that expects the higher lower bound, whether it compares by period, and the training queries.

    If the ranker never changed, or is known, all interactions of a query are taken together. If it changed, they are
    separated by the stretches of time in which it did not; or, where neither a drift of demand was found nor documents
    that come and go, taken together with an allowance for what may have been missed. There is a further allowance if it
    follows the hour of the day. `past` logs, each of a ranker that did not change, add to what the examination of the
    ranks is estimated from, unless stretches are separated.
    """
    log, pairs = rankers.log, rankers.pairs
    any_time = BOUNDS[settings.bound].any_time
    # with an any-time bound the log may grow between looks, and the limit must not depend on it
    limit = (settings.most_weight or DEFAULT_WEIGHT) if any_time else settings.most_weight

    def judge(strata: NDArray[np.int64] | None, *, allow: bool = False) -> tuple[Judge, bool, NDArray[np.int64]]:
        by_period = strata is not None
        learning = counts_by_stratum(log, LEARNING_PARTS, pairs, strata=strata)
        if learning.cells == 0:
            message = "the parts 'train' and 'validation', from which examination is estimated, are empty."
            raise DataError(f"{message} Choose another split, such as 20/20/60.", file=log.source)
        counts = stacked([learning.statistics(), *([] if by_period else past)])
        curves = curves_for(
            counts, examination, trust=settings.trust_examination, within=by_period, fixed=any_time,
            strict=by_period and doubts.may_drift, source=log.source,
        )  # fmt: skip
        validation, test = (rankers.compare(name, strata, settings.clip) for name in ("validation", "certify"))
        if test.part.patterns.total_interactions == 0:
            message = "the part 'certify' of the log has no interactions; log more, or choose another split."
            raise DataError(message, file=log.source)
        drifts = []
        if allow:
            whole, part = (
                counts_by_stratum(log, parts, pairs, strata=doubts.stretches) for parts in (PARTS, ("certify",))
            )
            drifts.append(possible_drift(whole, part, curves.curve, pairs.documents))
        if doubts.by_hour:
            drifts.append(possible_drift_by_hour(log, pairs, curves.curve))
        validation, test = (replace(one, drifts=tuple(drifts)) for one in (validation, test))
        for drift in drifts:
            curves = curves.with_powers(drift.at_most)
        delta = settings.delta * settings.spent
        found = prepare_judge(validation, test, curves, settings.bound, delta, most_weight=limit)
        return found, by_period, np.unique(learning.query)

    if doubts.stretches is None:
        return judge(None)
    if doubts.may_drift:
        return judge(doubts.stretches)
    together = judge(None, allow=True)
    try:
        apart = judge(doubts.stretches)
    except Refused:  # within a stretch, rankings do not vary enough to estimate the curve
        return together
    if doubts.come_and_go:
        return apart
    return max(apart, together, key=lambda one: one[0].expected_lower)


def _missing(test: Comparison, rankers: Rankers, curve: Floats) -> dict[str, float]:
    """Return the shares of the held-out part that the new ranker cannot show, or does not rank."""
    part = test.part
    lacking = ~rankers.listed[part.pair] & rankers.ranked[part.query][part.stratum]
    clicks, examined = part.clicked.sum(axis=1), part.shown @ curve
    unranked = ~rankers.ranked[part.query]
    return {
        "clicks": float(clicks[lacking].sum() / max(clicks.sum(), 1)),
        "exposure": float(examined[lacking].sum() / max(examined.sum(), 1e-300)),
        "interactions": float(part.interactions[unranked].sum() / max(part.interactions.sum(), 1)),
    }


def _covers(log: AggregatedLog) -> str:
    period = log.manifest.get("period")
    when = ""
    if period is not None:
        begin = (log.manifest.get("split") or {}).get("until", period[0])
        when = f", in the time of the log ({moment_text(begin)[:16]} to {moment_text(period[1])[:16]})"
    which = "the queries of the log, as often as they were issued in the held-out part"
    if by_query(log):
        which = "queries like those of the log, new ones included"
    return f"{which}, at ranks 1 to {log.cutoff}{when}"


def _warnings(judge: Judge, worth: float, missing: dict[str, float], ranker: NewRanker, *, changes: bool) -> list[str]:
    found = []
    if judge.curves.kind == UNCHECKED:
        found.append("the examination curve was given and is trusted; this log cannot check it.")
    for drift in judge.comparison.drifts:
        changed, when = "changed while the log was written", "over time"
        if drift.by_hour:
            changed, when = "follows the hour of the day", "with the hour"
        found.append(
            f"the ranker {changed}. No drift of demand was found, but the bounds allow for what the log cannot exclude "
            f"(relevance that varies by up to {drift.at_most:.0%} {when}). With rankings drawn at random "
            f"{'from the same scores all day' if drift.by_hour else 'within the day'}, no allowance is needed."
        )
    if not BOUNDS[judge.bound].guarantee:
        found.append(f"the bound '{judge.bound}' promises nothing for a given number of interactions.")
    if worth < FEW_CLICKS and changes:
        found.append(f"after weighting, the held-out clicks are worth only {worth:.0f}: log more.")
    if missing["clicks"] > 0 or missing["exposure"] > 0:
        why = "have no features" if ranker.complete else "are not listed"
        found.append(
            f"{missing['clicks']:.1%} of the clicks are on documents that {why}; the new ranker cannot earn these "
            "clicks, so they count against it."
        )
    if missing["interactions"] > 0:
        found.append(
            f"{missing['interactions']:.1%} of the interactions belong to queries that the new ranker does not rank; "
            "the promise holds if these queries keep their current ranking."
        )
    if (tied := ranker.tied(judge.curves.curve)) > FEW_TIED:
        found.append(
            f"{tied:.0%} of the exposure goes to documents with the same score as another of their query. They are "
            "assumed to be shown in random order: make scores differ if production orders them in another way."
        )
    return found
