"""The paper's experiment on one world: a policy learned from simulated clicks, and how good it is on test labels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.click_models.trust_bias import TrustBias
from saferank.engine.metrics import Gain, discounts, expected_ndcg, ndcg_by_score, normalised_gains
from saferank.engine.objectives.risk import Risk
from saferank.engine.objectives.skyline import skyline
from saferank.engine.propensity.logged_trust import LoggedTrust
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure, known_logging_exposure
from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.click_worlds import CLICK_WORLDS, ClickWorld
from saferank.lab.deployment_rules import DEPLOYMENT_RULES, exposure_ratio
from saferank.lab.last_rank import last_rank_known_exposure
from saferank.lab.simulate import simulate
from saferank.lab.world import World, train_on_labels
from saferank.learning.boosting import boost
from saferank.learning.learn import learn
from saferank.learning.methods import METHODS, LoggedPart, method_named
from saferank.learning.settings import UNTIL_CONVERGED, TrainingSettings
from saferank.learning.start import logging_model
from saferank.learning.training_loop import FitResult
from saferank.policy.scorers import make_scorer, score
from saferank.policy.scorers.trees import Trees

WITHOUT_CLICKS = ("logging", "skyline")
ALL_METHODS = (*WITHOUT_CLICKS, *METHODS)
PAPER_RISK = Risk(delta=0.01, constant="paper")
PAPER_TRAINING = replace(UNTIL_CONVERGED, stop_by="clicks")
"""How `reproduce` trains every method at every N. By clicks, as the paper says: the objective of an action-based
method, with propensities that are not clipped, cannot judge on validation clicks (docs/reproduction.md)."""
KEPT_RANKINGS = 256
"""Single interactions per query that the action-based methods learn from; see `ActionObjective`."""
CUTOFF = 5
Exposure = Literal["counted", "last-rank", "known"]
"""How the logging exposure of the documents is found: counted, as the paper prints it; counted but for the last rank,
which the logging policy's scores give, as in its authors' later code; or given by those scores altogether."""


@dataclass(frozen=True, eq=False)
class SimulatedLogs:
    """Simulated clicks on the training and on the validation queries."""

    train: LogStatistics
    validation: LogStatistics


def simulate_logs(
    world: World,
    interactions: int,
    seed: int,
    click_world: ClickWorld = CLICK_WORLDS["position-based"],
) -> SimulatedLogs:
    """Simulate the log that every method of a run learns from.

    The validation part gets as many interactions per query as the training part, as with one stream of queries.
    """

    def log(part: str, number: int, size: int) -> LogStatistics:
        offsets = getattr(world, part).offsets
        rng = np.random.default_rng([seed, 2, number])
        curve = click_world.curve(world)
        relevance, traffic = click_world.clicked(world, part), click_world.traffic(len(offsets) - 1)
        return simulate(
            world.logging_scores[part], offsets, relevance, curve.alpha, size, rng,
            keep_rankings=KEPT_RANKINGS, trust=curve.beta, traffic=traffic,
        )  # fmt: skip

    share = world.validation.queries / world.train.queries
    return SimulatedLogs(log("train", 0, interactions), log("validation", 1, max(1, round(interactions * share))))


def learn_in_world(
    method: str,
    world: World,
    logs: SimulatedLogs | None,
    *,
    seed: int,
    risk: Risk = PAPER_RISK,
    known: bool = False,
    last_rank: bool = False,
    start: bool | None = None,
    scorer: str = "mlp",
    training: TrainingSettings = TrainingSettings(),  # noqa: B008 (frozen)
    deploy: str = "",
    trust: TrustBias | None = None,
    report: Callable[[FitResult], None] | None = None,
) -> torch.nn.Module:
    """Learn from the logs, and return the scorer. `logging` and `skyline` need no log.

    `known`: whether exposure-based methods are given the exact exposure of the logging policy; `last_rank`: that of the
    last rank only. `start`: whether learning begins with it, and may end with it; as `known` unless given. Trees begin
    with a model of it otherwise, as in `fit`; other scorers with random weights, as in the paper. `deploy`: the rule
    that the learned policy must satisfy on the validation clicks, or else the logging policy is returned; these clicks
    have chosen the epoch, so its delta is nominal. `trust`: the trust bias to correct for, in place of the examination
    curve of the world. `report` is told how training went.
    """
    start = known if start is None else start
    if method == "logging":
        return world.logging_scorer
    features, training = world.train.features.shape[1], replace(training, seed=seed)
    if method in METHODS and METHODS[method].objective is None:
        scorer = "gbdt"
    learned = make_scorer(scorer, features, seed=seed + 1000)
    if method == "skyline":
        if isinstance(learned, Trees):
            result = grow_skyline(learned, world, seed=seed)
        else:
            result = train_on_labels(learned, world.train, world.validation, world.click_model, training)
        if report is not None:
            report(result)
        return learned
    assert logs is not None, f"{method} learns from clicks"
    exposure: Exposure = "known" if known else "last-rank" if last_rank else "counted"
    train, validation = logged_parts(world, logs, risk, exposure=exposure, trust=trust)
    if scorer == "gbdt":
        known_start = Trees.on(world.logging_scorer, features)
        learned = known_start if start else logging_model("gbdt", train, validation, seed=seed)
    elif start:
        learned.load_state_dict(world.logging_scorer.state_dict())
    result = learn(learned, method_named(method), train, validation, training=training, keep_start=start)
    if report is not None:
        report(result)
    return learned if not deploy or may_deploy(learned, validation, deploy, risk.delta) else world.logging_scorer


def may_deploy(scorer: torch.nn.Module, part: LoggedPart, rule: str, delta: float) -> bool:
    """Whether the rule lets the scorer replace the logging policy, by the clicks of this part."""
    rho = known_logging_exposure(score(scorer, part.data.features), part.log.offsets, part.examination)
    return DEPLOYMENT_RULES[rule](part.log, exposure_ratio(part.log, rho, part.logging_exposure), delta)


def grow_skyline(scorer: Trees, world: World, *, seed: int) -> FitResult:
    """Grow trees, in place, for the highest expected NDCG on the labels of the training queries.

    To twice the cutoff, because documents just below what is shown teach too. Other scorers maximise expected clicks
    under the true relevance, as in the paper.
    """
    cutoff = 2 * CUTOFF
    objective, judge = (
        skyline(normalised_gains(part.require_labels(), part.offsets, cutoff), part.offsets, discounts(cutoff))
        for part in (world.train, world.validation)
    )
    return boost(scorer, world.train, objective, validation=(world.validation, judge), long_steps=True, seed=seed)


def logged_parts(
    world: World,
    logs: SimulatedLogs,
    risk: Risk = PAPER_RISK,
    *,
    exposure: Exposure = "counted",
    trust: TrustBias | None = None,
) -> tuple[LoggedPart, LoggedPart]:
    """Return the logs with their features and the logging exposure, exact or counted from each."""

    def part(name: str) -> LoggedPart:
        log, scores = getattr(logs, name), world.logging_scores[name]

        def logged(curve: NDArray[np.float64]) -> NDArray[np.float64]:
            if exposure == "known":
                return known_logging_exposure(scores, log.offsets, curve)
            if exposure == "last-rank":
                return last_rank_known_exposure(log, scores, curve)
            return estimated_logging_exposure(log, curve)

        examination = world.click_model.examination if trust is None else trust.examination
        found = LoggedPart(
            getattr(world, name), log, examination, logged(examination), risk=risk, known=exposure == "known"
        )
        return found if trust is None else replace(found, trust=LoggedTrust(trust.beta, logged(trust.beta)))

    return part("train"), part("validation")


def true_clicks(scorer: torch.nn.Module, world: World, traffic: NDArray[np.float64] | None = None) -> float:
    """Return the expected clicks per interaction on the training queries, if users clicked by the labels alone."""
    train = world.train
    rho = known_logging_exposure(score(scorer, train.features), train.offsets, world.click_model.examination)
    clicks = query_sums(rho * world.relevance("train"), train.offsets)
    return float(clicks.mean() if traffic is None else traffic @ clicks)


def evaluate(scorer: torch.nn.Module, test: RankingData, gain: Gain = "exponential") -> tuple[float, float]:
    """Return NDCG@5 on the test labels: expected under the stochastic policy, and of the ranking by score."""
    scores, labels = score(scorer, test.features), test.require_labels()
    expected = expected_ndcg(scores, labels, test.offsets, CUTOFF, gain=gain)
    return float(expected.mean()), float(ndcg_by_score(scores, labels, test.offsets, CUTOFF, gain=gain).mean())
