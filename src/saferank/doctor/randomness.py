"""How random the logging policy was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saferank.engine.types.log_statistics import LogStatistics


@dataclass(frozen=True)
class Randomness:
    """What varied between the interactions of one query."""

    top_changes: float | None
    """Chance that two interactions of a query show different documents at rank 1: unbiased however few there are.
    Queries weigh by their interactions; None if none has two."""
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
    """Measure it, from counts, and from the rankings of an aggregated log if there are any."""
    top, starts = statistics.shown[:, 0].astype(np.float64), statistics.offsets[:-1]
    total = np.add.reduceat(top, starts)
    several = total >= 2
    weight = total[several]
    same = np.add.reduceat(top * (top - 1.0), starts)[several] / (weight * (weight - 1.0))
    logs = np.log2(top, out=np.zeros_like(top), where=top > 0)
    entropy = np.log2(weight) - np.add.reduceat(top * logs, starts)[several] / weight
    again = statistics.times_shown >= 2
    ranks = np.count_nonzero(statistics.shown[again], axis=1)
    distinct, common = (None, None) if rankings is None else _of_rankings(rankings)
    return Randomness(
        top_changes=float(1.0 - np.average(same, weights=weight)) if several.any() else None,
        top_entropy=float(np.average(entropy, weights=weight)) if several.any() else None,
        documents_at_top=float(np.add.reduceat(top > 0, starts, dtype=np.int64)[total > 0].mean())
        if any(total)
        else 0.0,
        moved=float((ranks >= 2).mean()) if len(ranks) else 0.0,
        rankings=distinct,
        most_common_ranking=common,
    )


def _of_rankings(table: pa.Table) -> tuple[float | None, float | None]:
    """Return the mean number of rankings a query, and the share of the most common one."""
    if len(table) == 0:
        return None, None
    ranking = table["ranking"].combine_chunks()
    # A list cannot be a key of Arrow's group-by: its documents, joined by what no id holds, can.
    joined = pc.binary_join(ranking, "\x1f")
    keyed = pa.table({"query": table["query_id"], "ranking": joined, "times": table["interactions"]})
    times = keyed.group_by(["query", "ranking"]).aggregate([("times", "sum")])
    per_query = times.group_by("query").aggregate([("times_sum", "count"), ("times_sum", "max"), ("times_sum", "sum")])
    count, most, total = (per_query[f"times_sum_{name}"].to_numpy() for name in ("count", "max", "sum"))
    several = total >= 2
    common = float(most[several].sum() / total[several].sum()) if several.any() else None
    return float(count.mean()), common
