"""One round in a made-up world, as a user would go through it: log, aggregate, learn, certify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saferank.engine.types.ranking_data import RankingData
from saferank.features.schema import FeatureSchema
from saferank.lab.raw_log import write_raw_log
from saferank.lab.world import World
from saferank.learning.fit_policy import fit_policy
from saferank.learning.settings import FitSettings
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.policy.policy import Policy, ScorerKind
from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.new_ranker import ranker_of_policy


@dataclass(frozen=True, eq=False)
class LearnedPolicy:
    """A policy learned from the log of another one."""

    policy: Policy
    log: AggregatedLog


def production_policy(world: World, data: RankingData, scorer: str = "mlp") -> Policy:
    """Return the world's logging policy as one that reads the raw features of `data`."""
    return Policy(ScorerKind(scorer), world.logging_scorer, FeatureSchema.of(data), world.click_model.examination)


def log_and_learn(
    world: World,
    data: RankingData,
    live: Policy,
    interactions: int,
    folder: Path,
    settings: FitSettings,
    rng: np.random.Generator,
    *,
    start: Policy | None = None,
) -> LearnedPolicy:
    """Log so many interactions of the live policy, write them to the folder as log.parquet, and learn from them.

    `data` are the training queries of the world with raw features and ids. The live policy draws its rankings at
    random and its scores are known, so its exposure is exact.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores, model = live.scores(data), world.click_model
    write_raw_log(folder / "log.parquet", data, scores, model, interactions, rng)
    log = load_log(folder / "log.parquet", cutoff=model.cutoff)
    origin = {"examination": "given"}
    fitted = fit_policy(log, data, model.examination, settings, logging_scores=scores, start=start, origin=origin)
    return LearnedPolicy(fitted.policy, log)


def certify_learned(
    learned: LearnedPolicy,
    world: World,
    data: RankingData,
    live: Policy,
    delta: float = 0.05,
    *,
    earlier: Sequence[AggregatedLog] = (),
    ledger: Path | None = None,
) -> Certificate:
    """Return the verdict on a learned policy, to be served as it was learned: by drawing rankings from it.

    With a ledger, the look has the share of delta that earlier looks at this data have left.
    """
    ranker = ranker_of_policy(learned.policy, data, "sampled")
    settings = CertifySettings(delta=delta, trust_examination=True)  # known here, and a small log cannot check it
    scores = live.scores(data)
    return certify(
        ranker,
        learned.log,
        settings,
        examination=world.click_model.examination,
        logging_scores=scores,
        earlier=earlier,
        ledger=ledger,
    )


def true_utility(policy: Policy, world: World, data: RankingData) -> float:
    """Return the expected clicks per interaction, queries coming equally often; only a made-up world knows it."""
    return float(policy.exposure(data) @ world.relevance("train")) / data.queries
