"""Objectives that correct for trust bias, held against every ranking and every pattern of clicks of one interaction."""

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

import numpy as np
import pytest

from saferank.engine.objectives.doubly_robust import doubly_robust
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.prpo import prpo
from saferank.engine.objectives.safe_doubly_robust import safe_doubly_robust
from saferank.engine.propensity.logged_trust import LoggedTrust
from saferank.engine.types.log_statistics import LogStatistics
from tests.engine.objectives.cases import Array, count
from tests.oracles import enumeration
from tests.oracles.estimators import Interaction

ALPHA, BETA = np.array([0.4, 0.3, 0.2]), np.array([0.5, 0.1, 0.0])
CURVE = ALPHA + BETA
LOGGING, SCORES = [0.8, 0.0, -0.5, 0.3], [-0.6, 0.4, 1.0, 0.0]
RELEVANCE, PREDICTED = np.array([0.2, 0.9, 0.5, 0.7]), np.array([0.6, 0.3, 0.1, 0.8])
OMEGA = enumeration.exposure(SCORES, CURVE.tolist())
OMEGA_0, BETA_0 = (enumeration.exposure(LOGGING, curve.tolist()) for curve in (CURVE, BETA))
TRUST = LoggedTrust(BETA, BETA_0)
TRUTH = float(OMEGA @ RELEVANCE)
Make = Callable[[LogStatistics], ExposureObjective]


def logs() -> Iterator[tuple[float, LogStatistics]]:
    """Every log of one interaction, and its probability."""
    for ranking, probability in enumeration.ranking_probabilities(LOGGING, 3).items():
        chances = [ALPHA[rank] * RELEVANCE[document] + BETA[rank] for rank, document in enumerate(ranking)]
        for clicks in product((False, True), repeat=3):
            chance = prod(p if click else 1 - p for p, click in zip(chances, clicks, strict=True))
            yield probability * chance, count([Interaction(0, ranking, clicks)], np.array([0, 4]), 3)


def moments(make: Make) -> tuple[float, float]:
    """Mean and second moment of the estimate of the new policy's value."""
    values = [(probability, float(make(log).sums(OMEGA)[0])) for probability, log in logs()]
    assert sum(probability for probability, _ in values) == pytest.approx(1.0)
    return sum(p * value for p, value in values), sum(p * value**2 for p, value in values)


def ips(trust: LoggedTrust | None, clip: float = 0.0) -> Make:
    return lambda log: exposure_ips(log, OMEGA_0, CURVE, clip=clip, trust=trust)


def dr(predicted: Array, omega_0: Array, trust: LoggedTrust | None, clip: float = 0.0) -> Make:
    return lambda log: doubly_robust(log, predicted, omega_0, CURVE, clip=clip, trust=trust)


@pytest.mark.parametrize(
    ("make", "unbiased"),
    {
        "ips": (ips(TRUST), True),
        "ips without trust": (ips(None), False),
        "ips, clipped": (ips(TRUST, 0.5), False),
        "dr, wrong R": (dr(PREDICTED, OMEGA_0, TRUST), True),
        "dr, right R, wrong rho_0": (dr(RELEVANCE, np.full(4, 0.9), TRUST), True),
        "dr, right R, clipped": (dr(RELEVANCE, OMEGA_0, TRUST, 0.5), True),
        "dr, both wrong": (dr(PREDICTED, np.full(4, 0.9), TRUST), False),
        "dr without trust": (dr(PREDICTED, OMEGA_0, None), False),
        "safe dr": (lambda log: safe_doubly_robust(log, PREDICTED, OMEGA_0, CURVE, trust=TRUST), True),
        "prpo without a limit": (lambda log: prpo(dr(PREDICTED, OMEGA_0, TRUST)(log), OMEGA_0, most=1e9), True),
    }.values(),
)
def test_what_is_right_on_average(make: Make, *, unbiased: bool) -> None:
    off = abs(moments(make)[0] - TRUTH)
    assert off < 1e-9 if unbiased else off > 0.01


def test_the_risk_has_kappa_and_bounds_the_second_moment() -> None:
    log = next(logs())[1]
    kappa = 1.0 + 0.5 / 0.4
    found, plain = (exposure_crm(log, OMEGA_0, CURVE, delta=0.5, floor=0.0, trust=trust) for trust in (TRUST, None))
    assert found.risk_weight is not None
    assert plain.risk_weight is not None
    np.testing.assert_allclose(found.risk_weight, kappa**2 * plain.risk_weight)
    np.testing.assert_allclose(found.risk_weight, kappa**2 * min(3.0, 1.0 + CURVE.sum()) / OMEGA_0)
    safe = safe_doubly_robust(log, PREDICTED, OMEGA_0, CURVE, delta=0.5, floor=0.0, trust=TRUST)
    assert safe.risk_weight is not None
    np.testing.assert_array_equal(safe.risk_weight, found.risk_weight)
    assert moments(ips(TRUST))[1] <= float(found.risk_weight @ OMEGA**2)


def test_no_trust_is_the_position_based_estimate() -> None:
    none = LoggedTrust(np.zeros(3), np.zeros(4))
    for _, log in logs():
        for make in (ips, lambda trust: dr(PREDICTED, OMEGA_0, trust)):
            np.testing.assert_array_equal(make(none)(log).reward, make(None)(log).reward)
