"""The certificate: how often it errs in which world, how much data it needs, and what it costs.

Worlds: shops whose truth is known, drawn again and again; the share of logs with a false DEPLOY and with a lower bound
above the truth must not exceed delta wherever a promise is made, clean logs must not be refused, and a better ranker
must pass. Bounds: worlds whose every outcome is enumerated. Power: the paper's setting; the interactions at which each
bound decides in four of five logs. Cost: bounds as the patterns of 10^8 interactions grow in number.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from saferank.datasets.dataset import load_dataset
from saferank.engine.bounds.betting import condense
from saferank.engine.bounds.differences import Differences
from saferank.engine.bounds.one_look import in_random_order, rules_out
from saferank.engine.bounds.registry import BOUNDS
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.plackett_luce import exposure
from saferank.engine.types.click_patterns import ClickPatterns
from saferank.lab import world as paper
from saferank.lab.simulate import simulate
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import Refused
from saferank.verdict.new_ranker import NewRanker

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.engine.bounds import worlds
from tests.shop_log import ShopLog
from tests.shops import (
    Bots,
    Cascade,
    Filtered,
    Ranker,
    SoldOut,
    Tastes,
    TrustBias,
    TwoPerBrand,
    World,
    arriving,
    by_hour,
    changed_once,
    in_slots,
    learned,
    make_shop,
    nightly,
    noisy,
    regional,
    with_rows,
    with_sales,
)

DELTA = 0.05
SHOPS = 20
"""Different shops of a world; its logs take turns."""
CHUNK = 25
"""Logs of one task."""
LOGGING_POLICIES = 4
"""Of the table of power: how much data a verdict needs depends on the policy that made the log most of all."""
MOST_POWER = 1_000_000
SHARPENED = 1.48
"""Times the scores: divided by 1.25 it is better than the ranker itself, by 1.5 hardly worse."""
Generator = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A kind of world, what is certified in it, and whether `certify` promises anything there."""

    name: str
    make: Callable[[Generator], World]
    promise: bool = True
    """Whether false DEPLOYs and violated bounds have to stay below delta, among the verdicts that are given."""
    clean: bool = True
    """Whether nothing is wrong with the log, so that it must not be refused."""
    null: str = "learned"
    """What is certified: `learned` by clicks from the same log, `no better` than the ranker that made it, `fit`, that
    ranker `sharpened`, as flat as is proven (a little too flat is a little worse than it was), or a model that ranks by
    a `leak`, a feature that is the click-through of the whole log."""
    interactions: int = 4000
    units: bool = False
    split: Literal["impression", "query", "unit"] = "impression"
    known: bool = False
    given: float | None = None
    """Power of an examination curve that is given; the truth is 1."""
    trust: bool = False
    missing: int = 0
    """The most shown document of every so many queries has no features."""
    hidden: bool = False
    """Whether the log does not tell what rankings and demand follow: times are mixed up."""
    regions: int = 0
    """Regions, which the log has as a column: the number of a slot modulo this. Times are mixed up then too."""


def plackett_luce(**shop: Any) -> Callable[[Generator], World]:
    def make(rng: Generator) -> World:
        made = make_shop(rng, **shop)
        return World(made, noisy(made, rng))

    return make


def with_users(users: Any) -> Callable[[Generator], World]:
    return lambda rng: replace(plackett_luce()(rng), users=users)


def deterministic(rng: Generator) -> World:
    shop = make_shop(rng)
    return World(shop, noisy(shop, rng, noise=0.3, sampled=False))


def every_night(drift: float) -> Callable[[Generator], World]:
    def make(rng: Generator) -> World:
        shop = make_shop(rng, days=10, drift=drift)
        return World(shop, nightly(shop, rng))

    return make


def hourly(share: float = 0.6, *, demand: bool = True, ranker: bool = True) -> Callable[[Generator], World]:
    """Demand, the ranker or both follow the hour of the day; rankings are drawn."""

    def make(rng: Generator) -> World:
        shop = make_shop(rng, hourly=share) if demand else in_slots(make_shop(rng))
        return World(shop, by_hour(shop, rng, noise=0.5) if ranker else noisy(shop, rng))

    return make


def sales(**options: Any) -> Callable[[Generator], World]:
    """Sales of three hours, which demand, the ranker or both follow."""
    return lambda rng: World(*with_sales(make_shop(rng), rng, **options))


