"""Counterfactual risk minimisation with the exposure-based divergence: the paper's method."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import Constant, risk_constant
from saferank.engine.delta import checked_delta
from saferank.engine.errors import UsageError
from saferank.engine.objectives.exposure_ips import exposure_ips
from saferank.engine.objectives.exposure_objective import ExposureObjective
from saferank.engine.objectives.risk import checked_constant
from saferank.engine.propensity.logged_trust import LoggedTrust
from saferank.engine.types.log_statistics import LogStatistics

FLOOR = 1e-4
"""Smallest logging exposure in the divergence: never-shown documents have an estimated one of 0."""


def exposure_crm(
    log: LogStatistics,
    logging_exposure: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    delta: float = 0.01,
    constant: Constant = "proven",
    clip: float = 0.0,
    floor: float = FLOOR,
    trust: LoggedTrust | None = None,
) -> ExposureObjective:
    """Exposure IPS minus the width of its confidence bound (Gupta et al., SIGIR 2023, Theorem 2).

        U-hat(rho) - sqrt( c (Z/N) ((1-delta)/delta) d2 ),    Z d2 = (1/N) sum_q N_q sum_d rho(d)^2 / rho_0(d)

    c = 1 for constant="paper". That is not a bound on the variance once the logged ranking is random, see
    docs/guarantees.md; c = min(K, 1 + Z), constant="proven", is. Holds with probability 1 - delta for position-based
    clicks, clip = 0, and a policy fixed before the data was seen. In the divergence rho_0 is raised to `floor`: where
    that is more than the true one, the risk is understated, so a guarantee needs a known rho_0 and floor = 0. With
    trust bias rho_0 is E_0[alpha + beta] in the divergence, and the width has the factor 1 + max_k beta_k / alpha_k.
    """
    estimate = exposure_ips(log, logging_exposure, examination, clip=clip, trust=trust)
    c = 1.0 if checked_constant(constant) == "paper" else risk_constant(examination, np.diff(log.offsets))
    scale = c * (1.0 - checked_delta(delta)) / delta * (1.0 if trust is None else trust.factor(examination) ** 2)
    interactions = log.interactions / max(log.total_interactions, 1) ** 2
    per_document = np.repeat(scale * interactions, np.diff(log.offsets))
    raised = np.maximum(logging_exposure, floor)
    if raised.min(initial=1.0) <= 0:
        raise UsageError("some documents have no logging exposure at all; the divergence needs a floor above 0.")
    return replace(estimate, risk_weight=per_document / raised)
