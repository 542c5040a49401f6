"""Intervention harvesting: examination from documents that were shown at several ranks of the same query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saferank.engine.propensity.curve_fit import CurveFit, curvature
from saferank.engine.propensity.interventions import Interventions

LEAST_GAIN = 1e-9
"""Log-likelihood that the next step must promise to gain; an interval's half-width is worth about 2."""
MOST_ITERATIONS = 100
LONGEST_STEP = 3.0
"""In the logarithm of a rank's examination, a factor of 20: further away the quadratic approximation is poor."""
SMALLEST_STEP = 1e-6
"""As a share of Newton's; below it only rounding is left."""


def harvest(pairs: Interventions) -> CurveFit:
    """Maximise the likelihood of where each pair was clicked, given how often it was clicked in all.

        sum over pairs, ranks of  clicked_k log( shown_k e_k / sum_j shown_j e_j ),    e_1 = 1

    The interventions are those of AllPairs (Agarwal et al., WSDM 2019, "Estimating position bias without intrusive
    interventions"): every two ranks that showed the same document for the same query. AllPairs weights each pair of
    ranks by 1/shown and fits one relevance to each two ranks. Here each query-document pair has a relevance of its
    own, and conditioning on its clicks removes it: the curve is the only parameter left, so there is no bias from
    fitting many relevances to few clicks each; pairs are weighted by their clicks, as is best for rare clicks; and
    the problem is concave. The gradient, clicked_k - clicks shown_k e_k / sum_j shown_j e_j, has mean 0 at the true
    curve for any position-based clicks, rare or not, so the estimate is consistent for all of them.

    Holds if clicks are position-based, and where a pair is shown does not depend on how relevant it is at that
    moment (a ranker that moves a document up on the day when it is wanted makes the curve too steep).
    """
    shown, clicked = pairs.shown, pairs.clicked
    clicks, per_rank = clicked.sum(axis=1), clicked.sum(axis=0)

    def evaluate(log_curve: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the log-likelihood, and how many of each pair's clicks are expected at each rank."""
        exposed = shown * np.exp(log_curve)
        total = exposed.sum(axis=1)
        return float(per_rank @ log_curve - clicks @ np.log(total)), exposed * (clicks / total)[:, None]

    log_curve = np.zeros(len(pairs.ranks))
    value, expected = evaluate(log_curve)
    iterations, converged = 0, False
    while not converged and iterations < MOST_ITERATIONS:
        iterations += 1
        gradient = (clicked - expected).sum(axis=0)[1:]
        step = np.concatenate([[0.0], np.linalg.solve(curvature(expected, clicks)[1:, 1:], gradient)])
        converged = float(gradient @ step[1:]) / 2.0 < LEAST_GAIN
        if converged:
            break
        size = min(1.0, LONGEST_STEP / np.abs(step).max())
        while (proposed := evaluate(log_curve + size * step))[0] < value and size > SMALLEST_STEP:
            size /= 2.0
        log_curve, (value, expected) = log_curve + size * step, proposed
    return CurveFit(log_curve, clicked - expected, expected, clicks, iterations, converged)