def new_products(rng: Generator) -> World:
    shop = make_shop(rng, days=14)
    return World(shop, arriving(shop, rng))


def two_tastes(share: float) -> Callable[[Generator], World]:
    """Two groups of users want different documents, and the ranker knows who is who."""

    def make(rng: Generator) -> World:
        shop = make_shop(rng, hourly=share)
        slots = np.arange(len(shop.relevance)) % 2
        shop = replace(shop, relevance=shop.relevance[slots])
        return World(shop, Ranker(by_hour(shop, rng, noise=0.5).scores[slots], sampled=True))

    return make


def nearly_best(rng: Generator) -> World:
    """Rankings are drawn from sharp scores that know the relevance: the best possible gain is about 1%."""
    shop = make_shop(rng, queries=100)
    return World(shop, noisy(shop, rng, noise=0.0, scale=5.0))


def filters(rng: Generator) -> World:
    """In 40% of the searches a filter, which is not in the query, leaves half of the documents."""
    shop = make_shop(rng)
    return World(shop, Filtered(noisy(shop, rng).scores, sampled=True))


def sold_out(rng: Generator) -> World:
    """The most relevant quarter of the documents is sold out in 40% of the searches."""
    shop = make_shop(rng)
    best = shop.mean_relevance > np.quantile(shop.mean_relevance, 0.75, axis=1, keepdims=True)
    return World(shop, SoldOut(noisy(shop, rng, scale=2.0).scores, sampled=True, share=np.where(best, 0.4, 0.03)))


def local_documents(local: float) -> Callable[[Generator], World]:
    """A share of the documents is delivered to one of four regions only."""
    return lambda rng: World(*regional(make_shop(rng), rng, local=local))


