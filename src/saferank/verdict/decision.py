"""The decision on held-out interactions: what the comparison of the rankers proves."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from saferank import __version__
from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.strata import by_query, counts_by_stratum
from saferank.engine.bounds.registry import BOUNDS
from saferank.engine.errors import UsageError
from saferank.logs.aggregated_log import PARTS
from saferank.logs.earlier_logs import described
from saferank.verdict.best_judge import best_judge
from saferank.verdict.certificate import Certificate, FlatterRow, Verdict
from saferank.verdict.checks import (
    Refused,
    check_cutoff,
    check_dated,
    check_features,
    check_listed,
    check_ranked,
)
from saferank.verdict.comparison import Comparison, Rankers
from saferank.verdict.curves import UNCHECKED
from saferank.verdict.details import with_details
from saferank.verdict.inputs import VerdictInputs
from saferank.verdict.known_ranker import check_known_ranker
from saferank.verdict.left_out import check_left_out
from saferank.verdict.log_doubts import LogDoubts, log_doubts
from saferank.verdict.needed import needed_to_decide
from saferank.verdict.settings import CertifySettings
from saferank.verdict.words import (
    CAPPED,
    EARLIER,
    EXAMINATION,
    GIVEN,
    KNOWN,
    NOT_IN_A_LOG,
    STABLE,
    UNSEEN,
    UNTIL,
    WITHIN,
    covers,
    few_large_units,
    warnings_of,
)

Floats = NDArray[np.float64]
TEMPERATURES = (1.25, 1.5, 2.0, 3.0)
"""Of the flatter policies that are tried, in this order."""
NEGLIGIBLE = 1e-6
"""Loss in clicks per interaction that may be rounding: no reason to say KEEP."""


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
        given=inputs.examination is not None,
    )
    rankers = Rankers(log, ranker, inputs.logging_scores)
    past = [one.statistics(PARTS, shown_pairs(one)) for one in inputs.earlier]
    judge, by_period, seen_queries = best_judge(rankers, settings, doubts, inputs.examination, past)
    test, curves, limit = judge.comparison, judge.curves, judge.limits[0]
    known = rankers.logging_placement is not None
    if rankers.logging_placement is not None:
        daily = counts_by_stratum(log, ("certify",), rankers.pairs, strata=np.arange(max(len(log.periods), 1)))
        check_known_ranker(
            daily, rankers.logging_placement, rankers.placement, rankers.pairs.offsets, log.periods, log.source
        )
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
    if verdict is Verdict.DEPLOY:
        check_left_out(doubts.left_out, rankers, test, curves.curve, lower, settings.tolerance)
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
        click_rate=test.click_rate,
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
        covers=covers(log, settings.most_per_unit, differences.interactions),
        low=differences.low,
        high=differences.high,
        most_weight=limit,
        standard_error=differences.standard_error,
        drift_allowance=test.allowance(curves.curve, limit),
        independence=independence,
        trained_until=until,
        needed=needed_to_decide(judge, lower, upper, settings.tolerance, log) if verdict is Verdict.MORE_DATA else None,
        unit="query" if by_query(log) else log.manifest.get("unit"),
        most_per_unit=settings.most_per_unit,
        reward=(log.manifest.get("reward") or {}).get("column"),
        doubts=doubts.doubts,
        assumptions=(
            *BOUNDS[settings.bound].assumptions,
            GIVEN if curves.kind == UNCHECKED else EXAMINATION,
            KNOWN if known else WITHIN if by_period else STABLE,
            *NOT_IN_A_LOG,
            *([] if settings.most_per_unit is None or by_query(log) else [CAPPED]),
            *([EARLIER] if inputs.earlier else []),
            *([] if independence is None else [UNSEEN if until is None else UNTIL.format(until)]),
        ),
        warnings=(
            *warnings_of(judge, worth, missing, ranker, changes=not lower == upper == 0.0),
            *(few_large_units(log, differences, settings) if verdict is Verdict.MORE_DATA else ()),
        ),
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
        try:
            found = certificate_of(replace(inputs, ranker=flatter), asked, doubts)
        except Refused:
            return
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
    if settings.most_per_unit is not None and unit is None and not by_query(log):
        raise UsageError("--most-per-unit needs units: give --unit COLUMN as well, or --split-by query.")
    if settings.most_per_unit is not None and settings.random_per_unit and inputs.logging_scores is None:
        raise UsageError(
            "--most-per-unit and --random-per-unit cannot both be given, unless the scores behind the rankings are "
            "known: exposure is counted over all interactions, and a user with many would distort it."
        )
    if (unit is not None or by_query(log)) and not BOUNDS[settings.bound].units:
        raise UsageError(f"the bound '{settings.bound}' cannot take units; choose one-look or betting.")


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
