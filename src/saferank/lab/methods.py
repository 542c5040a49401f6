"""The paper's methods by name: a policy learned from simulated clicks, and how good it is on the test labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.errors import UsageError
from saferank.engine.metrics import expected_ndcg, ndcg_by_score
from saferank.engine.objectives.action_crm import action_crm
from saferank.engine.objectives.action_ips import action_ips
from saferank.engine.objectives.exposure_crm import Bound, exposure_crm
from saferank.engine.objectives.exposure_ips import exposure_ips, training_clip
from saferank.engine.objectives.naive import naive
from saferank.engine.propensity.logging_exposure import (
    action_propensity,
    estimated_logging_exposure,
    known_logging_exposure,
)
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.simulate import simulate
from saferank.lab.world import World, train_on_labels
from saferank.learning.training_loop import Objective, TrainingSettings, fit
from saferank.policy.scorers import make_scorer, score

METHODS = ("logging", "skyline", "naive", "action-ips", "action-crm", "exposure-ips", "exposure-crm")
FROM_CLICKS = METHODS[2:]
KEPT_RANKINGS = 256
"""Single interactions a query that the action-based methods learn from; see `ActionObjective`."""
CUTOFF = 5


@dataclass(frozen=True)
class MethodSettings:
    """What a method needs to know beside the log."""

    delta: float = 0.01
    bound: Bound = "paper"
    known_logging_policy: bool = False
    """Whether the exposure-based methods get the logging policy itself: its exact exposure, and as their start."""
    scorer: str = "mlp"


@dataclass(frozen=True, eq=False)
class Logs:
    """Simulated clicks on the training and on the validation queries."""

    train: LogStatistics
    validation: LogStatistics


def simulate_logs(world: World, interactions: int, seed: int) -> Logs:
    """Simulate the log that every method of a run learns from.

    The validation part gets as many interactions a query as the training part, as with one stream of queries.
    """

    def log(part: str, number: int, size: int) -> LogStatistics:
        offsets = getattr(world, part).offsets
        rng = np.random.default_rng([seed, 2, number])
        scores, examination = world.logging_scores[part], world.click_model.examination
        return simulate(scores, offsets, world.relevance(part), examination, size, rng, keep_rankings=KEPT_RANKINGS)

    share = world.validation.queries / world.train.queries
    return Logs(log("train", 0, interactions), log("validation", 1, max(1, round(interactions * share))))


def learn(
    method: str,
    world: World,
    logs: Logs | None,
    seed: int,
    settings: MethodSettings,
    training: TrainingSettings,
    *,
    checkpoint: Path | None = None,
) -> torch.nn.Module:
    """Learn from the log, and return the scorer. `logging` and `skyline` need no log; for `checkpoint` see `fit`."""
    if method == "logging":
        return world.logging_scorer
    scorer = make_scorer(settings.scorer, world.train.features.shape[1], seed=seed + 1000)
    training = replace(training, seed=seed)
    if method == "skyline":
        train_on_labels(scorer, world.train, world.validation, world.click_model, training)
        return scorer
    if logs is None:
        raise UsageError(f"{method} learns from clicks, and there are none.")
    known = settings.known_logging_policy and method.startswith("exposure")
    if known:
        scorer.load_state_dict(world.logging_scorer.state_dict())
    scores = world.logging_scores if known else {"train": None, "validation": None}
    examination = world.click_model.examination
    clip = training_clip(logs.train.total_interactions)
    objective = make_objective(method, logs.train, examination, clip, settings, scores["train"])
    judge = make_objective(method, logs.validation, examination, 0.0, settings, scores["validation"])
    fit(
        scorer,
        world.train,
        objective,
        examination,
        validation=(world.validation, judge),
        settings=training,
        keep_start=known,
        checkpoint=checkpoint,
    )
    return scorer


def make_objective(
    method: str,
    log: LogStatistics,
    examination: NDArray[np.float64],
    clip: float,
    settings: MethodSettings,
    logging_scores: NDArray[np.float32] | None = None,
) -> Objective:
    """Return the method's objective on this log; propensities are estimated unless the logging scores are given."""
    if method == "naive":
        return naive(log)
    if method in ("action-ips", "action-crm"):
        propensity = action_propensity(log)
        if method == "action-ips":
            return action_ips(log, propensity, clip=clip)
        return action_crm(log, propensity, clip=clip, delta=settings.delta)
    if logging_scores is None:
        logging_exposure = estimated_logging_exposure(log, examination)
    else:
        logging_exposure = known_logging_exposure(logging_scores, log.offsets, examination)
    if method == "exposure-ips":
        return exposure_ips(log, logging_exposure, clip=clip)
    if method == "exposure-crm":
        return exposure_crm(log, logging_exposure, examination, clip=clip, delta=settings.delta, bound=settings.bound)
    raise UsageError(f"method {method!r} is unknown; choose from: {', '.join(METHODS)}.")


def evaluate(scorer: torch.nn.Module, test: RankingData) -> tuple[float, float]:
    """NDCG@5 on the test labels: expected under the stochastic policy, and of the ranking by score."""
    scores, labels = score(scorer, test.features), test.require_labels()
    expected = expected_ndcg(scores, labels, test.offsets, CUTOFF)
    return float(expected.mean()), float(ndcg_by_score(scores, labels, test.offsets, CUTOFF).mean())
