"""The whole way on a made-up world, as a user would go it: a log is written, aggregated, learned from and certified."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saferank.engine.plackett_luce import exposure
from saferank.engine.types.ranking_data import RankingData
from saferank.lab.raw_log import write_raw_log
from saferank.lab.world import World
from saferank.learning.fit_policy import PolicySettings, fit_policy
from saferank.learning.learn_from_log import LearningSettings
from saferank.learning.training_loop import TrainingSettings
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.policy.policy import Policy
from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.exposure_shift import Changes, exposure_changes
from saferank.verdict.new_ranker import ranker_of_policy


@dataclass(frozen=True, eq=False)
class WholeWay:
    """What came out, and the truth that only a made-up world has."""

    policy: Policy
    log: AggregatedLog
    certificate: Certificate
    changes: Changes
    true_improvement: float
    """Clicks per interaction."""


def go_whole_way(world: World, data: RankingData, interactions: int, folder: Path, seed: int) -> WholeWay:
    """Log so many interactions of the world's logging policy, whose scores are known; learn; certify.

    `data` are the training queries of the world with raw features and ids. Written to the folder: `log.parquet`, the
    `model`, and `certificate.json`. The policy is to be served as it was learned: rankings drawn from it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores = world.logging_scores["train"]
    model = world.click_model
    write_raw_log(folder / "log.parquet", data, scores, model, interactions, np.random.default_rng([seed, 5]))
    log = load_log(folder / "log.parquet", cutoff=model.cutoff)
    learning = PolicySettings(LearningSettings(training=TrainingSettings(seed=seed)), baselines=False)
    origin = {"examination": "given"}
    policy = fit_policy(log, data, model.examination, learning, logging_scores=scores, origin=origin).policy
    policy.save(folder / "model")
    policy = Policy.load(folder / "model")
    ranker = ranker_of_policy(policy, data, "sampled")
    settings = CertifySettings(trust_examination=True)  # it is known here, and a small log cannot check it
    certificate = certify(ranker, log, settings, examination=model.examination, logging_scores=scores)
    certificate.write(folder / "certificate.json")
    new, old = policy.exposure(data), exposure(scores, data.offsets, model.examination)
    truth = float((new - old) @ world.relevance("train")) / data.queries
    return WholeWay(policy, log, certificate, exposure_changes(policy, log, data, serve_as="sampled"), truth)
