"""Clicks on the rankings of a Plackett-Luce policy, counted: any number of interactions in the memory of the counts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saferank.engine.click_models.position_based import check_probabilities
from saferank.engine.errors import UsageError
from saferank.engine.ragged import check_offsets, check_scores, offsets_of, over_queries
from saferank.engine.types.log_statistics import LoggedRankings, LogStatistics
from saferank.lab.simulation_kernel import simulate_queries

Array = NDArray[Any]

SPLIT_FROM = 8.0
"""Interactions per document from which those that begin alike are shared out in bulk. Chosen by measurement."""


def simulate(
    scores: ArrayLike,
    offsets: ArrayLike,
    relevance: ArrayLike,
    examination: ArrayLike,
    interactions: int,
    rng: np.random.Generator,
    *,
    keep_rankings: int = 0,
    split_from: float = SPLIT_FROM,
    trust: ArrayLike | None = None,
    traffic: ArrayLike | None = None,
) -> LogStatistics:
    """Simulate a click log: the counts have the distribution that one-by-one simulation gives.

        q ~ traffic,   y ~ Plackett-Luce(scores of q),   P(click on y_k) = examination[k] relevance[y_k] + trust[k]

    By default queries come equally often, and nobody clicks out of trust.

    Scores may be anything but NaN and +inf; a document with score -inf is never shown. The same generator state
    gives the same bytes, whatever the number of threads. With `keep_rankings` up to so many interactions of each
    query, its first, are also kept one by one in `LogStatistics.rankings`.

    Memory does not depend on the number of interactions. Time does, but ever less: interactions of a query that
    begin alike are shared out in bulk over the documents that may come next, if they are `split_from` times as many
    as those; only below that are rankings drawn singly. So it is bounded by the number of beginnings that have a
    chance worth speaking of: few for peaked scores, but documents^(K - 1) for flat ones, out of reach for lists of
    a hundred. We know no exact way that would do better: the counts at one rank depend on the sets placed before.
    """
    if interactions < 0 or int(interactions) != interactions:
        raise UsageError(f"got {interactions} interactions, but their number is whole and not negative.")
    if keep_rankings < 0:
        raise UsageError(f"got keep_rankings {keep_rankings}, but it cannot be negative.")
    simulator = Simulator(scores, offsets, relevance, examination, split_from, trust)
    queries = len(simulator.offsets) - 1
    shares = np.full(queries, 1.0 / queries) if traffic is None else np.asarray(traffic, np.float64)
    if shares.shape != (queries,) or not (shares >= 0).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise UsageError(f"traffic has a share of each of the {queries} queries, and they add up to 1.")
    per_query = rng.multinomial(int(interactions), shares)
    rankings = simulator.add(per_query, keep_rankings, rng)
    return simulator.statistics(rankings if keep_rankings else None)


class Simulator:
    """Adds up simulated interactions of given queries: what `simulate` and the raw log share."""

    def __init__(
        self,
        scores: ArrayLike,
        offsets: ArrayLike,
        relevance: ArrayLike,
        examination: ArrayLike,
        split_from: float = SPLIT_FROM,
        trust: ArrayLike | None = None,
    ) -> None:
        self.scores = check_scores(scores).astype(np.float64)
        self.offsets = check_offsets(offsets)
        self.relevance = check_probabilities("relevance", relevance)
        self.examination = check_probabilities("examination", examination)
        self.split_from = split_from
        if len(self.offsets) < 2:
            raise UsageError("simulation needs at least one query.")
        if not len(self.scores) == len(self.relevance) == self.offsets[-1]:
            raise UsageError(
                f"{len(self.scores)} scores and {len(self.relevance)} relevances for {self.offsets[-1]} documents."
            )
        if len(self.examination) == 0:
            raise UsageError("examination needs at least one rank.")
        self.trust = check_probabilities("trust", np.zeros(len(self.examination)) if trust is None else trust)
        if self.trust.shape != self.examination.shape:
            raise UsageError(f"trust of {len(self.trust)} ranks, but there are {len(self.examination)}.")
        check_probabilities("click", self.examination * self.relevance.max(initial=0.0) + self.trust)
        self.interactions = np.zeros(len(self.offsets) - 1, np.int64)
        self.shown = np.zeros((len(self.scores), len(self.examination)), np.int64)
        self.clicked = np.zeros_like(self.shown)

    def add(self, per_query: NDArray[np.int64], keep: int, rng: np.random.Generator) -> LoggedRankings:
        """Simulate so many interactions of each query; return the first `keep` of each, query after query."""
        kept = np.minimum(per_query, keep)
        ends = offsets_of(kept)
        rankings = np.full((ends[-1], len(self.examination)), -1, np.int32)
        clicks = np.zeros(rankings.shape, np.bool_)
        seeds = rng.integers(0, 2**64, size=len(per_query), dtype=np.uint64)

        def run(rows: slice, local: Array) -> None:
            first = int(np.searchsorted(self.offsets, rows.start))
            queries = slice(first, first + len(local) - 1)
            simulate_queries(
                self.scores[rows],
                local,
                self.relevance[rows],
                self.examination,
                self.trust,
                per_query[queries],
                seeds[queries],
                self.split_from,
                self.shown[rows],
                self.clicked[rows],
                ends[first : first + len(local)],
                rankings,
                clicks,
            )

        work = 1 + int(per_query.sum()) * len(self.examination) // len(self.scores)
        over_queries(run, self.scores, self.offsets, work=work)
        self.interactions += per_query
        return LoggedRankings(np.repeat(np.arange(len(kept), dtype=np.int32), kept), rankings, clicks)

    def statistics(self, rankings: LoggedRankings | None = None) -> LogStatistics:
        """Return all that was added."""
        return LogStatistics(self.offsets, self.interactions, self.shown, self.clicked, rankings)
