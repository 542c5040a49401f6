"""The examination curves that a verdict has to hold for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from saferank.certification.checks import Refused
from saferank.data.log_statistics import LogStatistics
from saferank.propensity.examination_estimate import ExaminationEstimate, estimate_examination

Floats = NDArray[np.float64]
CURVE_SHARE = 0.2
"""Share of delta that is spent on the curve where it is estimated."""
RANGE = 0.2
"""A given curve is taken to the powers 1 - RANGE to 1 + RANGE: so much steeper or flatter it may really be."""
OTHER_POWERS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Powers of the curve for which the certificate says what the verdict would be."""
CONTRADICTION = 1e-3
"""Level of the test of a given curve against the log."""
MARGIN = 0.1
"""Relative difference from the log's own curve that does not count as a contradiction."""
STEP = 1e-3
"""In log examination, for the derivative of the estimate."""

ESTIMATED, AGREES, UNCHECKED = "estimated", "given, and the log agrees", "given, and the log cannot check it"


@dataclass(frozen=True, eq=False)
class Curves:
    """A curve, and how wrong it may be."""

    kind: str
    curve: Floats
    """1 at rank 1."""
    covariance: Floats | None = None
    """Of the logarithm of `curve`; None if it is not estimated."""
    others: tuple[Floats, ...] = ()
    """Further curves that the verdict has to hold for."""

    def share(self) -> float:
        """Share of delta that goes to the curve."""
        return 0.0 if self.covariance is None else CURVE_SHARE

    def around(self, improvement: Callable[[Floats], float], delta: float) -> list[Floats]:
        """Return the curves to hold for: the curve, `others`, and the two ends of the confidence set at level delta.

        What matters of an estimated curve is the one number that is computed from it. Its standard error follows from
        the covariance and the derivative; the ends of the set are the curves that move it most:

            log curve -+ z C g / sqrt(g' C g),    g = d improvement / d log curve
        """
        curves = [self.curve, *self.others]
        if self.covariance is None:
            return curves
        logs = np.log(self.curve)
        slope = np.zeros(len(logs))
        for rank in range(1, len(logs)):
            moved = np.zeros(len(logs))
            moved[rank] = STEP
            slope[rank] = (improvement(np.exp(logs + moved)) - improvement(np.exp(logs - moved))) / (2.0 * STEP)
        direction = self.covariance @ slope
        length = math.sqrt(max(float(slope @ direction), 0.0))
        if length == 0.0:
            return curves
        step = NormalDist().inv_cdf(1.0 - delta) * direction / length
        return [*curves, np.exp(logs - step), np.exp(logs + step)]


def curves_for(
    counts: LogStatistics,
    given: Floats | None,
    *,
    trust: bool = False,
    source: object = None,
    seed: int = 0,
) -> Curves:
    """Return what the verdict has to hold for, from counts that are not held out and the curve that was given, if any.

    Raises `Refused` if the log contradicts the given curve; and if neither the log tells the curve nor the caller
    trusts the one given.
    """
    estimate = estimate_examination(counts, np.random.default_rng(seed))
    known = estimate.complete and estimate.log_covariance is not None
    if given is None:
        if not known:
            raise Refused(
                "the log does not tell how often each rank is looked at: too few documents were shown and clicked at "
                "several ranks. Rankings have to vary: swap neighbours at random now and then. If you know the curve, "
                "give it (--examination) and say so (--trust-examination).",
                code="examination-unknown",
                file=source,
            )
        return Curves(ESTIMATED, estimate.curve, estimate.log_covariance)
    if not (given > 0).all():
        raise Refused("an examination of 0 cannot be certified with; give a smaller --cutoff.", code="examination-zero")
    relative = given / given[0]
    others = tuple(relative ** (1.0 + sign * RANGE) for sign in (-1.0, 1.0))
    if known:
        _check_agrees(estimate, relative, source)
        return Curves(AGREES, estimate.curve, estimate.log_covariance, (relative, *others))
    if not trust:
        raise Refused(
            "the examination curve was given, and this log cannot check it: each document was shown at one rank only, "
            "or nearly so. A wrong curve makes a worse ranker look better. Let rankings vary, or say that you know the "
            "curve (--trust-examination); the certificate will say so.",
            code="examination-unchecked",
            file=source,
        )
    return Curves(UNCHECKED, relative, None, others)


def _check_agrees(estimate: ExaminationEstimate, given: Floats, source: object) -> None:
    assert estimate.log_covariance is not None
    off = np.log(given) - np.log(estimate.curve)
    spread = np.sqrt(np.diag(estimate.log_covariance))[1:]
    apart = np.abs(off[1:]) - math.log1p(MARGIN)
    level = NormalDist().inv_cdf(1.0 - CONTRADICTION / (2.0 * max(len(given) - 1, 1)))
    bad = np.flatnonzero(apart > level * spread)
    if len(bad):
        rank = int(bad[np.argmax(apart[bad])]) + 1
        raise Refused(
            f"the log contradicts the examination curve: rank {rank + 1} was given as {given[rank]:.2f} of rank 1, and "
            f"the log says {estimate.curve[rank]:.2f} ({estimate.low[rank]:.2f} to {estimate.high[rank]:.2f}); leave "
            "--examination out when you fit, or find out why they differ.",
            code="examination-contradicted",
            file=source,
        )
