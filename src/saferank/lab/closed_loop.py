"""Round after round: a policy goes live, its log teaches the next one, and only what is certified replaces it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from saferank.engine.types.ranking_data import RankingData
from saferank.lab.end_to_end import certify_learned, log_and_learn, production_policy, true_utility
from saferank.lab.world import World
from saferank.learning.settings import FitSettings
from saferank.verdict.certificate import Verdict
from saferank.verdict.checks import Refused


@dataclass(frozen=True)
class Round:
    """What a round ended with. Utilities are exact, in clicks per interaction, and nobody in the loop sees them."""

    number: int
    utility: float
    """Of what is live after the round."""
    candidate: float
    """Of what the round's log taught."""
    verdict: str
    lower: float
    """Bound of the improvement, if it was certified."""


def closed_loop(
    world: World,
    data: RankingData,
    *,
    settings: FitSettings,
    certified: bool,
    rounds: int,
    interactions: int,
    seed: int,
    progress: Callable[[Round], None] | None = None,
) -> list[Round]:
    """Run the loop on the training queries of a world, beginning with its logging policy.

    `data` are those queries with raw features and ids. Each round logs so many interactions of the live policy. The
    next policy starts from the live one, and learns from this round's log alone. With `certified` it goes live if the
    verdict is DEPLOY, at the delta of the settings; without, it goes live whatever it is.
    """
    live = production_policy(world, data)
    done: list[Round] = []
    for number in range(1, rounds + 1):
        rng = np.random.default_rng([seed, 4, number])
        training = replace(settings.training, seed=seed + number)
        with tempfile.TemporaryDirectory(prefix="saferank-") as folder:
            learned = log_and_learn(
                world, data, live, interactions, Path(folder), replace(settings, training=training), rng, start=live
            )
        verdict, lower = "not asked", float("nan")
        if certified:
            try:
                found = certify_learned(learned, world, data, live, settings.delta)
                verdict, lower = found.verdict.value, found.lower
            except Refused as refused:
                verdict = f"refused: {refused.code}"
        candidate = true_utility(learned.policy, world, data)
        if verdict in ("not asked", Verdict.DEPLOY.value):
            live = learned.policy
        done.append(Round(number, true_utility(live, world, data), candidate, verdict, lower))
        if progress is not None:
            progress(done[-1])
    return done
