"""Small shops, simulated: rankings, clicks and days, and the tables that aggregating their logs gives."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from saferank.logs.aggregated_log import AggregatedLog
from tests.log_tables import log_table

Array = NDArray[Any]


@dataclass(frozen=True)
class Shop:
    """What a log is simulated from. Relevance is uniform in `relevance`, a new set of documents for each query."""

    queries: int = 40
    documents: int = 12
    ranks: int = 6
    interactions: int = 5_000
    days: int = 10
    examination: tuple[float, ...] = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3)
    relevance: tuple[float, float] = (0.05, 0.6)
    ranker: Literal["random", "fixed", "nightly", "nightly-random", "release"] = "random"
    """Plackett-Luce; always the same ranking; a new one each night, noisy or Plackett-Luce; two, from the middle on."""
    temperature: float = 0.3
    """Of Plackett-Luce."""
    drift: float = 0.0
    """Standard deviation of log relevance over the days; the nightly ranker sorts by yesterday's, and noise."""
    season: float = 0.0
    """On every other day all documents are clicked more often, by this share."""
    stop: float = 0.0
    """Cascade: chance that a user who has clicked goes no further."""
    trust: bool = False
    tastes: float = 0.0
    """Standard deviation of a user's log readiness to click, the same for all documents of an impression."""
    bots: float = 0.0
    """Share of the interactions in which everything is clicked."""


@dataclass(frozen=True)
class Log:
    """Single interactions."""

    query: Array
    day: Array
    ranking: Array
    click: Array
    kept: Array
    """(interaction, rank): whether the row is in the log."""


def simulate(shop: Shop, seed: int) -> Log:
    rng = np.random.default_rng(seed)
    n, ranks = shop.interactions, shop.ranks
    relevance = rng.uniform(*shop.relevance, (shop.queries, shop.documents))
    by_day = np.clip(relevance * np.exp(_walk(shop, rng) - shop.drift**2 / 2), 0.0, 0.95)
    traffic = 1.0 / np.arange(1, shop.queries + 1) ** 0.5
    query = rng.choice(shop.queries, n, p=traffic / traffic.sum())
    day = np.sort(rng.integers(0, shop.days, n))
    noise = np.zeros((n, shop.documents))
    if shop.ranker in ("random", "nightly-random"):
        noise = rng.gumbel(0, shop.temperature, (n, shop.documents))
    elif shop.ranker == "nightly":
        noise = rng.normal(0, 0.3, (shop.days, *relevance.shape))[day, query]
    elif shop.ranker == "release":
        noise = rng.normal(0, 0.3, (2, *relevance.shape))[(day >= shop.days // 2).astype(int), query]
        noise = noise + rng.gumbel(0, shop.temperature, noise.shape)
    yesterday = by_day[day, query] if shop.ranker.startswith("nightly") else relevance[query]
    ranking = np.argsort(-(np.log(yesterday) + noise), axis=1)[:, :ranks]
    chance = np.take_along_axis(by_day[day + 1, query], ranking, 1)
    chance = chance * np.where(day % 2, 1.0 + shop.season, 1.0)[:, None]
    if shop.tastes:
        chance = np.clip(chance * np.exp(rng.normal(0, shop.tastes, (n, 1)) - shop.tastes**2 / 2), 0, 1)
    examination = np.array(shop.examination)
    if shop.stop:
        attracted = rng.random((n, ranks)) < chance
        going = np.cumprod(~(attracted & (rng.random((n, ranks)) < shop.stop)), axis=1)
        click = attracted & (np.column_stack([np.ones(n), going[:, :-1]]) > 0)
    elif shop.trust:
        k = np.arange(1, ranks + 1)
        click = rng.random((n, ranks)) < examination * ((1 - (k + 1) / 100) * chance + 0.65 / k * (1 - chance))
    else:
        click = rng.random((n, ranks)) < examination * chance
    click |= rng.random((n, 1)) < shop.bots
    return Log(query, day, ranking, click, np.ones_like(click))


def _walk(shop: Shop, rng: np.random.Generator) -> Array:
    """Day -> log relevance of each document less its mean: stationary, eight tenths of it kept from day to day."""
    steps = rng.normal(0, shop.drift, (shop.days + 1, shop.queries, shop.documents))
    for day in range(1, shop.days + 1):
        steps[day] = 0.8 * steps[day - 1] + 0.6 * steps[day]
    return steps


def only_clicked_rows(log: Log) -> Log:
    return replace(log, kept=log.click)


def only_clicked_impressions(log: Log) -> Log:
    some = log.click.any(axis=1)
    return Log(log.query[some], log.day[some], log.ranking[some], log.click[some], log.kept[some])


def aggregate(log: Log, *, unit: Array | None = None, dated: bool = True, **manifest: Any) -> AggregatedLog:
    """Count the log; every fourth interaction is of the part `certify`."""
    n, ranks = log.ranking.shape
    day = log.day if dated else np.zeros_like(log.day)
    part = np.where(np.arange(n) % 4 == 3, "certify", "train")
    about = {"part": part, "period": day, "query_id": _ids("q", log.query)}
    if unit is not None:
        about["unit"] = _ids("u", unit)
    i, k = np.nonzero(log.kept)
    rows = {name: values[i] for name, values in about.items()}
    rows |= {"document_id": _ids("d", log.ranking[i, k]), "position": k + 1}
    keys = ["part", "period", "query_id", "document_id", "position"]
    table = pa.table({**rows, "shown": np.ones_like(i), "clicked": log.click[i, k].astype(int)})
    counts = table.group_by(keys, use_threads=False).aggregate([("shown", "sum"), ("clicked", "sum")])
    counts = counts.rename_columns([*keys, "shown", "clicked"])
    chosen = np.flatnonzero(log.kept.any(axis=1))
    patterns = {name: values[chosen] for name, values in about.items()}
    clicked = [sorted(_ids("d", log.ranking[one][log.click[one]]).tolist()) for one in chosen]
    tables = (
        log_table("shown_counts", {name: counts[name].combine_chunks() for name in counts.column_names}),
        log_table("patterns", {**patterns, "clicked": clicked, "interactions": np.ones(len(chosen), np.int64)}),
    )
    sample = log_table("sample", {**rows, "impression": i, "click": log.click[i, k].astype(np.int8)})
    periods = [[f"2026-03-{one + 1:02d}T00:00:00", f"2026-03-{one + 1:02d}T23:59:59"] for one in range(day.max() + 1)]
    known = {"cutoff": ranks, "source": "clicks.parquet", "period": None, "periods": periods if dated else []}
    return AggregatedLog(*tables, {**known, **manifest}, None, sample)


def _ids(letter: str, numbers: Array) -> NDArray[np.str_]:
    return np.char.add(letter, numbers.astype(str))
