"""The new ranker beside the one that made the log: what a click on each document is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from saferank.certification.differences import Differences, weighted_differences
from saferank.certification.held_out import HeldOut

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two rankers on the interactions of one part of a log.

    A click on d weighs rho(d)/rho_0(d) - 1, rho being the exposure under the new ranker. Where the scores of the
    logging policy are known, rho_0 is exact. Where they are not, it is counted in the same interactions, by stratum s:

        rho_0(d) = examined_s(d) / N_s,    examined_s(d) = sum_k examination[k] shown_s(d, k)

    Given what was shown, clicks on d are expected relevance(d) examined_s(d) times, so that the weighted sum is
    expected to be N_s rho(d) relevance(d): no policy has to be estimated, and a ranker that changes does no harm, as
    long as relevance does not change with it within a stratum. What was not shown counts as 0 clicks for the new
    ranker. A query that it does not rank keeps its ranking: no difference.
    """

    part: HeldOut
    placement: Floats
    """(pair, rank): chance that the new ranker shows the document there; 0 for what it cannot show."""
    ranked: NDArray[np.bool_]
    """Query -> whether the new ranker ranks it."""
    offsets: NDArray[np.int64]
    """Where the pairs of each query begin."""
    logging_placement: Floats | None = None
    """(pair, rank): the same under the policy that made the log, if it is known."""
    clip: float = 0.0
    """Logging exposure is raised to this at least."""
    most_reward: float = 1.0
    """Of a click."""

    def exposure(self, examination: Floats) -> Floats:
        """rho(d) of each pair."""
        return self.placement @ examination

    def logging_exposure(self, examination: Floats) -> Floats:
        """rho_0(d) of each cell."""
        if self.logging_placement is not None:
            return (self.logging_placement @ examination)[self.part.pair]
        interactions = self.part.interactions[self.part.stratum]
        return (self.part.shown @ examination) / np.maximum(interactions, 1)

    def ratio(self, examination: Floats) -> Floats:
        """rho / rho_0 of each cell; 1 in queries that the new ranker does not rank, 0 where rho_0 = 0."""
        logged = self.logging_exposure(examination)
        new = self.exposure(examination)[self.part.pair]
        ratio = np.zeros(self.part.cells)
        np.divide(new, np.maximum(logged, self.clip), out=ratio, where=logged > 0)
        return np.where(self._ranked, ratio, 1.0)

    @cached_property
    def _ranked(self) -> NDArray[np.bool_]:
        """Cell -> whether its query is ranked."""
        return self.ranked[self.part.query][self.part.stratum]

    def mean(self, examination: Floats, most_weight: float) -> float:
        """Return the estimate of the improvement: what `lower(...).mean` is, without its terms."""
        weights = np.minimum(self.ratio(examination), most_weight) - 1.0
        return float(weights @ self.part.rewards) / max(self.part.patterns.total_interactions, 1)

    def lower(self, examination: Floats, most_weight: float) -> Differences:
        """Return terms whose mean is expected to be at most the improvement.

        Weights above `most_weight` are lowered to it, which can only lower the mean.
        """
        weights = np.minimum(self.ratio(examination), most_weight) - 1.0
        return self._differences(weights, examination, most_weight)

    def upper(self, examination: Floats, most_weight: float) -> tuple[Differences, float]:
        """Return terms, and a constant, whose sum is expected to be at least the improvement.

        A click on a document with a weight above `most_weight` does not count for the new ranker; instead, as for
        documents that were not shown at all, every examination of it is taken for a click: relevance is at most 1.
        """
        ratio = self.ratio(examination)
        used = ratio <= most_weight
        weights = np.where(used, ratio, 0.0) - 1.0
        part = self.part
        rho = self.exposure(examination)
        # relevance(d) is what a click at a rank with examination 1 would be: at most 1 / the largest examination
        counted = np.bincount(part.stratum, np.where(used & self._ranked, rho[part.pair], 0.0), part.strata)
        rest = np.where(self.ranked[part.query], self._total(rho)[part.query] - counted, 0.0)
        constant = float(np.maximum(rest, 0.0) @ part.issued) / max(float(part.issued.sum()), 1.0)
        constant *= self.most_reward / float(examination.max())
        return self._differences(weights, examination, most_weight), constant

    def _total(self, rho: Floats) -> Floats:
        """Query -> exposure of all its documents."""
        return np.add.reduceat(rho, self.offsets[:-1])

    def _differences(self, weights: Floats, examination: Floats, most_weight: float) -> Differences:
        cutoff = len(examination)
        limit = cutoff * self.most_reward
        return weighted_differences(
            self.part.patterns,
            weights,
            low=-limit,
            high=limit * max(float(weights.max(initial=0.0)), 0.0) if np.isinf(most_weight) else limit * most_weight,
            second_moment=self._second_moments(weights, examination),
        )

    def _second_moments(self, weights: Floats, examination: Floats) -> dict[str, float]:
        """See `differences.second_moments`; over the documents that were shown, others have no term."""
        part = self.part
        each = np.square(weights) * self.logging_exposure(examination)
        divergence = np.bincount(part.stratum, each, part.strata)
        lengths = np.diff(self.offsets)[part.query]
        ranks = np.minimum(lengths, len(examination))
        constant = np.minimum(ranks, 1.0 + np.concatenate([[0.0], np.cumsum(examination)])[ranks])
        total = max(float(part.issued.sum()), 1.0)
        scale = self.most_reward**2
        return {
            "paper": scale * float(divergence @ part.issued) / total,
            "proven": scale * float((constant * divergence) @ part.issued) / total,
        }

    def unsupported(self, examination: Floats) -> float:
        """Share of the new ranker's exposure on documents that were not shown in their stratum."""
        part, rho = self.part, self.exposure(examination)
        seen = np.bincount(part.stratum, np.where(self._ranked, rho[part.pair], 0.0), part.strata)
        total = np.where(self.ranked[part.query], self._total(rho)[part.query], 0.0)
        exposed = float(total @ part.issued)
        return 1.0 - float(seen @ part.issued) / exposed if exposed > 0 else 0.0

    def effective_clicks(self, examination: Floats, most_weight: float) -> float:
        """Kish's (sum w)^2 / sum w^2 over the clicks, w = rho/rho_0: how many equal clicks they are worth."""
        weights = np.minimum(self.ratio(examination), most_weight)
        clicks = self.part.clicked.sum(axis=1)
        squares = float(clicks @ np.square(weights))
        return float(clicks @ weights) ** 2 / squares if squares > 0 else 0.0

    def of(self, patterns_chosen: NDArray[np.bool_]) -> Comparison:
        """Return the comparison on some of the interactions; logging exposure stays that of all of them."""
        return replace(self, part=replace(self.part, patterns=self.part.patterns.subset(patterns_chosen)))
