"""A mean over runs with its confidence interval, and Student's t-test of differences run by run."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saferank.engine.errors import UsageError

LEVEL = 0.8
"""Confidence level of the bands in the paper's figures."""
SIGNIFICANT = 0.01
"""A difference with a p-value below this is significant, as in the paper."""


@dataclass(frozen=True)
class Summary:
    """A quantity over independent runs. With one run there is no deviation and no interval: NaN."""

    runs: int
    mean: float
    deviation: float
    """Standard deviation, with runs - 1 in the denominator."""
    low: float
    high: float
    """Ends of the confidence interval of the mean."""


def summarise(values: ArrayLike, *, level: float = LEVEL) -> Summary:
    """Mean, standard deviation and confidence interval of the mean over runs.

    mean -+ t deviation / sqrt(runs), with t the (1 + level)/2 quantile of Student's t with runs - 1 degrees of freedom

    Exact for independent normal runs.
    """
    from scipy.special import stdtrit

    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) == 0:
        raise UsageError(f"a summary needs a flat array of one value or more, got shape {sample.shape}.")
    if not 0.0 < level < 1.0:
        raise UsageError(f"level is the confidence of an interval, between 0 and 1; got {level}.")
    mean = float(sample.mean())
    if len(sample) == 1:
        return Summary(1, mean, math.nan, math.nan, math.nan)
    deviation = float(sample.std(ddof=1))
    half = float(stdtrit(len(sample) - 1, (1.0 + level) / 2.0)) * deviation / math.sqrt(len(sample))
    return Summary(len(sample), mean, deviation, mean - half, mean + half)


def paired_t_test(differences: ArrayLike) -> float:
    """Two-sided p-value of Student's t-test that the mean of the runs' differences is 0.

    Exact for independent normal differences: what the methods of a run have in common, its logging policy and its
    clicks, cancels. NaN with fewer than two runs. If the differences do not vary, p is 1 if they are 0, else 0.
    """
    from scipy.special import stdtr

    sample = np.asarray(differences, dtype=np.float64)
    if len(sample) < 2:
        return math.nan
    mean, deviation = float(sample.mean()), float(sample.std(ddof=1))
    if deviation == 0.0:
        return float(mean == 0.0)
    return float(2.0 * stdtr(len(sample) - 1, -abs(mean) / deviation * math.sqrt(len(sample))))