def two_per_brand(rng: Generator) -> World:
    """Half of the documents are of one brand, of which a list shows two at most; they are wanted more."""
    shop = make_shop(rng)
    wanted = np.where(np.arange(shop.documents) < shop.documents // 2, 1.8, 1.0)
    shop = replace(shop, relevance=np.minimum(wanted * shop.relevance, 0.9))
    return World(shop, TwoPerBrand(noisy(shop, rng, scale=2.0).scores, sampled=True))


def once(rng: Generator) -> World:
    shop = make_shop(rng)
    return World(shop, changed_once(shop, noisy(shop, rng), noisy(shop, rng), 4))


CASES = {
    case.name: case
    for case in (
        Case("rankings drawn, scores known", plackett_luce(), null="no better", known=True),
        Case("rankings drawn, exposure counted", plackett_luce(), null="no better"),
        Case("counted, learned from the same log", plackett_luce()),
        Case("the same, 1,000 interactions", plackett_luce(), interactions=1000),
        Case("heavy-tailed traffic", plackett_luce(queries=100, zipf=1.2)),
        Case("flatter examination", plackett_luce(power=0.5)),
        Case("users repeat, --unit", with_users(Tastes()), units=True, split="unit", interactions=12_000),
        Case("users repeat, no --unit", with_users(Tastes()), promise=False),
        Case(
            "unseen queries, split by query",
            plackett_luce(queries=400),
            null="no better",
            split="query",
            interactions=12_000,
        ),
        Case("ranker changed once", once),
        Case("retrained every night", every_night(0.0), interactions=12_000),
        Case("every night, demand drifts a little", every_night(0.3), clean=False, interactions=12_000),
        Case("every night, demand drifts", every_night(0.6), clean=False, interactions=12_000),
        Case("wrong curve given, rankings drawn", plackett_luce(), clean=False, given=2.0),
        Case("wrong curve given, fixed ranker", deterministic, clean=False, given=2.0, null="no better"),
        Case("the same, trusted", deterministic, promise=False, clean=False, given=2.0, trust=True, null="no better"),
        Case("cascade users", with_users(Cascade()), clean=False),
        Case("trust bias", with_users(TrustBias()), clean=False),
        Case("10% bots", with_users(Bots()), clean=False),
        Case("features missing, every 2nd query", plackett_luce(), clean=False, missing=2),
        Case("features missing, every 20th query", plackett_luce(), missing=20),
        Case("a fitted model in the loop", plackett_luce(queries=100), null="fit"),
        Case("ranker and demand follow the hour", hourly(), clean=False, null="no better", interactions=12_000),
        Case("both follow the hour, demand a little", hourly(0.3), clean=False, null="no better", interactions=12_000),
        Case("only the ranker follows the hour", hourly(demand=False), null="no better", interactions=12_000),
        Case("only demand follows the hour", hourly(ranker=False), null="no better", interactions=12_000),
        Case("drawn, as flat as is proven", plackett_luce(), null="sharpened"),
        Case("filters that are not in the query", filters, clean=False, null="no better"),
        Case("a feature that knows the clicks", plackett_luce(), clean=False, null="leak"),
        Case("a fitted model, hardly anything to gain", nearly_best, null="fit"),
        Case("new products arrive", new_products, null="no better", interactions=12_000),
        *(
            Case(name, two_tastes(share), False, False, "no better", interactions=12_000, hidden=True)
            for name, share in (("the ranker knows two tastes", 0.6), ("the same, tastes more alike", 0.3))
        ),
        Case("ranker and demand follow sales", sales(), clean=False, null="no better", interactions=12_000),
        Case("both follow sales, a little", sales(wanted=1.5, boost=1.0), False, False, "no better", 12_000),
        Case("sales of other products than the ranker's", sales(together=False), null="no better", interactions=12_000),
        Case("the best products are often sold out", sold_out, False, False, "no better", interactions=12_000),
        Case("at most two of a brand", two_per_brand, False, False, "no better", interactions=12_000),
        *(
            Case(name, local_documents(share), False, False, "no better", interactions=12_000, regions=4)
            for name, share in (("30% of the documents are local", 0.3), ("3% of the documents are local", 0.03))
        ),
        Case("regions, and nothing is local", local_documents(0.0), null="no better", interactions=12_000, regions=4),
    )
}


@cache
def world_of(name: str, shop: int) -> World:
    return CASES[name].make(np.random.default_rng([list(CASES).index(name), shop]))


@cache
def tuned(name: str, shop: int, by: float) -> Ranker | None:
    """A ranker that is better by this share, or no better for 0; None if there is none."""
    world, rng = world_of(name, shop), np.random.default_rng([7, shop])
    try:
        return world.no_better(rng) if by == 0.0 else world.better(by, rng, noise=0.5)
    except ValueError:
        return None


def outcome(name: str, number: int, better: bool) -> dict[str, Any] | None:
    """Draw one log and certify on it."""
    case, shop = CASES[name], number % SHOPS
    world = world_of(name, shop)
    rng = np.random.default_rng([list(CASES).index(name), number, 1])
    drawn = world.draw(case.interactions, rng)
    groups = {"region": drawn.slot % case.regions} if case.regions else None
    if case.hidden or case.regions:
        order = rng.permutation(len(drawn.query))
        groups = groups and {"region": groups["region"][order]}
        drawn = replace(drawn, **{name: getattr(drawn, name)[order] for name in ("query", "unit", "ranking", "clicks")})
    log = drawn.aggregated(rng, units=case.units, split=case.split, groups=groups)
    data = world.shop.data()
    kept = _kept(drawn, case.missing)
    if better:
        ranker = tuned(name, shop, 0.1)
    elif case.null == "no better":
        ranker = tuned(name, shop, 0.0)
    elif case.null == "sharpened":
        ranker = Ranker(SHARPENED * world.logging.scores, sampled=True)
    elif case.null == "leak":
        statistics = log.statistics(PARTS, data)
        rate = statistics.clicks / np.maximum(statistics.times_shown, 1)
        data = replace(data, features=rate[:, None].astype(np.float32), feature_names=("rate",))
        ranker = Ranker(data.features.reshape(world.shop.queries, -1))
    else:
        ranker = fitted(world, log, number) if case.null == "fit" else learned(world.shop, log)
    if ranker is None:
        return None
    served = ranker.without(kept)
    new = NewRanker(
        with_rows(data, kept), ranker.flat[kept], "sampled" if ranker.sampled else "deterministic", complete=True
    )
    given = None if case.given is None else np.arange(1.0, world.shop.cutoff + 1.0) ** -case.given
    settings = CertifySettings(delta=DELTA, trust_examination=case.trust, details=False, explore=ranker.sampled)
    scores = world.logging.flat[kept] if case.known else None
    truth = world.improvement(served)
    try:
        found = certify(new, log, settings, examination=given, logging_scores=scores)
    except Refused as refused:
        return {"refused": refused.code}
    lower = found.lower
    if found.exploration:
        lower = found.exploration[-1].lower
        truth = world.improvement(Ranker(served.scores / np.float32(found.temperature), sampled=True))
    return {
        "verdict": found.verdict.value,
        "truth": truth / world.logging_utility,
        "false": found.verdict.value == "DEPLOY" and truth < 0.0,
        "violated": lower > truth,
        "above": found.upper < truth,
    }


def fitted(world: World, log: AggregatedLog, seed: int) -> Ranker:
    """What `saferank fit` learns by default from the log and features that know the relevance with noise."""
    from saferank.ranker import SafeRanker

    data = world.shop.features(np.random.default_rng([9, seed % SHOPS]))
    scores = SafeRanker(log1p=False, seed=seed).fit(log, data).predict(data)
    return Ranker(scores.reshape(world.shop.queries, world.shop.documents))


def _kept(drawn: ShopLog, missing: int) -> NDArray[np.bool_]:
    kept = np.ones(drawn.shop.queries * drawn.shop.documents, np.bool_)
    if missing:
        shown = np.zeros((drawn.shop.queries, drawn.shop.documents), np.int64)
        np.add.at(shown, (np.repeat(drawn.query, drawn.shop.cutoff), drawn.ranking.ravel()), 1)
        for query in range(0, drawn.shop.queries, missing):
            kept[query * drawn.shop.documents + int(shown[query].argmax())] = False
    return kept


def task(name: str, better: bool, first: int, last: int) -> tuple[str, bool, list[dict[str, Any]]]:
    found = [outcome(name, number, better) for number in range(first, last)]
    return name, better, [one for one in found if one is not None]


def show_worlds(
    console: Console, logs: int, better_logs: int, fits: int, processes: int, results: Path | None, world: str = ""
) -> bool:
    """Draw the logs, those that an earlier run left in `results` excepted; return whether every promise was kept."""
    done: dict[tuple[str, bool, int], list[dict[str, Any]]] = {}
    if results is not None and results.exists():
        for line in results.read_text().splitlines():
            name, better, first, found = json.loads(line)
            done[name, better, first] = found
    wanted = []
    for name, case in CASES.items():
        if world not in name:
            continue
        for better in (False, True):
            number = (fits if case.null == "fit" else logs) if not better else min(better_logs, logs)
            wanted += [(name, better, first, min(first + CHUNK, number)) for first in range(0, number, CHUNK)]
    begin = time.perf_counter()
    with ProcessPoolExecutor(processes) as pool:
        left = [one for one in wanted if one[:3] not in done]
        futures = {one: pool.submit(task, *one) for one in left}
        for one in track(left, "worlds", console=Console(stderr=True)):
            _, _, found = futures[one].result()
            done[one[:3]] = found
            if results is not None:
                with results.open("a") as file:
                    file.write(json.dumps([*one[:3], found]) + "\n")
    seconds = time.perf_counter() - begin
    return _worlds_table(console, [one[:3] for one in wanted], done, seconds)


def _worlds_table(
    console: Console, wanted: list[tuple[str, bool, int]], done: dict[tuple[str, bool, int], Any], seconds: float
) -> bool:
    table = Table(
        title=f"Worlds: certify at delta = {DELTA}, {SHOPS} shops each; DEPLOY of a ranker that is 10% better"
    )
    for column in ("world", "logs", "false DEPLOY", "lower > truth", "refused", "as", "better: DEPLOY", "refused"):
        table.add_column(column, justify="left" if column in ("world", "as") else "right")
    kept = True
    for name, case in CASES.items():
        if not any(key[0] == name for key in wanted):
            continue
        null, better = ([one for key in wanted if key[:2] == (name, b) for one in done[key]] for b in (False, True))
        given = [one for one in null if "verdict" in one]
        refused = Counter(one["refused"] for one in null if "refused" in one)
        wrong, violated = (sum(one[what] for one in given) / max(len(given), 1) for what in ("false", "violated"))
        error = 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / max(len(given), 1))
        share = 1.0 - len(given) / max(len(null), 1)
        broken = case.promise and (wrong > DELTA + error or violated > DELTA + error)
        broken |= case.clean and case.promise and share > 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / max(len(null), 1))
        kept &= not broken
        deployed = sum(one.get("verdict") == "DEPLOY" for one in better) / max(len(better), 1)
        turned_down = sum("refused" in one for one in better) / max(len(better), 1)
        table.add_row(
            name, f"{len(null):,}", f"{wrong:.3f}", f"{violated:.3f}", f"{share:.1%}",
            refused.most_common(1)[0][0] if refused else "", f"{deployed:.1%}" if better else "none is",
            f"{turned_down:.1%}" if better else "", style="bold red" if broken else "" if case.promise else "dim",
        )  # fmt: skip
    console.print(table)
    console.print(f"Among the verdicts given. Dim: no promise is made. {seconds:,.0f} s on {os.cpu_count()} cores.\n")
    return kept


