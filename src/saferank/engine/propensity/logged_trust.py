"""What part of the clicks and of the exposure in a log is due to trust bias, and what part to relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.propensity.logging_exposure import examined
from saferank.engine.types.log_statistics import LogStatistics

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LoggedTrust:
    """Trust bias in a log: examination is alpha + beta there, and logging exposure omega_0 = E_0[alpha_k + beta_k]."""

    beta: Floats
    """Of each rank."""
    exposure: Floats
    """E_0[beta_k]: its mean over the ranks at which the logging policy shows each document, counted or known."""

    def factor(self, examination: Floats) -> float:
        """kappa = 1 + max_k beta_k / alpha_k: what the authors of safe doubly robust learning multiply the risk by."""
        return float(np.max(examination / (examination - self.beta)))


def relevant_part(
    log: LogStatistics, logging_exposure: Floats, examination: Floats, trust: LoggedTrust | None
) -> tuple[NDArray[Any], Floats, Floats]:
    """Return clicks(d) - sum_k beta_k shown(d, k), rho_0(d) = E_0[alpha_k], and alpha; without trust, all as they are.

    The mean of the first is N_q rho_0(d) R(d), with or without trust.
    """
    if trust is None:
        return log.clicks, logging_exposure, examination
    return log.clicks - examined(log, trust.beta), logging_exposure - trust.exposure, examination - trust.beta
