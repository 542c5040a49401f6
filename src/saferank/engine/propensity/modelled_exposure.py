"""Counts of what the logging policy showed, shrunk towards a model of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, math.inf)
"""Interactions that a model is taken to be worth; infinite: the counts of the query are not used."""
LEAST = 1e-6
"""Probability below which none is taken to be: a model is not ruled out by one display that it did not expect."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explained:
    """How well counts that are shrunk towards a model explain held-out displays, at the best strength."""

    log_likelihood: float
    """Per display: the mean of log P(document at this rank)."""
    strength: float


def explained(train: LogStatistics, held_out: LogStatistics, placement: NDArray[np.floating]) -> Explained:
    """Return how well the counts of `train`, shrunk towards P(rank(d) = k) of a model, explain what was held out.

        P(d, k) = (shown(d, k) + m placement(d, k)) / (N_q + m)
        log-likelihood = sum_(d,k) held out(d, k) log P(d, k) / sum_(d,k) held out(d, k)

    at the strength m that makes it highest. Both logs are of the same queries. It is the likelihood of each rank by
    itself, which is all that an exposure depends on, and all that counts tell; for a cutoff of 1, of the rankings.
    """
    shown, interactions = train.shown, train.interactions[train.query_of_document][:, None]
    displayed = held_out.shown > 0
    times = held_out.shown[displayed].astype(np.float64)
    counted, model = shown[displayed].astype(np.float64), placement[displayed].astype(np.float64)
    total = np.broadcast_to(interactions, shown.shape)[displayed].astype(np.float64)
    found = []
    for strength in STRENGTHS:
        chance = model if math.isinf(strength) else (counted + strength * model) / (total + strength)
        found.append(Explained(float(times @ np.log(np.maximum(chance, LEAST))) / max(times.sum(), 1.0), strength))
    return max(found, key=lambda one: one.log_likelihood)


def shrunk_logging_exposure(log: LogStatistics, examination: Floats, modelled: Floats, strength: float) -> Floats:
    """Logging exposure between counted and modelled.

        rho_0(d) = (N_q counted(d) + m modelled(d)) / (N_q + m)

    The exposure of the shrunk counts of `explained`. Above 0 wherever the model is, also for a document that was never
    shown; not unbiased unless the model is right.
    """
    if math.isinf(strength):
        return modelled
    interactions = log.interactions[log.query_of_document].astype(np.float64)
    counted = estimated_logging_exposure(log, examination)
    shrunk: Floats = (interactions * counted + strength * modelled) / (interactions + strength)
    return shrunk
