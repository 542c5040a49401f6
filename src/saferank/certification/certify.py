"""Decide on held-out interactions whether a policy may replace the one that made the log."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from saferank import __version__
from saferank.certification.betting import Bets, betting, planned_bets, spread_bets
from saferank.certification.bounds import BOUNDS, interval
from saferank.certification.certificate import BoundRow, Certificate, SegmentRow, Verdict
from saferank.certification.checks import (
    check_effective_clicks,
    check_same_ranker,
    check_support,
    check_untouched,
)
from saferank.certification.differences import Differences, paired_differences
from saferank.data.aggregated_log import AggregatedLog
from saferank.data.click_patterns import ClickPatterns
from saferank.data.ranking_data import RankingData, content_hash
from saferank.errors import DataError, UsageError
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs, served_exposure
from saferank.propensity.logging_exposure import (
    cautious_logging_exposure,
    estimated_logging_exposure,
    known_logging_exposure,
)

Floats = NDArray[np.float64]
DIAL = (0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
LEARNING_PARTS = ("train", "validation")
EXAMINATION = "the examination of the ranks is as the model has it"
KNOWN = "the logging policy is Plackett-Luce with the scores given"
COUNTED = (
    "the logging exposure was counted in the parts that training used: with few interactions a query it is rough, and "
    "where training took advantage of its errors the bound is too high"
)


@dataclass(frozen=True)
class CertifySettings:
    """What to ask of the certificate."""

    delta: float = 0.05
    tolerance: float = 0.0
    """Loss in clicks per interaction that is still accepted."""
    bound: str = "betting"
    serve_as: ServeAs = "deterministic"
    clip: float = 0.0
    """Logging exposure is raised to this at least: lowers the estimate, and its variance."""

    def __post_init__(self) -> None:
        if self.bound not in BOUNDS:
            raise UsageError(f"bound '{self.bound}' is unknown; choose one of: {', '.join(BOUNDS)}.")
        if not 0.0 < self.delta < 1.0:
            raise UsageError(f"delta is the chance that the bound may fail, between 0 and 1; got {self.delta}.")
        if not 0.0 <= self.tolerance < math.inf:
            raise UsageError(f"tolerance is a loss that is accepted, from 0 up; got {self.tolerance}.")


@dataclass(frozen=True, eq=False)
class Weighing:
    """How held-out clicks are weighed: fixed before any of them is looked at, and the same at every look."""

    exposure: Floats
    logging_exposure: Floats
    examination: Floats
    kind: str
    """`known` or `counted`."""
    plain_exposure: Floats
    """Logging exposure for the upper bound: as counted, without caution. The same where it is known."""
    ever_shown: NDArray[np.bool_]
    """Documents that the log can say something about."""
    bets: Bets

    def differences(self, patterns: ClickPatterns, offsets: NDArray[np.int64], clip: float) -> Differences:
        """Return the differences of these interactions, not too large in expectation: for a lower bound."""
        return paired_differences(patterns, offsets, self.exposure, self.logging_exposure, self.examination, clip=clip)

    def interval(
        self, patterns: ClickPatterns, offsets: NDArray[np.int64], settings: CertifySettings
    ) -> Callable[[float, str], tuple[float, float]]:
        """Return the function from delta and the name of a bound to the lower and the upper bound.

        The upper one takes exposure as it was counted, whose inverse is not too small in expectation.
        """
        cautious = self.differences(patterns, offsets, settings.clip)
        plain = replace(self, logging_exposure=self.plain_exposure).differences(patterns, offsets, settings.clip)
        return lambda delta, bound: (
            bounds_of(cautious, delta, bound, self.bets)[0],
            bounds_of(plain, delta, bound, self.bets)[1],
        )


def weigh(
    policy: Policy,
    log: AggregatedLog,
    data: RankingData,
    settings: CertifySettings,
    *,
    logging_scores: NDArray[np.float32] | None = None,
) -> Weighing:
    """Fix how clicks will be weighed, from the policies and the parts of the log that training used.

    Where the scores of the logging policy are not known, its exposure is counted in those parts, cautiously: see
    `cautious_logging_exposure`. The validation part also tells how to bet: about how large the variance is.
    """
    if log.cutoff != policy.cutoff:
        raise UsageError(
            f"the log is counted for {log.cutoff} ranks, but the model is for {policy.cutoff}; aggregate it with that "
            "cutoff."
        )
    exposure = served_exposure(policy.scores(data), data.offsets, policy.examination, settings.serve_as)
    counts = log.statistics(LEARNING_PARTS, data)
    if logging_scores is None:
        kind, logging_exposure = "counted", cautious_logging_exposure(counts, policy.examination)
        plain = estimated_logging_exposure(counts, policy.examination)
        plain = np.where(plain > 0, plain, logging_exposure)
        ever_shown = counts.impressions > 0
    else:
        kind, logging_exposure = "known", known_logging_exposure(logging_scores, data.offsets, policy.examination)
        plain, ever_shown = logging_exposure, logging_exposure > 1e-9
    weighing = Weighing(exposure, logging_exposure, policy.examination, kind, plain, ever_shown, spread_bets())
    rehearsal = weighing.differences(log.click_patterns("validation", data), data.offsets, settings.clip)
    held_out = log.manifest.get("parts", {}).get("certify", {}).get("interactions") or rehearsal.interactions
    variance = rehearsal.variance if rehearsal.interactions > 1 else 1.0
    return replace(weighing, bets=planned_bets(int(held_out), max(variance, 1e-12), rehearsal.low, settings.delta))


def certify(
    policy: Policy,
    log: AggregatedLog,
    data: RankingData,
    settings: CertifySettings = CertifySettings(),  # noqa: B008 (frozen)
    *,
    logging_scores: NDArray[np.float32] | None = None,
    weighing: Weighing | None = None,
) -> Certificate:
    """Return the verdict on the part `certify` of the log.

    DEPLOY if the improvement is at least -tolerance, with confidence 1 - delta; KEEP if it is below, with the same
    confidence; MORE DATA otherwise. Raises `Refused` where no guarantee can be given. `weighing`: as it was at the
    first look, if the log has been looked at before.
    """
    check_untouched(policy.manifest, log.manifest)
    weighing = weighing or weigh(policy, log, data, settings, logging_scores=logging_scores)
    held_out = log.statistics("certify", data)
    if held_out.total_interactions == 0:
        raise DataError("the part 'certify' of the log has no interaction with these queries.", file=log.source)
    if logging_scores is None:
        check_same_ranker(held_out, earlier=log.statistics(LEARNING_PARTS, data), source=log.source)
    else:
        chances = known_logging_exposure(logging_scores, data.offsets, [1.0])
        check_same_ranker(held_out, chances=chances, source=log.source)
    patterns = log.click_patterns("certify", data)
    differences = weighing.differences(patterns, data.offsets, settings.clip)
    issued = np.repeat(held_out.interactions, data.lengths) * weighing.exposure
    unsupported = float(issued[~weighing.ever_shown].sum() / max(issued.sum(), 1e-300))
    check_support(unsupported)
    effective = effective_clicks(held_out.clicks, weighing, settings.clip)
    check_effective_clicks(effective)
    bounds = weighing.interval(patterns, data.offsets, settings)
    lower, upper = bounds(settings.delta, settings.bound)
    verdict = decide(lower, upper, settings.tolerance)
    return Certificate(
        verdict=verdict,
        improvement=differences.mean,
        lower=lower,
        upper=upper,
        delta=settings.delta,
        tolerance=settings.tolerance,
        bound=settings.bound,
        serve_as=settings.serve_as,
        interactions=differences.interactions,
        click_rate=float(held_out.clicks.sum() / held_out.total_interactions),
        needed_interactions=needed_interactions(differences, lower, upper, settings.tolerance)
        if verdict is Verdict.MORE_DATA
        else None,
        logging_exposure=weighing.kind,
        effective_clicks=effective,
        unsupported_exposure=unsupported,
        low=differences.low,
        high=differences.high,
        bounds=tuple(
            BoundRow(name, *bounds(settings.delta, name), bound.guarantee, bound.any_time)
            for name, bound in BOUNDS.items()
        ),
        delta_dial=tuple((delta, bounds(delta, settings.bound)[0]) for delta in DIAL),
        segments=segment_rows(patterns, weighing, data.offsets, settings),
        assumptions=(*BOUNDS[settings.bound].assumptions, EXAMINATION, KNOWN if weighing.kind == "known" else COUNTED),
        warnings=_warnings(differences, weighing, settings),
        inputs={
            "model": {name: policy.manifest.get(name) for name in ("saferank", "files", "settings", "used_parts")},
            "log": log.manifest,
            "features": {
                "source": data.source,
                "sha256": content_hash(data),
                "queries": data.queries,
                "documents": data.documents,
            },
        },
        saferank=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def bounds_of(differences: Differences, delta: float, bound: str, bets: Bets) -> tuple[float, float]:
    """Return lower and upper bound; betting with the bets that were fixed beforehand."""
    if bound != "betting":
        return interval(differences, delta, bound)
    return betting(differences, delta, bets), -betting(differences.negated(), delta)


def decide(lower: float, upper: float, tolerance: float) -> Verdict:
    """DEPLOY if surely at least -tolerance, KEEP if surely below it, else MORE DATA."""
    if lower >= -tolerance:
        return Verdict.DEPLOY
    return Verdict.KEEP if upper < -tolerance else Verdict.MORE_DATA


def needed_interactions(differences: Differences, lower: float, upper: float, tolerance: float) -> int | None:
    """Return how many held-out interactions would probably decide: widths fall like 1/sqrt(N). None if not to be said.

    Taken at the estimate itself, which is uncertain: an order of magnitude.
    """
    margin = differences.mean + tolerance
    width = differences.mean - lower if margin > 0 else upper - differences.mean
    if margin == 0.0 or width / abs(margin) > 1e4:
        return None
    needed = math.ceil(differences.interactions * (width / margin) ** 2)
    return needed if needed > differences.interactions else None  # estimate and bound lean to different sides


def effective_clicks(clicks: NDArray[np.int64], weighing: Weighing, clip: float) -> float:
    """Kish's (sum w)^2 / sum w^2 over the held-out clicks, w = rho/rho_0: how many equal clicks they are worth."""
    raised = np.maximum(weighing.logging_exposure, clip)
    weights = np.divide(weighing.exposure, raised, out=np.zeros(len(raised)), where=raised > 0)
    squares = float(clicks @ np.square(weights))
    return float(clicks @ weights) ** 2 / squares if squares > 0 else 0.0


