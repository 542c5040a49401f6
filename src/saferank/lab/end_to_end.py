"""One round in a made-up world, as a user would go through it: log, aggregate, learn, certify."""

from collections.abc import Sequence
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
from saferank.logs.split import Split
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import weights_of
from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.new_ranker import ranker_of_policy


def production_policy(world: World, data: RankingData) -> Policy:
    """Return the world's logging policy as one that reads the raw features of `data`."""
    weights = weights_of(world.logging_scorer)
    return Policy(ScorerKind("mlp"), weights, FeatureSchema.of(data), world.click_model.examination)


def log_and_learn(
    world: World,
    data: RankingData,
    live: Policy,
    interactions: int,
    file: Path,
    settings: FitSettings,
    rng: np.random.Generator,
    *,
    month: int = 0,
    split: Split | None = None,
    pooled: bool = False,
    start: Policy | None = None,
    earlier: Sequence[AggregatedLog] = (),
) -> tuple[Policy, AggregatedLog]:
    """Log so many interactions of the live policy to this file; return a policy learned from them, and the log.

    `data` are the training queries of the world with raw features and ids. The live policy draws its rankings at
    random and its scores are known, so its exposure is exact. `pooled`: learn from all logs in the folder of the file.
    For `start` and `earlier` see `fit_policy`.
    """
    scores, model = live.scores(data), world.click_model
    write_raw_log(file, data, scores, model, interactions, rng, month=month)
    log = load_log(file.parent if pooled else file, cutoff=model.cutoff, split=split)
    fitted = fit_policy(
        log, data, model.examination, settings, logging_scores=scores, start=start, earlier=earlier,
        origin={"examination": "given"},
    )  # fmt: skip
    return fitted.policy, log


def certify_learned(
    policy: Policy,
    log: AggregatedLog,
    world: World,
    data: RankingData,
    live: Policy,
    *,
    earlier: Sequence[AggregatedLog] = (),
    ledger: Path | None = None,
    explore: bool = False,
) -> Certificate:
    """Return the verdict on a learned policy, to be served as it was learned: by drawing rankings from it.

    With a ledger, the look has the share of delta that earlier looks at this data have left.
    """
    return certify(
        ranker_of_policy(policy, data, "sampled"),
        log,
        CertifySettings(trust_examination=True, explore=explore),  # known here, and a small log cannot check it
        examination=world.click_model.examination,
        logging_scores=live.scores(data),
        earlier=earlier,
        ledger=ledger,
    )


def true_utility(policy: Policy, world: World, data: RankingData) -> float:
    """Return the expected clicks per interaction, queries coming equally often; only a made-up world knows it."""
    return float(policy.exposure(data) @ world.relevance("train")) / data.queries
