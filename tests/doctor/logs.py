"""Aggregated logs from lists of interactions, counted one by one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import SCHEMAS, AggregatedLog

Interaction = tuple[str, Sequence[str], Iterable[str]]
"""Query, ranking, clicked documents."""


def aggregated(
    train: Iterable[Interaction],
    certify: Iterable[Interaction] = (),
    *,
    cutoff: int,
    rankings: bool = False,
    **manifest: Any,
) -> AggregatedLog:
    shown, clicks, patterns, whole = (Counter[Any]() for _ in range(4))
    for part, interactions in (("train", train), ("certify", certify)):
        for query, ranking, clicked in interactions:
            chosen = set(clicked)
            patterns[part, query, tuple(sorted(chosen))] += 1
            whole[part, query, tuple(ranking), tuple(sorted(chosen))] += 1
            for rank, document in enumerate(ranking[:cutoff], 1):
                shown[part, query, document, rank] += 1
                clicks[part, query, document, rank] += document in chosen
    tables = {
        "shown_counts": [(key[0], 0, *key[1:], count, clicks[key]) for key, count in shown.items()],
        "patterns": [
            (part, 0, None, None, query, list(chosen), None, n) for (part, query, chosen), n in patterns.items()
        ],
        "rankings": [(p, q, list(ranking), list(chosen), n) for (p, q, ranking, chosen), n in whole.items()],
    }
    made = {
        name: pa.table(list(map(list, zip(*rows, strict=True))) or [[] for _ in SCHEMAS[name]], schema=SCHEMAS[name])
        for name, rows in tables.items()
    }
    return AggregatedLog(
        made["shown_counts"],
        made["patterns"],
        {"cutoff": cutoff, "source": "clicks.parquet", "period": None, "bad_rows": {}, **manifest},
        made["rankings"] if rankings else None,
    )


def candidates(**documents: Iterable[str]) -> RankingData:
    """Features of the given documents of each query."""
    lists = [list(of) for of in documents.values()]
    flat = [document for of in lists for document in of]
    return RankingData(
        features=np.zeros((len(flat), 1), np.float32),
        offsets=np.cumsum([0, *map(len, lists)]),
        query_ids=np.array(list(documents)),
        document_ids=np.array(flat),
    )


def random_interactions(
    queries: int, times: int, *, examination: Sequence[float], seed: int = 0, documents: int = 6
) -> list[Interaction]:
    """Interactions of position-based users with rankings in random order."""
    rng = np.random.default_rng(seed)
    relevance = rng.uniform(0.1, 0.6, (queries, documents))
    made: list[Interaction] = []
    for query in range(queries):
        for _ in range(times):
            ranking = rng.permutation(documents)[: len(examination)]
            clicked = rng.random(len(ranking)) < np.array(examination) * relevance[query, ranking]
            names = [f"d{document}" for document in ranking]
            made.append((f"q{query}", names, [names[place] for place in np.flatnonzero(clicked)]))
    return made
