"""Round after round: a policy goes live, its log teaches the next one, and only what is certified replaces it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.bounds.differences import extreme_sums, paired_differences, second_moments
from saferank.engine.bounds.one_look import one_look
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.engine.types.log_statistics import LogStatistics
from saferank.lab.simulate import simulate
from saferank.lab.world import World
from saferank.learning.learn_from_log import LearningSettings, LoggedParts, learn_from_log
from saferank.learning.training_loop import TrainingSettings
from saferank.policy.scorers import score
from saferank.verdict.certificate import Verdict
from saferank.verdict.decision import decide

SHARES = (0.6, 0.2, 0.2)
"""Of a round's interactions: to train on, to choose the epoch by, to certify on."""


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
    *,
    method: str,
    certified: bool,
    rounds: int,
    interactions: int,
    seed: int,
    delta: float = 0.05,
    training: TrainingSettings = TrainingSettings(),  # noqa: B008 (frozen)
    progress: Callable[[Round], None] | None = None,
) -> list[Round]:
    """Run the loop on the training queries of a world, beginning with its logging policy.

    Each round logs so many interactions of the policy that is live, drawing its rankings at random, so that its
    exposure is known exactly. The next policy starts from the live one, and learns from this round's log alone.
    With `certified` it goes live if the verdict is DEPLOY; without, it goes live whatever it is.
    """
    live = copy.deepcopy(world.logging_scorer)
    done: list[Round] = []
    for number in range(1, rounds + 1):
        rng = np.random.default_rng([seed, 4, number])
        scores = score(live, world.train.features)
        candidate = copy.deepcopy(live)
        settings = LearningSettings(method=method, delta=delta, training=replace(training, seed=seed + number))
        sizes = [round(interactions * share) for share in SHARES]
        logs = [_log(world, scores, size, rng, keep) for size, keep in zip(sizes, (0, 0, interactions), strict=True)]
        parts = LoggedParts.of(logs[0], logs[1], world.click_model.examination, logging_scores=scores)
        learn_from_log(candidate, world.train, parts, settings)
        now, then = (_exposure(world, scorer) for scorer in (live, candidate))
        verdict, lower = Verdict.DEPLOY, float("nan")
        if certified:
            assert logs[2].rankings is not None
            patterns = ClickPatterns.of_rankings(logs[2].rankings, world.train.offsets)
            weights, offsets, examination = then / now - 1.0, world.train.offsets, world.click_model.examination
            per_query = np.bincount(patterns.query, patterns.interactions, len(offsets) - 1).astype(np.float64)
            moments = second_moments(weights, now, offsets, examination, per_query)
            low, high = extreme_sums(weights, offsets, len(examination))
            differences = paired_differences(patterns, weights, low=low, high=high, second_moment=moments)
            guess = differences.second_moment["paper"] / 4  # relevance is about a quarter
            lower = one_look(replace(differences, guess=guess), delta)
            verdict = decide(lower, np.inf, 0.0)
        if verdict is Verdict.DEPLOY:
            live = candidate
        done.append(
            Round(
                number,
                utility=_utility(world, then if verdict is Verdict.DEPLOY else now),
                candidate=_utility(world, then),
                verdict=verdict.value if certified else "not asked",
                lower=lower,
            )
        )
        if progress is not None:
            progress(done[-1])
    return done


def start_utility(world: World) -> float:
    """Return the true utility of the policy that the loop begins with."""
    return _utility(world, _exposure(world, world.logging_scorer))


def _log(world: World, scores: NDArray[np.float32], size: int, rng: np.random.Generator, keep: int) -> LogStatistics:
    examination = world.click_model.examination
    return simulate(scores, world.train.offsets, world.relevance("train"), examination, size, rng, keep_rankings=keep)


def _exposure(world: World, scorer: torch.nn.Module) -> NDArray[np.float64]:
    scores = score(scorer, world.train.features)
    return exposure(scores, world.train.offsets, world.click_model.examination).astype(np.float64)


def _utility(world: World, shown: NDArray[np.float64]) -> float:
    """Expected clicks per interaction, queries coming equally often."""
    return float(shown @ world.relevance("train")) / world.train.queries
