"""Ten rounds of log, learn, certify, deploy: `python benchmarks/closed_loop.py`.

The true utility of what is live after each round: with the defaults and a certificate, and with IPS or doubly robust
learning that goes live whatever it is, from the same start and with the same trees. With a certificate, what goes live
is as flat as is proven (`certify --explore`), to learn more from its log. The logging policy of each round is the one
that is live, so its exposure is known. Each finished run is a line of runs.jsonl in --out, and is not run
again. Exit code 1 if anything that went live with a certificate was worse than what it replaced.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from rich.console import Console
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.types.ranking_data import RankingData
from saferank.features.load_features import with_ids
from saferank.lab.end_to_end import certify_learned, log_and_learn, production_policy, true_utility
from saferank.lab.world import World, make_world, prepare
from saferank.learning.settings import FitSettings
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.split import HashSplit
from saferank.policy.policy import Policy
from saferank.report.chart_style import inline, on_white
from saferank.report.figures import save_figure
from saferank.verdict.certificate import Verdict
from saferank.verdict.checks import Refused

LOOP_SHARES = (0.4, 0.1, 0.5)
"""Of train, validation and certify in a certified loop: all of a log teaches once it is an earlier one."""
WORTH_A_LOOK = 0.3
"""Foreseen chance of a proof from which on the held-out part is looked at: each look costs delta."""
NOT_ASKED, NOTHING_NEW, NOT_YET = "not asked", "nothing new", "not yet"
"""Instead of a verdict: without certificates; if nothing was learned; if a proof is not likely enough yet."""
CERTIFIED, AS_IT_IS = "defaults, certified", "defaults, certified, not flattened"
COLOURS = {
    CERTIFIED: "#d55e00",
    AS_IT_IS: "#e69f00",
    "IPS, blindly": "#0072b2",
    "DR, blindly": "#009e73",
    "IPS (neural network), blindly": "#999999",
}
WAYS = {
    CERTIFIED: (FitSettings(), True),
    AS_IT_IS: (FitSettings(), True),
    "IPS, blindly": (FitSettings(method="exposure-ips"), False),
    "DR, blindly": (FitSettings(method="doubly-robust"), False),
    "IPS (neural network), blindly": (FitSettings(method="exposure-ips", scorer="mlp"), False),
}
DEFAULT_WAYS = (CERTIFIED, "IPS, blindly", "DR, blindly")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--interactions", type=float, nargs="+", default=[2e3, 3e4], help="of each round")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=DEFAULT_WAYS)
    parser.add_argument("--fraction", type=float, default=0.5, help="share of the labels behind the first ranker")
    parser.add_argument("--out", type=Path, default=Path("closed-loop"))
    options = parser.parse_args()
    console = Console()
    model = PositionBasedModel(relevance_slope=0.2, relevance_noise=0.05)
    raw = load_dataset("synthetic:small")
    dataset, data = prepare(raw), with_ids(raw.train)

    @cache
    def world_of(run: int) -> World:
        return make_world(dataset, seed=run, fraction=options.fraction, click_model=model)

    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "runs.jsonl"
    found = _read(results)
    sizes = [round(n) for n in options.interactions]
    asked = [(run, n, way) for run in range(options.runs) for n in sizes for way in options.ways]
    for run, n, way in asked:
        key = {"way": way, "interactions": n, "run": run, "rounds": options.rounds, "fraction": options.fraction}
        if any(key.items() <= one.items() for one in found):
            continue

        def tell(done: Round, way: str = way, run: int = run, n: int = n) -> None:
            console.print(
                f"run {run}, {n:,} per round, {way}, round {done.number}: live {done.utility:.5f}, "
                f"learned {done.candidate:.5f}, {done.verdict}",
                highlight=False,
            )

        settings, certified = WAYS[way]
        world, began = world_of(run), time.monotonic()
        rounds = closed_loop(
            world, data, settings=settings, certified=certified, explore=way == CERTIFIED, rounds=options.rounds,
            interactions=n, seed=run, progress=tell,
        )  # fmt: skip
        start = true_utility(production_policy(world, data), world, data)
        row = key | {
            "seconds": round(time.monotonic() - began, 1),
            "utilities": [start, *(one.utility for one in rounds)],
            "rounds_in_full": [asdict(one) for one in rounds],
        }
        with results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        found.append(row)
    history = {
        (way, n, run): one["utilities"]
        for run, n, way in asked
        for one in found
        if (one["way"], one["interactions"], one["run"]) == (way, n, run)
        and (one["rounds"], one["fraction"]) == (options.rounds, options.fraction)
    }
    console.print(_table(history, sizes, options.ways))
    save_figure(closed_loop_figure(history), options.out, "closed_loop")
    console.print(f"The picture is {options.out / 'closed_loop.png'}.")
    return 1 if sum(_falls(utilities) for (way, _, _), utilities in history.items() if WAYS[way][1]) else 0


def _read(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def _falls(utilities: list[float]) -> int:
    return sum(after < before for before, after in pairwise(utilities))


def _table(history: dict[tuple[str, int, int], list[float]], sizes: list[int], ways: list[str]) -> Table:
    table = Table(title="True clicks per interaction of what is live, mean over runs")
    columns = ("interactions per round", "way", "at the start", "at the end", "of each run", "rounds in which it fell")
    for column in columns:
        table.add_column(column, justify="left" if column == "way" else "right")
    for n in sizes:
        for way in ways:
            runs = [utilities for (name, size, _), utilities in history.items() if (name, size) == (way, n)]
            begin, end = (sum(one[place] for one in runs) / len(runs) for place in (0, -1))
            each = " ".join(f"{one[-1]:.3f}" for one in runs)
            falls, rounds = sum(map(_falls, runs)), sum(len(one) - 1 for one in runs)
            table.add_row(f"{n:,}", way, f"{begin:.4f}", f"{end:.4f}", each, f"{falls} of {rounds}")
    return table


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
    temperature: float = 1.0
    """That the scores were divided by, if it went live."""


def closed_loop(
    world: World,
    data: RankingData,
    *,
    settings: FitSettings,
    certified: bool,
    explore: bool = False,
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
    at the delta that the ledger has left. It is not asked for if learning foresees hardly any chance of it. With
    `explore` it goes live as flat as is proven; utilities of what is live are those of the flatter policy.
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
            verdict, lower, temperature = NOT_ASKED, math.nan, 1.0
            if certified:
                verdict, lower, temperature = _verdict(policy, log, world, data, live, earlier, ledger, explore)
            if verdict in (NOT_ASKED, Verdict.DEPLOY.value):
                live = policy.at_temperature(temperature)
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
                    temperature,
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
    explore: bool,
) -> tuple[str, float, float]:
    training = policy.manifest["training"]
    if training["best_epoch"] == 0:
        return NOTHING_NEW, math.nan, 1.0
    if training["chosen"] is not None and training["chosen"]["chance"] < WORTH_A_LOOK:
        return NOT_YET, math.nan, 1.0
    try:
        found = certify_learned(policy, log, world, data, live, earlier=earlier, ledger=ledger, explore=explore)
    except Refused as refused:
        return f"refused: {refused.code}", math.nan, 1.0
    return found.verdict.value, found.lower, found.temperature


def closed_loop_figure(history: Mapping[tuple[str, int, int], list[float]]) -> alt.HConcatChart:
    """One panel per number of interactions per round, one line per run; history: (way, interactions, run)."""
    rounds = max(map(len, history.values()))
    ways = [way for way in COLOURS if any(key[0] == way for key in history)]
    panels = []
    for interactions in sorted({key[1] for key in history}):
        rows = [
            {"way": way, "run": run, "round": number, "utility": utility}
            for (way, n, run), utilities in history.items()
            if n == interactions
            for number, utility in enumerate(utilities)
        ]
        chart = (
            alt.Chart(inline(rows))
            .mark_line(point=alt.OverlayMarkDef(size=18), strokeWidth=1.6)
            .encode(
                x=alt.X("round:Q").axis(title="round", values=list(range(rounds)), format="d", grid=False),
                y=alt.Y("utility:Q").scale(zero=False).axis(title="true clicks per interaction", format=".3f"),
                color=alt.Color("way:N", title=None)
                .scale(domain=ways, range=[COLOURS[way] for way in ways])
                .legend(symbolSize=120),
                detail="run:N",
                tooltip=["way:N", "run:N", "round:Q", alt.Tooltip("utility:Q", format=".5f")],
            )
        )
        panels.append(chart.properties(width=330, height=260, title=f"{interactions:,} interactions per round"))
    return on_white(alt.hconcat(*panels, spacing=28))


if __name__ == "__main__":
    raise SystemExit(main())