# The bounds by themselves


def says_deploy(name: str, differences: Differences) -> bool:
    if name == "one-look":
        return rules_out(differences, in_random_order(differences), 0.0, DELTA)
    return BOUNDS[name].lower(differences, DELTA) > 0.0


def show_bounds(console: Console, logs: int) -> None:
    table = Table(title=f"Share of false DEPLOY, delta = {DELTA}, {logs:,} logs each, N = 3 / 100 / 10,000")
    made = [worlds.paper_world(), worlds.dcg_world(), worlds.correlated_world(), worlds.heavy_world()]
    table.add_column("bound")
    for world in made:
        table.add_column(world.name, justify="right")
    rates: dict[str, list[str]] = {name: [] for name in BOUNDS}
    for world in made:
        values, chances = world.chances_of_values()
        variance = float(chances @ values**2)
        found: dict[str, list[float]] = {name: [] for name in BOUNDS}
        for n in (3, 100, 10_000):
            draws = [
                replace(world.outcomes(), values=values[c > 0], counts=c[c > 0], guess=variance, salt=str(number))
                for number, c in enumerate(np.random.default_rng(n).multinomial(n, chances, size=logs))
            ]
            for name in BOUNDS:
                found[name].append(float(np.mean([says_deploy(name, one) for one in draws])))
        for name in BOUNDS:
            rates[name].append(" / ".join(f"{rate:.3f}" for rate in found[name]))
    for name, bound in BOUNDS.items():
        table.add_row(name, *rates[name], style="" if bound.guarantee else "dim")
    console.print(table)
    error = 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / logs)
    console.print(f"Up to {DELTA + error:.3f} is within three standard errors of delta. Dim: no promise.\n")


