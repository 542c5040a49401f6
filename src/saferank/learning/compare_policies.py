"""Policies side by side on the clicks that chose among them. Something to look at, not a certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.click_models.examination import total_examination
from saferank.engine.objectives.exposure_crm import exposure_crm
from saferank.learning.methods import LoggedPart


@dataclass(frozen=True)
class ComparedPolicy:
    """One line of the table."""

    name: str
    estimate: float
    """Clicks per interaction, estimated on the validation part."""
    lower_bound: float
    """The estimate minus its risk."""
    divergence: float
    """d2: how far its exposure is from that of the logging policy, which itself has 1."""
    never_shown: float
    """Share of its exposure on documents that the log never shows."""


def compare(
    name: str, exposure: NDArray[np.float64], part: LoggedPart, ever_shown: NDArray[np.bool_]
) -> ComparedPolicy:
    """Evaluate a policy with this exposure on the validation part; nothing is clipped, and there is no floor.

        estimate    = (1/N) sum_q sum_d rho(d) clicks_q(d) / rho_0(d)
        lower bound = estimate - sqrt( c (Z/N) ((1-delta)/delta) d2 )
        d2          = (1/N) sum_q (N_q / Z_q) sum_d rho(d)^2 / rho_0(d)

    All sums go over the documents with rho_0(d) > 0. A document that the log never shows makes the divergence of any
    policy that may show it infinite; but no document has fewer than 0 clicks, so the utility is at least that of the
    others, and a lower bound on theirs is one on the whole. What it leaves out is `never_shown`.

    With the exposure of the logging policy itself the estimate is its click rate. The bound is that of a policy fixed
    before the data was seen: this part chose the epoch, and may choose the method, so it is not a certificate.
    """
    log, shown = part.log, part.logging_exposure > 0
    logging_exposure = np.where(shown, part.logging_exposure, np.inf)  # never shown: no clicks, no divergence
    objective = exposure_crm(
        log, logging_exposure, part.examination, delta=part.risk.delta, constant=part.risk.constant, floor=0.0
    )
    issued = log.interactions[log.query_of_document] / log.total_interactions
    total = total_examination(part.examination, np.diff(log.offsets))[log.query_of_document]
    ratio = exposure / np.where(total > 0, total, np.inf) / logging_exposure
    seen = issued * exposure
    sums = objective.sums(exposure)
    return ComparedPolicy(
        name=name,
        estimate=objective.estimate(sums),
        lower_bound=objective.value(sums),
        divergence=float(seen @ ratio),
        never_shown=float(seen[~ever_shown].sum() / max(seen.sum(), 1e-300)),
    )
