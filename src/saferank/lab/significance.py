"""How sure a mean over runs is: its confidence interval, and Student's test of the difference of two."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from saferank.engine.errors import UsageError
from saferank.engine.student_t import t_quantile, t_two_sided

LEVEL = 0.8
"""Confidence of the bands in the paper's figures."""
SIGNIFICANT = 0.01
"""Below this p a difference counts, as in the paper."""


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
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) == 0:
        raise UsageError(f"a summary needs a flat array of one value or more, got shape {sample.shape}.")
    if not 0.0 < level < 1.0:
        raise UsageError(f"level is the confidence of an interval, between 0 and 1; got {level}.")
    mean = float(sample.mean())
    if len(sample) == 1:
        return Summary(1, mean, math.nan, math.nan, math.nan)
    deviation = float(sample.std(ddof=1))
    half = t_quantile((1.0 + level) / 2.0, len(sample) - 1) * deviation / math.sqrt(len(sample))
    return Summary(len(sample), mean, deviation, mean - half, mean + half)


def t_test(first: ArrayLike, second: ArrayLike, *, equal_variance: bool = True) -> float:
    """Two-sided p-value of Student's test that two independent samples have the same mean.

    By default the classic test with one pooled variance, which is what "Student's t-test" means in the paper;
    equal_variance=False is Welch's. NaN if either sample has a single run. If neither sample varies at all, p is 1
    for equal means and 0 for others.
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if len(a) < 2 or len(b) < 2:
        return math.nan
    if equal_variance:
        freedom = float(len(a) + len(b) - 2)
        pooled = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / freedom
        squared_error = pooled * (1.0 / len(a) + 1.0 / len(b))
    else:
        parts = (float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b))
        squared_error = sum(parts)
        shares = parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1)
        freedom = squared_error**2 / shares if shares > 0 else float(len(a) + len(b) - 2)
    difference = abs(float(a.mean() - b.mean()))
    if squared_error == 0.0:
        return 0.0 if difference > 0 else 1.0
    return t_two_sided(difference / math.sqrt(squared_error), freedom)
