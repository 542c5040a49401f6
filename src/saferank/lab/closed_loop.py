"""Round after round: a policy goes live, its log teaches the next one, and only what is certified replaces it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from saferank.engine.types.ranking_data import RankingData
from saferank.lab.end_to_end import LearnedPolicy, certify_learned, production_policy, true_utility
from saferank.lab.raw_log import write_raw_log
from saferank.lab.world import World
from saferank.learning.fit_policy import fit_policy
from saferank.learning.settings import FitSettings
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.logs.split import HashSplit
from saferank.policy.policy import Policy
from saferank.verdict.certificate import Verdict
from saferank.verdict.checks import Refused

LOOP_SHARES = (0.4, 0.1, 0.5)
"""Of train, validation and certify in a certified loop: all of a log teaches once it is an earlier one."""
WORTH_A_LOOK = 0.3
"""Foreseen chance of a proof from which on the held-out part is looked at: each look costs delta."""
NOT_ASKED, NOTHING_NEW, NOT_YET = "not asked", "nothing new", "not yet"
"""Instead of a verdict: without certificates; if nothing was learned; if a proof is not likely enough yet."""


@dataclass(frozen=True)
class Round:
    """What a round ended with. Utilities are exact, in clicks per interaction, and nobody in the loop sees them."""

    number: int
    utility: float
    """Of what is live after the round."""
    candidate: float
    """Of what the round taught."""
    verdict: str
    lower: float
    """Bound of the improvement, if it was certified."""
    foreseen: float
    """Gain that learning expected, if it did."""
    trees: int
    """Of the candidate; 0 for other scorers."""


def closed_loop(
    world: World,
    data: RankingData,
    *,
    settings: FitSettings,
    certified: bool,
    rounds: int,
    interactions: int,
    seed: int,
    shares: tuple[float, ...] = LOOP_SHARES,
    progress: Callable[[Round], None] | None = None,
) -> list[Round]:
    """Run the loop on the training queries of a world, beginning with its logging policy.

    `data` are those queries with raw features and ids. Each round logs so many interactions of the live policy, which
    draws its rankings at random; its scores are known. The next policy starts from the live one.

    Without `certified` it learns from this round's log alone, split as by default, and goes live whatever it is. With
    it, the loop is that of docs/loop.md: the logs of the live policy are read together as long as it is live, those of
    the policies before it are earlier logs, and the new policy goes live if the verdict on the held-out part (the last
    of `shares`) is DEPLOY, at the delta that the ledger has left. It is not asked for if learning foresees hardly any
    chance of it.
    """
    live = production_policy(world, data)
    earlier: list[AggregatedLog] = []
    done: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="saferank-") as folder:
        ledger = Path(folder) / "ledger.json"
        for number in range(1, rounds + 1):
            scores = live.scores(data)
            logs = Path(folder) / (f"live-{len(earlier)}" if certified else f"round-{number}")
            logs.mkdir(exist_ok=True)
            rng = np.random.default_rng([seed, 4, number])
            write_raw_log(
                logs / f"round-{number:02}.parquet", data, scores, world.click_model, interactions, rng, month=number
            )
            split = HashSplit(shares) if certified else None
            log = load_log(logs, cutoff=world.click_model.cutoff, split=split)
            training = replace(settings.training, seed=seed + number)
            fitted = fit_policy(
                log,
                data,
                world.click_model.examination,
                replace(settings, training=training),
                logging_scores=scores,
                start=live,
                earlier=earlier,
                origin={"examination": "given"},
            )
            learned = LearnedPolicy(fitted.policy, log)
            verdict, lower = NOT_ASKED, float("nan")
            if certified:
                verdict, lower = _verdict(learned, world, data, live, earlier, ledger)
            if verdict in (NOT_ASKED, Verdict.DEPLOY.value):
                live = learned.policy
                if certified:
                    earlier.append(log)
            done.append(_round(number, live, learned.policy, verdict, lower, world, data))
            if progress is not None:
                progress(done[-1])
    return done


def _verdict(
    learned: LearnedPolicy,
    world: World,
    data: RankingData,
    live: Policy,
    earlier: list[AggregatedLog],
    ledger: Path,
) -> tuple[str, float]:
    training = learned.policy.manifest["training"]
    if training["best_epoch"] == 0:
        return NOTHING_NEW, float("nan")
    if training["chosen"] is not None and training["chosen"]["chance"] < WORTH_A_LOOK:
        return NOT_YET, float("nan")
    try:
        found = certify_learned(learned, world, data, live, earlier=earlier, ledger=ledger)
    except Refused as refused:
        return f"refused: {refused.code}", float("nan")
    return found.verdict.value, found.lower


def _round(
    number: int, live: Policy, candidate: Policy, verdict: str, lower: float, world: World, data: RankingData
) -> Round:
    chosen = candidate.manifest["training"]["chosen"]
    return Round(
        number,
        true_utility(live, world, data),
        true_utility(candidate, world, data),
        verdict,
        lower,
        float("nan") if chosen is None else chosen["gain"],
        candidate.kind.settings.get("sizes", {}).get("root", 0),
    )