def shifted_policy(world: paper.World, factor: float) -> NDArray[np.float64]:
    """Exposure of the logging policy's scores plus so much of the label that its true utility is `factor` times."""
    data, relevance = world.train, world.relevance("train")
    examination = world.click_model.examination
    labels, sign = data.require_labels(), np.float32(1.0 if factor > 1.0 else -1.0)

    def shown(push: float) -> NDArray[np.float64]:
        scores = world.logging_scores["train"] + sign * np.float32(push) * labels
        return exposure(scores, data.offsets, examination).astype(np.float64)

    goal, low, high = factor * float(shown(0.0) @ relevance), 0.0, 20.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        short = sign * (goal - float(shown(middle) @ relevance)) > 0
        low, high = (middle, high) if short else (low, middle)
    return shown(high)


def show_power(console: Console, logs: int) -> None:
    """Held-out interactions to decide, with exposure known and weights limited as `certify` would."""
    dataset, factors = paper.prepare(load_dataset("synthetic:small")), (1.05, 1.02, 0.95)
    found: dict[str, dict[float, list[int]]] = {name: {factor: [] for factor in factors} for name in BOUNDS}
    for seed in track(range(LOGGING_POLICIES), "Power", console=Console(stderr=True)):
        world = paper.make_world(dataset, seed=seed)
        data, examination = world.train, world.click_model.examination
        old = exposure(world.logging_scores["train"], data.offsets, examination).astype(np.float64)
        log = simulate(
            world.logging_scores["train"], data.offsets, world.relevance("train"), examination,
            4_000_000, np.random.default_rng(0), keep_rankings=10_000,
        )  # fmt: skip
        assert log.rankings is not None
        patterns = ClickPatterns.of_rankings(log.rankings, data.offsets)
        for factor in factors:
            new = shifted_policy(world, factor)
            populations = [_population(patterns, data, new, old, limit, factor) for limit in (20.0, 50.0, 100.0)]
            for name in BOUNDS:
                found[name][factor].append(min(_first(name, population, logs) for population in populations))
    table = Table(title=f"Held-out interactions to decide in 4 of 5 logs: {LOGGING_POLICIES} logging policies")
    table.add_column("bound")
    for factor in factors:
        table.add_column(f"{factor - 1:+.0%}", justify="right")
    for name, bound in BOUNDS.items():
        cells = [" / ".join(_told(number) for number in found[name][factor]) for factor in factors]
        table.add_row(name, *cells, style="" if bound.guarantee else "dim")
    for other in ("betting", "student-t"):
        ratios = [
            np.exp(np.mean(np.log(found["one-look"][factor]) - np.log(found[other][factor]))) for factor in factors
        ]
        table.add_row(f"one-look / {other}", *(f"{ratio:.2f}" for ratio in ratios))
    console.print(table)
    console.print(
        "The paper's setting. Weights limited to 20, 50 or 100, whichever needs less; steps of a factor 1.19. "
        "-5%: KEEP. Last rows: the mean ratio of what both need.\n"
    )


