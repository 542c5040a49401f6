"""Round after round: a policy goes live, its log teaches the next one, and only what is certified replaces it."""

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from saferank.engine.types.ranking_data import RankingData
from saferank.lab.end_to_end import certify_learned, log_and_learn, production_policy, true_utility
from saferank.lab.world import World
from saferank.learning.settings import FitSettings
from saferank.logs.aggregated_log import AggregatedLog
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
    progress: Callable[[Round], None] | None = None,
) -> list[Round]:
    """Run the loop on the training queries of a world, beginning with its logging policy.

    `data` are those queries with raw features and ids. Each round logs so many interactions of the live policy, which
    draws its rankings at random; its scores are known. The next policy starts from the live one.

    Without `certified` it learns from this round's log alone, split as by default, and goes live whatever it is. With
    it, the loop is that of docs/loop.md: the logs of the live policy are read together as long as it is live, those of
    the policies before it are earlier logs, and the new policy goes live if the verdict on the held-out part is DEPLOY,
    at the delta that the ledger has left. It is not asked for if learning foresees hardly any chance of it.
    """
    live = production_policy(world, data)
    earlier: list[AggregatedLog] = []
    done: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="saferank-") as folder:
        ledger = Path(folder) / "ledger.json"
        for number in range(1, rounds + 1):
            logs = f"live-{len(earlier)}" if certified else f"round-{number}"
            policy, log = log_and_learn(
                world,
                data,
                live,
                interactions,
                Path(folder) / logs / f"round-{number:02}.parquet",
                replace(settings, training=replace(settings.training, seed=seed + number)),
                np.random.default_rng([seed, 4, number]),
                month=number,
                split=HashSplit(LOOP_SHARES) if certified else None,
                pooled=True,
                start=live,
                earlier=earlier,
            )
            verdict, lower = NOT_ASKED, math.nan
            if certified:
                verdict, lower = _verdict(policy, log, world, data, live, earlier, ledger)
            if verdict in (NOT_ASKED, Verdict.DEPLOY.value):
                live = policy
                if certified:
                    earlier.append(log)
            foreseen = policy.manifest["training"]["chosen"]
            done.append(
                Round(
                    number,
                    true_utility(live, world, data),
                    true_utility(policy, world, data),
                    verdict,
                    lower,
                    math.nan if foreseen is None else foreseen["gain"],
                    policy.kind.settings.get("sizes", {}).get("root", 0),
                )
            )
            if progress is not None:
                progress(done[-1])
    return done


def _verdict(
    policy: Policy,
    log: AggregatedLog,
    world: World,
    data: RankingData,
    live: Policy,
    earlier: list[AggregatedLog],
    ledger: Path,
) -> tuple[str, float]:
    training = policy.manifest["training"]
    if training["best_epoch"] == 0:
        return NOTHING_NEW, math.nan
    if training["chosen"] is not None and training["chosen"]["chance"] < WORTH_A_LOOK:
        return NOT_YET, math.nan
    try:
        found = certify_learned(policy, log, world, data, live, earlier=earlier, ledger=ledger)
    except Refused as refused:
        return f"refused: {refused.code}", math.nan
    return found.verdict.value, found.lower
