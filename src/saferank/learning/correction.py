"""The current ranker's scores, corrected by a regression of relevance as far as clicks on other queries support it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saferank.engine.ragged import within_queries
from saferank.learning.evidence import Evidence
from saferank.learning.foresight import Foreseen
from saferank.learning.training_loop import FitResult
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.trees import Trees

STEPS = tuple(2.0**power for power in range(-5, 9))
"""Shares of the correction that are tried; more than all of it only for a start that hardly prefers anything."""
FLAT = 1.0
"""Standard deviation of the scores of a query up to which steps beyond 1 are tried."""


def correct(scorer: Trees, evidence: Evidence, *, by_gain: bool = False) -> FitResult:
    """Add trees to the scorer, in place: R-hat, as far as clicks that did not make it support that.

        s(d) = start(d) + step * correction * R-hat(d)

    `correction` is how many start scores a unit of R-hat is worth (`fit_slopes`). The step is the one of the largest
    foreseen worth: the gain times the chance that the verdict proves it; or, `by_gain`, of the largest gain. Without
    evidence, or without a gain, the scorer is left as it is.
    """
    slopes, start, held_out = evidence.slopes, evidence.starts[0], evidence.held_out[0]
    spread = slopes.correction * _spread(held_out, evidence.samples[0].data.offsets)
    path: dict[float, Foreseen] = {}
    for step in STEPS if slopes.correction > 0 else ():
        if step > 1 and step * spread > FLAT:
            break
        scores = (start + step * slopes.correction * held_out).astype(np.float32)
        path[step] = evidence.foresight.of(f"correction, step {step:g}", scores)
    best = max(path, key=lambda step: path[step].gain if by_gain else path[step].worth, default=0.0)
    taken = best if best and path[best].gain > 0 else 0.0
    step = taken * slopes.correction
    if taken:
        scorer.grow(Forest.joined([scorer.forest, evidence.model.forest.times(step)]))
    return FitResult(
        evidence.model.forests[0].trees if taken else 0,
        (),
        path=tuple(path.values()),
        chosen=path.get(taken),
        held_out_scores=(start + step * held_out).astype(np.float32),
    )


def _spread(values: NDArray[np.float64], offsets: NDArray[np.int64]) -> float:
    """Return the standard deviation within queries."""
    return float(np.sqrt(np.mean(within_queries(values, offsets) ** 2)))
