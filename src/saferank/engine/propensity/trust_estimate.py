"""Trust bias estimated from documents that a log shows at several ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.trust_bias import TrustBias
from saferank.engine.errors import UsageError
from saferank.engine.types.log_statistics import LogStatistics

Floats = NDArray[np.float64]
LEAST_EVIDENCE = 0.01
"""p-value above which clicks are taken to be position-based."""
LEAST_SLOPE = 0.1
"""As a share of the position-based one: noise must not make an alpha 0 or negative."""
ITERATIONS = 50
FURTHEST = 1e3
"""A longer step than this leads nowhere."""


def estimate_trust(log: LogStatistics, *, position_based: bool = False) -> TrustBias:
    """Estimate alpha and beta, normalised, from one straight line per rank k > 1, over documents.

        ctr(d, k) = a_k R(d) + b_k,    R(d) = ctr(d, 1),    a_k = alpha_k / alpha_1,    b_k = beta_k - a_k beta_1

    R(d) is estimated from all ranks of the document, by weighted least squares. With e = ctr - a R - b, w = shown / v_k
    for clicks of variance v_k, and z(d) = R(d) less its mean, shrunk by its noise, a and b solve

        sum_d w(d, k) e(d, k) = 0,    sum_d w(d, k) (e(d, k) z(d) - c(d, k)) = 0

    c is an unbiased estimate of the covariance that e and z have by sharing clicks: without it few clicks per document
    would bias the slopes (errors in variables). A ranker that shows better documents higher does no harm, as each has
    its own R(d). Holds if clicks are affine in a relevance of the document alone, and independent.

    Position-based clicks, b = 0, are tested first, by the score of the second equation. Unless they are rejected, or
    if no other solution is found, theirs is the curve; otherwise what differs from it is shrunk by 1 - (K - 1) / chi2.
    With `position_based` theirs is the curve whatever the test says.
    """
    from scipy.special import chdtrc

    used = np.where(log.shown >= 2, log.shown, 0)
    several = np.count_nonzero(used, axis=1) >= 2
    shown, clicked = used[several].astype(np.float64), np.where(used > 0, log.clicked, 0)[several]
    rate = clicked.sum(axis=0) / np.maximum(shown.sum(axis=0), 1.0)
    if not np.all((rate > 0) & (rate < 1)):
        raise UsageError("trust bias needs clicks at every rank, on documents shown at several ranks, twice or more.")
    ctr = np.divide(clicked, shown, out=np.zeros(shown.shape), where=shown > 0)
    cells = ctr, shown / (rate * (1 - rate)), ctr * (1 - ctr) / np.maximum(shown - 1, 1)
    n = log.cutoff - 1
    slopes, levels, both = slice(n), slice(n, None), slice(None)
    plain = _solved(cells, np.append(rate[1:] / rate[0], np.zeros(n)), levels, slopes)
    if plain is None:
        raise UsageError("the log shows too few documents at several ranks to compare the ranks.")
    terms, jacobian = _equations(cells, plain)
    by_level = np.linalg.solve(jacobian[levels, slopes].T, jacobian[slopes, slopes].T)
    score = terms[:, slopes] - terms[:, levels] @ by_level  # a was estimated from the levels
    total = score.sum(axis=0)
    chi2 = float(total @ np.linalg.lstsq(score.T @ score, total)[0])
    trusted = not position_based and chdtrc(n, chi2) < LEAST_EVIDENCE
    found = _solved(cells, plain, both, both) if trusted else None
    lines = plain if found is None else plain + (1 - n / chi2) * (found - plain)
    slope = np.maximum(lines[slopes], LEAST_SLOPE * plain[slopes])
    intercept = lines[levels] + (lines[slopes] - slope) * rate[0]  # the line turns about the mean document
    return TrustBias(np.append(1.0, slope), np.append(0.0, intercept)).normalised()


def _solved(cells: tuple[Floats, ...], lines: Floats, rows: slice, unknown: slice) -> Floats | None:
    """Solve some of the equations for some of the slopes and intercepts, by Newton's method; None if it fails."""
    lines = lines.copy()
    for _ in range(ITERATIONS):
        terms, jacobian = _equations(cells, lines)
        step = np.linalg.lstsq(jacobian[rows, unknown], terms.sum(axis=0)[rows])[0]
        lines[unknown] += step
        size = np.abs(step).max()
        if size < 1e-9 or not size < FURTHEST:
            return lines if size < 1e-9 else None
    return None


def _equations(cells: tuple[Floats, ...], lines: Floats) -> tuple[Floats, Floats]:
    """Return the terms of each document, first those of the slopes, and minus the derivative of their sums."""
    ctr, weight, noise = cells
    slope, intercept = np.insert(lines.reshape(2, -1), 0, [1.0, 0.0], axis=1)
    pulled = weight * slope
    information = pulled @ slope
    share = pulled / information[:, None]
    relevance = (share * (ctr - intercept)).sum(axis=1)
    variance = (np.square(share) * noise).sum(axis=1)
    centred = relevance - np.average(relevance, weights=information)
    between = max(float(np.average(centred**2 - variance, weights=information)), 1e-12)
    kept = between / (between + 1 / information)
    error = ctr - relevance[:, None] * slope - intercept
    shared = share * noise - slope * variance[:, None]
    terms = np.hstack([weight * (error * centred[:, None] - shared) * kept[:, None], weight * error])

    def curvature(factor: Floats) -> Floats:
        return (np.diag(factor @ weight) - pulled.T @ (share * factor[:, None]))[1:, 1:]

    square = kept * (centred * relevance - variance)
    jacobian = [[curvature(square), curvature(kept * centred)], [curvature(relevance), curvature(np.ones(len(kept)))]]
    return np.delete(terms, [0, weight.shape[1]], axis=1), np.block(jacobian)
