"""Student's t distribution, from the regularised incomplete beta function: one place that needs no SciPy.

Relative error about 1e-12 for up to a thousand degrees of freedom; the tests compare with SciPy.
"""

import math
from statistics import NormalDist

from saferank.engine.errors import UsageError

NORMAL_FROM = 1e7
"""Degrees of freedom from which the normal distribution stands in: the quantiles differ by less than one in 10^6."""


def t_two_sided(t: float, freedom: float) -> float:
    """P(|T| >= |t|) for Student's t: I_x(freedom/2, 1/2) at x = freedom / (freedom + t^2)."""
    square = t * t
    if math.isinf(square):
        return 0.0
    return _incomplete_beta(freedom / (freedom + square), square / (freedom + square), freedom / 2.0, 0.5)


def t_quantile(probability: float, freedom: float) -> float:
    """The t with P(T <= t) = probability, by bisection."""
    if not 0.0 < probability < 1.0:
        raise UsageError(f"a quantile needs a probability between 0 and 1; got {probability}.")
    if probability < 0.5:
        return -t_quantile(1.0 - probability, freedom)
    if freedom > NORMAL_FROM:
        return NormalDist().inv_cdf(probability)
    outside = 2.0 * (1.0 - probability)
    low, high = 0.0, 1.0
    while t_two_sided(high, freedom) > outside:
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if t_two_sided(middle, freedom) > outside else (low, middle)
    return (low + high) / 2.0


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b) with rest = 1 - x, given apart so that neither end loses digits.

    The continued fraction of Abramowitz & Stegun 26.5.8, by Lentz's method, where it converges fast (x below about
    the mean a / (a + b)); above by I_x(a, b) = 1 - I_(1-x)(b, a).
    """
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(rest, x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    tiny = 1e-300
    value, upper, lower = 1.0, math.inf, 1.0
    for step in range(1, 10_000):
        m = step // 2
        if step % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        lower = 1.0 / (1.0 + term * lower or tiny)
        upper = 1.0 + term / upper or tiny
        value *= upper * lower
        if abs(upper * lower - 1.0) < 1e-15:
            break
    return math.exp(log_front) * value / a
