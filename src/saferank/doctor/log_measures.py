"""What was logged: how much, how random the rankings were, and which candidates were shown."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog, places_of
from saferank.logs.row_checks import UnmatchedIds, unmatched_ids

CLASSES = {"1": 1, "2-9": 2, "10-99": 10, "100-999": 100, "1,000+": 1_000}
"""Classes of queries by their interactions -> the least."""


class QueryClass(NamedTuple):
    """Queries that were issued about equally often."""

    name: str
    """The interactions of a query, as text: `2-9`."""
    at_least: int
    queries: int
    interactions: int


@dataclass(frozen=True)
class Traffic:
    """Totals, and queries by how often they were issued."""

    interactions: int
    queries: int
    pairs: int
    """Different query-document pairs shown."""
    shown: int
    """Documents shown, each time counted."""
    clicks: int
    classes: tuple[QueryClass, ...]

    @property
    def queries_seen_once(self) -> int:
        """Queries with one interaction."""
        return self.classes[0].queries

    def share_in_queries_of(self, interactions: int) -> float:
        """Share of the interactions that belong to queries with at least so many of them (10, 100 or 1000)."""
        return sum(one.interactions for one in self.classes if one.at_least >= interactions) / max(self.interactions, 1)


def traffic(statistics: LogStatistics) -> Traffic:
    """Return the totals of a log."""
    per_query = statistics.interactions
    classes = []
    for name, at_least, end in zip(CLASSES, CLASSES.values(), [*list(CLASSES.values())[1:], np.inf], strict=True):
        inside = per_query[(per_query >= at_least) & (per_query < end)]
        classes.append(QueryClass(name, at_least, len(inside), int(inside.sum())))
    return Traffic(
        interactions=statistics.total_interactions,
        queries=int((per_query > 0).sum()),
        pairs=int((statistics.times_shown > 0).sum()),
        shown=int(statistics.times_shown.sum()),
        clicks=int(statistics.clicks.sum()),
        classes=tuple(classes),
    )


@dataclass(frozen=True)
class Randomness:
    """What varied between the interactions of one query."""

    top_changes: float | None
    """Chance that two interactions of a query show different documents at rank 1: unbiased however few there are.
    Queries are weighted by their interactions; None if none has two."""
    top_entropy: float | None
    """Entropy of the document at rank 1, in bits, over the same queries and with the same weights. Counted from n
    interactions it is at most log2 n, and on average too low by about (documents - 1) / (1.39 n)."""
    documents_at_top: float
    """Different documents at rank 1 of a query, on average over queries."""
    moved: float
    """Share of the pairs shown more than once that were shown at two ranks or more."""
    rankings: float | None
    """Different rankings of a query, on average over queries; None if rankings were not kept."""
    most_common_ranking: float | None
    """Share of the interactions that show their query's most common ranking; queries of two interactions or more."""


def randomness(statistics: LogStatistics, rankings: pa.Table | None = None) -> Randomness:
    """Return how much varied, from counts, and from the rankings of an aggregated log if there are any."""
    top, offsets = statistics.shown[:, 0].astype(np.float64), statistics.offsets
    total = query_sums(top, offsets)
    several = total >= 2
    weight = total[several]
    same = query_sums(top * (top - 1.0), offsets)[several] / (weight * (weight - 1.0))
    logs = np.log2(top, out=np.zeros_like(top), where=top > 0)
    entropy = np.log2(weight) - query_sums(top * logs, offsets)[several] / weight
    at_top = query_sums(top > 0, offsets, dtype=np.int64)[total > 0]
    ranks = np.count_nonzero(statistics.shown[statistics.times_shown >= 2], axis=1)
    distinct, common = (None, None) if rankings is None or not len(rankings) else _of_rankings(rankings)
    return Randomness(
        top_changes=float(1.0 - np.average(same, weights=weight)) if several.any() else None,
        top_entropy=float(np.average(entropy, weights=weight)) if several.any() else None,
        documents_at_top=float(at_top.mean()) if len(at_top) else 0.0,
        moved=float((ranks >= 2).mean()) if len(ranks) else 0.0,
        rankings=distinct,
        most_common_ranking=common,
    )


def _of_rankings(table: pa.Table) -> tuple[float, float | None]:
    """Return the mean number of rankings per query, and the share of the most common one."""
    # A list cannot be a key of Arrow's group-by: its documents, joined by a character that no id has, can.
    joined = pc.binary_join(table["ranking"].combine_chunks(), "\x1f")
    keyed = pa.table({"query": table["query_id"], "ranking": joined, "times": table["interactions"]})
    times = keyed.group_by(["query", "ranking"]).aggregate([("times", "sum")])
    per_query = times.group_by("query").aggregate([("times_sum", "count"), ("times_sum", "max"), ("times_sum", "sum")])
    count, most, total = (per_query[f"times_sum_{name}"].to_numpy() for name in ("count", "max", "sum"))
    several = total >= 2
    return float(count.mean()), float(most[several].sum() / total[several].sum()) if several.any() else None


@dataclass(frozen=True)
class Coverage:
    """A log compared with the features. Candidates are the documents of queries that both have."""

    candidates: int
    never_shown: int
    never_shown_by_chance: float
    """Chance that a candidate drawn at random, for an interaction drawn at random, was never shown for its query: the
    share of a uniformly random policy's exposure about which the log says nothing."""
    queries_in_both: int
    queries_without_features: int
    interactions_without_features: float
    """Share of the interactions whose queries the features lack."""
    queries_without_log: int
    pairs_without_features: int
    """Query-document pairs that were shown and have no features."""
    shown_without_features: float
    """Share of all documents shown, each time counted."""
    unmatched: tuple[UnmatchedIds, ...] = ()

    @property
    def never_shown_share(self) -> float:
        """Share of the candidates that were never shown."""
        return self.never_shown / max(self.candidates, 1)


def coverage(aggregated: AggregatedLog, own: LogStatistics, pairs: RankingData, data: RankingData) -> Coverage:
    """Compare the log, with the counts `own` of its own pairs, with the features."""
    statistics = aggregated.statistics(PARTS, data)
    known = places_of(data).of_queries(pairs.query_ids) >= 0
    missing = aggregated.missing_pairs(data)
    in_both = statistics.interactions > 0
    candidate = in_both[data.query_of_document]
    never = candidate & (statistics.times_shown == 0)
    never_of_query = query_sums(never, data.offsets, dtype=np.int64) / data.lengths
    interactions = statistics.total_interactions
    return Coverage(
        candidates=int(candidate.sum()),
        never_shown=int(never.sum()),
        never_shown_by_chance=float(never_of_query @ statistics.interactions / interactions) if interactions else 0.0,
        queries_in_both=int(in_both.sum()),
        queries_without_features=int((~known).sum()),
        interactions_without_features=float(own.interactions[~known].sum() / max(own.total_interactions, 1)),
        queries_without_log=int((~in_both).sum()),
        pairs_without_features=missing.num_rows,
        shown_without_features=float(np.sum(missing["shown_sum"].to_numpy()) / max(own.times_shown.sum(), 1)),
        unmatched=tuple(unmatched_ids(aggregated, data)),
    )
