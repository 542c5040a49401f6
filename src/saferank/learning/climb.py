"""A path of trees that leads away from the current ranker, towards what the clicks say of each document."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.objectives.direct_method import direct_method
from saferank.learning.boosting import PARAMETERS as BOOSTING
from saferank.learning.boosting import newton_step
from saferank.learning.evidence import Evidence
from saferank.learning.foresight import Foreseen, most_worth
from saferank.learning.lightgbm_trees import built, can_split, first_features, forest_of, give_memory_back, threads_for
from saferank.learning.training_loop import Epoch, FitResult
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.trees import Trees

PARAMETERS: dict[str, Any] = BOOSTING | {"learning_rate": 0.6}
STOPS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 130, 190, 270, 400)
"""Numbers of trees after which the policy is foreseen."""
LEAST_CHANCE = 0.3
"""Chance of a proof below which a policy is not taken: the clicks that taught it are hardly more than those to come."""
WORSE = 3
"""Stops without a larger worth after which no more trees are grown."""


class _Enough(Exception):
    """No further tree is needed."""


def climb(
    scorer: Trees,
    evidence: Evidence,
    *,
    to_beat: float = 0.0,
    seed: int = 0,
    progress: Callable[[Epoch], None] | None = None,
) -> FitResult:
    """Add trees to the scorer, in place, that raise the clicks under the relevance after each document's own clicks.

        (1/N) sum_q N_q sum_d R(d) rho(d),    R = `Evidence.relevance`

    The policies after some numbers of trees are a path; of those with a gain, and a chance of a proof of at least
    LEAST_CHANCE, the one of the largest foreseen worth is taken. No more trees are grown once the path would stay below
    a worth `to_beat` even if every further stop gained as much as the last one did. Trees can tell apart the documents
    that they are grown on, so this is for a verdict on the same queries. For new queries use `correct`, which goes by
    clicks on other queries.
    """
    import lightgbm

    sample, start = evidence.samples[0], evidence.starts[0]
    objective = direct_method(sample.log, evidence.relevance, sample.examination)
    path: dict[int, Foreseen] = {}
    done = 0

    def newton(added: NDArray[np.float64], _: lightgbm.Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        nonlocal done
        scores = (start + added).astype(np.float32)
        if done in STOPS:
            path[done] = evidence.foresight.of(f"{done} trees", scores)
            if _ends(list(path.values()), len(STOPS) - STOPS.index(done) - 1, to_beat):
                raise _Enough
        value, slope = objective.value_and_slope(scores)
        done += 1
        if progress is not None:
            progress(Epoch(done, value, math.nan, value))
        return newton_step(slope)

    read = sample.data.features[:, : scorer.read]
    if not can_split(read):
        return FitResult(0, ())
    rows = first_features(sample.data.features, scorer.read)
    # without the seed, as ever: it would draw other rows of a large table for the bins
    table = built(lightgbm.Dataset(rows, np.zeros(sample.data.documents), params=PARAMETERS), sample.data.features)
    booster = lightgbm.Booster(PARAMETERS | {"objective": "none", "seed": seed} | threads_for(*read.shape), table)
    with suppress(_Enough):
        while not booster.update(fobj=newton):
            pass
    likely = [trees for trees, foreseen in path.items() if foreseen.chance >= LEAST_CHANCE and foreseen.gain > 0]
    best = max(likely, key=lambda trees: path[trees].worth, default=0)
    added = forest_of(booster, best) if best else Forest.empty()
    del booster, table
    give_memory_back()
    if not best:
        return FitResult(0, (), path=tuple(path.values()))
    scorer.grow(Forest.joined([scorer.forest, added]))
    return FitResult(best, (), path=tuple(path.values()), chosen=path[best], saw_validation=True)


def _ends(path: Sequence[Foreseen], left: int, to_beat: float) -> bool:
    """Whether the path need not go on: no stop is left, it got worse, or `to_beat` is out of reach."""
    best = max(one.worth for one in path)
    if left == 0 or all(one.worth < best for one in path[-WORSE:]):
        return True
    rise = path[-1].gain - path[-2].gain if len(path) > 1 else math.inf
    return to_beat > 0 and most_worth(path[-1].gain + left * max(rise, 0.0)) < to_beat
