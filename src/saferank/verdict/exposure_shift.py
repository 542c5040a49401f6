"""What the new policy changes for users: from which documents to which exposure moves, and where most."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError, UsageError
from saferank.engine.ragged import query_sums, ranks_by_score
from saferank.engine.types.log_statistics import LogStatistics
from saferank.engine.types.ranking_data import RankingData
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.policy.policy import Policy
from saferank.policy.serve import ServeAs, served_placement
from saferank.verdict.comparison import Rankers
from saferank.verdict.new_ranker import NewRanker

Floats = NDArray[np.float64]
BANDS = ("in half or more", "in 10% to 50%", "in 1% to 10%", "in less than 1%", "never")
"""Documents by the share of their query's impressions that showed them."""
EDGES = (0.01, 0.1, 0.5)
STEPS = 10
"""Bins in which queries are counted by how much of their exposure moves."""


class Band(NamedTuple):
    """Documents that were shown about equally often, and the share of all exposure that they get."""

    name: str
    pairs: int
    logging: float
    new: float


class QueryChange(NamedTuple):
    """How much of one query's exposure goes to other documents."""

    query: str
    interactions: int
    moved: float
    """Share of its exposure."""
    top_before: str
    """The document with the most exposure."""
    top_after: str


class DocumentChange(NamedTuple):
    """The examination that one document of one query gets in an interaction, before and after."""

    query: str
    document: str
    interactions: int
    logging: float
    new: float


@dataclass(frozen=True, eq=False)
class Changes:
    """The new policy compared with the log; each interaction has the same weight."""

    moves: Floats
    """(rank in the log, new rank): documents per interaction that are here in the log and there under the new policy,
    the two rankings being drawn independently. The last row is what the log did not show, the last column what the new
    policy does not show."""
    logging: Literal["counted", "known"]
    """Whether what the log shows is counted, or computed from the scores by which its rankings were drawn."""
    moved: float
    """Share of all exposure that goes to other documents."""
    interactions_by_moved: Floats
    """Share of the interactions whose query has 0 to 10%, 10 to 20%, .. of its exposure moved."""
    top_stays: float
    """Chance that the new policy's rank 1 is that of an impression of the log."""
    top_stays_in_log: float
    """The same for two impressions of the log: what a policy that changes nothing would have."""
    bands: tuple[Band, ...]
    queries: tuple[QueryChange, ...]
    """Those with the most exposure moved, over all their interactions."""
    gained: tuple[DocumentChange, ...]
    lost: tuple[DocumentChange, ...]


def exposure_changes(
    policy: Policy,
    log: AggregatedLog,
    data: RankingData,
    *,
    serve_as: ServeAs = "deterministic",
    logging_scores: NDArray[np.float32] | None = None,
    most: int = 10,
) -> Changes:
    """Compare what the policy shows with what all parts of the log showed; `most` is the length of the lists.

    With the `logging_scores` by which the log's rankings were drawn, its exposure is exact and not counted.
    """
    if log.cutoff != policy.cutoff:
        raise UsageError(f"the log is counted for {log.cutoff} ranks, but the model is for {policy.cutoff}.")
    new = served_placement(policy.scores(data), data.offsets, policy.cutoff, serve_as)
    counts = log.statistics(PARTS, data)
    if counts.total_interactions == 0:
        raise DataError("has no interactions with the queries of these features.", file=log.source)
    old = None
    if logging_scores is not None:
        old = served_placement(logging_scores, data.offsets, policy.cutoff, "sampled")
    return compare_placements(counts, new, policy.examination, data, old=old, most=most)


def placement_changes(ranker: NewRanker, log: AggregatedLog, examination: Floats) -> Changes:
    """Compare what any ranker shows with what all parts of the log showed; a query that it lacks does not change."""
    both = Rankers(log, ranker, None)
    counts = log.statistics(PARTS, both.pairs)
    query = counts.query_of_document
    logged = counts.shown / np.maximum(counts.interactions[query], 1)[:, None]
    new = np.where(both.ranked[query][:, None], both.placement, logged)
    return compare_placements(counts, new, examination, both.pairs)


def compare_placements(
    counts: LogStatistics,
    new: Floats,
    examination: Floats,
    data: RankingData,
    *,
    old: Floats | None = None,
    most: int = 10,
) -> Changes:
    """Compare the log's frequencies, or its chances `old`, with the chances `new` (document, rank) of the policy."""
    query_ids, document_ids = data.require_ids()
    offsets, query, interactions = counts.offsets, counts.query_of_document, counts.interactions
    weight, issued = interactions / counts.total_interactions, interactions[query]
    counted = np.divide(counts.shown, issued[:, None], out=np.zeros(counts.shown.shape), where=issued[:, None] > 0)
    before = counted if old is None else old
    moves = _with_rest(before).T @ (_with_rest(new) * weight[query][:, None])
    moves[-1, -1] = 0.0  # candidates that neither shows
    rho_0, rho = before @ examination, new @ examination
    total = np.maximum(query_sums(rho_0, offsets), query_sums(rho, offsets))
    moved = query_sums(np.abs(rho - rho_0) / 2.0, offsets)
    share = np.divide(moved, total, out=np.zeros(len(total)), where=total > 0)
    step = np.minimum((share * STEPS + 1e-9).astype(np.int64), STEPS - 1)
    top = before[:, 0] * weight[query]
    top_before, top_after = (document_ids[ranks_by_score(exposed, offsets) == 1] for exposed in (rho_0, rho))

    def most_changed(change: Floats) -> NDArray[np.int64]:
        order = np.argsort(-change, kind="stable")[:most]
        return order[change[order] > 0.0]

    queries = tuple(
        QueryChange(str(query_ids[q]), int(interactions[q]), float(share[q]), str(top_before[q]), str(top_after[q]))
        for q in most_changed(share * interactions)
    )
    of_document = query_ids[query]
    gained, lost = (
        tuple(
            DocumentChange(str(of_document[d]), str(document_ids[d]), int(issued[d]), float(rho_0[d]), float(rho[d]))
            for d in most_changed(sign * (rho - rho_0) * issued)
        )
        for sign in (1.0, -1.0)
    )
    return Changes(
        moves=moves,
        logging="counted" if old is None else "known",
        moved=float(moved @ weight) / max(float(total @ weight), 1e-300),
        interactions_by_moved=np.bincount(step, weight, STEPS).astype(np.float64),
        top_stays=float(top @ new[:, 0]),
        top_stays_in_log=float(top @ before[:, 0]),
        bands=_bands(counted.sum(axis=1), issued > 0, rho_0 * weight[query], rho * weight[query]),
        queries=queries,
        gained=gained,
        lost=lost,
    )


def _with_rest(chances: Floats) -> Floats:
    """Append the chance of not being shown."""
    return np.column_stack([chances, np.maximum(1.0 - chances.sum(axis=1), 0.0)])


def _bands(shown: Floats, issued: NDArray[np.bool_], logging: Floats, new: Floats) -> tuple[Band, ...]:
    """Split the candidates of issued queries by how often they were shown; exposure as shares of all exposure."""
    band = np.where(shown > 0.0, len(EDGES) - np.digitize(shown, EDGES), len(BANDS) - 1)
    before, after = (exposure / max(float(exposure.sum()), 1e-300) for exposure in (logging, new))
    rows = [np.flatnonzero(issued & (band == place)) for place in range(len(BANDS))]
    return tuple(
        Band(name, len(inside), float(before[inside].sum()), float(after[inside].sum()))
        for name, inside in zip(BANDS, rows, strict=True)
    )
