"""A shop in which no ranker is better than another, and a ranker that believes its log."""

from typing import Any

import numpy as np
import pyarrow as pa

from tests.shops import PositionBased, Ranker, Shop, draw

QUERIES, DOCUMENTS, INTERACTIONS = 100, 8, 3_000


def equal_shop_log(seed: int, interactions: int = INTERACTIONS) -> pa.Table:
    """Rankings drawn at random, in a shop in which every document is wanted alike: no ranker is better."""
    shop = Shop(np.full((7, QUERIES, DOCUMENTS), 0.2), 1.0 / np.arange(1, 4), np.full(QUERIES, 1 / QUERIES))
    ranker = Ranker(np.zeros((QUERIES, DOCUMENTS)), sampled=True)
    return draw(shop, ranker, PositionBased(), interactions, np.random.default_rng(seed)).table()


def by_clicks(log: pa.Table) -> dict[str, Any]:
    """Rank by the clicks of a log."""
    counts = log.group_by(["query_id", "document_id"]).aggregate([("click", "sum")])
    names = {"query_id": "query_id", "document_id": "document_id", "click_sum": "score"}
    return {ours: counts[theirs] for theirs, ours in names.items()}