def segment_rows(
    patterns: ClickPatterns, weighing: Weighing, offsets: NDArray[np.int64], settings: CertifySettings
) -> tuple[SegmentRow, ...]:
    """Return the improvement in each segment, worst first; delta is shared out, so that all intervals hold together."""
    if patterns.segment is None:
        return ()
    names = np.unique(patterns.segment)
    rows = []
    for name in names:
        some = patterns.subset(patterns.segment == name)
        differences = weighing.differences(some, offsets, settings.clip)
        lower, upper = weighing.interval(some, offsets, settings)(settings.delta / len(names), settings.bound)
        rows.append(SegmentRow(str(name), differences.interactions, differences.mean, lower, upper))
    return tuple(sorted(rows, key=lambda row: row.lower))


def _warnings(differences: Differences, weighing: Weighing, settings: CertifySettings) -> tuple[str, ...]:
    found = []
    if not BOUNDS[settings.bound].guarantee:
        found.append(f"the bound '{settings.bound}' promises nothing for a given number of interactions.")
    if weighing.kind == "counted":
        found.append(
            "the logging policy's exposure was counted, not known, so the estimate is cautious: too low, above all "
            "with few interactions a query. With --logging-scores it would be exact."
        )
    if differences.clipped_clicks > 0:
        found.append(f"{differences.clipped_clicks:.1%} of the clicks were weighed down by --clip; KEEP is not proven.")
    return tuple(found)
