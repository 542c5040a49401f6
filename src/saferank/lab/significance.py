"""A mean over runs with its confidence interval, and Student's t-test of the difference between two means."""

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


def t_test(first: Summary, second: Summary) -> float:
    """Two-sided p-value of Student's t-test, with one pooled variance, that two independent samples have equal means.

    NaN if either sample has a single run. If neither sample varies, p is 1 for equal means and 0 otherwise.
    """
    from scipy.stats import ttest_ind_from_stats

    if min(first.runs, second.runs) < 2:
        return math.nan
    if first.deviation == second.deviation == 0.0:
        return float(first.mean == second.mean)
    samples = (first.mean, first.deviation, first.runs, second.mean, second.deviation, second.runs)
    return float(ttest_ind_from_stats(*samples).pvalue)