def _told(number: int) -> str:
    return f"{number:,}" if number <= MOST_POWER else f"> {MOST_POWER:,}"


def _population(
    patterns: ClickPatterns, data: Any, new: NDArray[np.float64], old: NDArray[np.float64], limit: float, factor: float
) -> Any:
    """Return the terms of which logs are drawn; for a worse policy, those of the upper bound."""
    raised = np.maximum(old, new / limit)
    examination = PositionBasedModel().examination
    population = condense(worlds.known_differences(patterns, data.offsets, new, raised, examination))
    if factor > 1.0:
        return population
    # what the limit leaves out might all be clicked
    rest = float((new - np.minimum(new / old, limit) * old).sum()) / data.queries
    population = population.negated()
    return replace(population, values=population.values - rest, low=population.low - rest)


def _first(name: str, population: Any, logs: int) -> int:
    """Return the least number of interactions, in steps, with which 4 of 5 logs are decided."""
    chances = population.counts / population.counts.sum()

    def decides(step: int) -> bool:
        draws = np.random.default_rng([step, 1]).multinomial(_size(step), chances, size=logs)
        decided = [
            says_deploy(
                name, replace(population, values=population.values[c > 0], counts=c[c > 0], guess=population.variance)
            )
            for c in draws
        ]
        return bool(np.mean(decided) >= 0.8)

    low, high = 16, 54  # a larger number decides more often, so halving finds the first
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle + 1, high)
    return _size(low)


def _size(step: int) -> int:
    return round(100 * 2 ** (step / 4))


def show_cost(console: Console, largest: int) -> None:
    table = Table(title="Seconds, 10^8 held-out interactions as so many patterns")
    table.add_column("patterns", justify="right")
    for name in ("differences", *BOUNDS):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(0)
    documents, queries = 600_000, 6_000
    offsets = np.arange(0, documents + 1, documents // queries)
    old = rng.dirichlet(np.full(100, 0.3), queries).ravel() + 1e-6
    new = 0.8 * old + 0.2 * rng.dirichlet(np.full(100, 0.3), queries).ravel()
    for size in [10**k for k in range(4, int(math.log10(largest)) + 1)]:
        query = rng.integers(0, queries, size)
        patterns = ClickPatterns(
            query, np.arange(size + 1), query * 100 + rng.integers(0, 100, size), np.full(size, 10**8 // size)
        )
        begin = time.perf_counter()
        differences = worlds.known_differences(patterns, offsets, new, old, np.ones(5) / 5)
        times = [time.perf_counter() - begin]
        for bound in BOUNDS.values():
            begin = time.perf_counter()
            bound.lower(differences, DELTA)
            times.append(time.perf_counter() - begin)
        table.add_row(f"{size:,}", *(f"{seconds:.2f}" for seconds in times))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=2_000, help="logs of each world")
    parser.add_argument("--better-logs", type=int, default=200, help="logs of each world for a better ranker")
    parser.add_argument("--fits", type=int, default=100, help="logs of the world with training in the loop")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--results", type=Path, help="file that outcomes are kept in, to go on after an interruption")
    parser.add_argument("--world", default="", help="only worlds whose names contain this")
    parser.add_argument("--patterns", type=int, default=10**7, help="largest number of patterns")
    parser.add_argument("--only", choices=("worlds", "bounds", "power", "cost"), help="one part of it")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    kept = True
    if options.only in (None, "bounds"):
        show_bounds(console, options.logs)
    if options.only in (None, "power"):
        show_power(console, min(options.logs, 400))
    if options.only in (None, "cost"):
        show_cost(console, options.patterns)
    if options.only in (None, "worlds"):
        kept = show_worlds(
            console, options.logs, options.better_logs, options.fits, options.processes, options.results, options.world
        )
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
