"""The new ranker compared with the one that made the log: the weight of a click on each document."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.possible_drift import PossibleDrift
from saferank.doctor.strata import StratumCounts, by_query, counts_by_stratum
from saferank.engine.bounds.differences import (
    Differences,
    effective_number,
    extreme_sums,
    paired_differences,
    second_moments,
)
from saferank.engine.ragged import query_of_document, query_sums
from saferank.logs.aggregated_log import AggregatedLog, pair_ids, places_of
from saferank.policy.serve import served_placement
from saferank.verdict.new_ranker import NewRanker

Floats = NDArray[np.float64]
NEVER = 1e-9
"""Logging exposure below which a document counts as never shown."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two rankers on the interactions of one part of a log.

    A click on d weighs rho(d)/rho_0(d) - 1, rho being the exposure under the new ranker. Where the scores of the
    logging policy are known, rho_0 is exact. Where they are not, it is counted in the same interactions, by stratum s:

        rho_0(d) = examined_s(d) / N_s,    examined_s(d) = sum_k examination[k] shown_s(d, k)

    Given what was shown, the expected number of clicks on d is relevance(d) examined_s(d), and that of the weighted
    sum N_s rho(d) relevance(d): no policy has to be estimated, and a ranker that changes does no harm, as long as
    relevance does not change with it within a stratum. What was not shown counts as 0 clicks for the new ranker. A
    query that it does not rank keeps its ranking: no difference. The new ranker fills the ranks that were filled, as
    often as they were, and no others.
    """

    part: StratumCounts
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
    most_per_unit: float = math.inf
    """Interactions that a unit counts with at most."""
    drifts: tuple[PossibleDrift, ...] = ()
    """What to allow for, if the ranker changed and periods are not separated, or if it follows the hour of the day."""

    def exposure(self, examination: Floats) -> Floats:
        """rho(d) of each cell."""
        return self._exposure(self.placement, examination)

    def logging_exposure(self, examination: Floats) -> Floats:
        """rho_0(d) of each cell."""
        if self.logging_placement is not None:
            return self._exposure(self.logging_placement, examination)
        return self.part.exposure(examination)

    def _exposure(self, placement: Floats, examination: Floats) -> Floats:
        exposed = np.zeros(self.part.cells)
        for rank, weight in enumerate(examination):
            exposed += weight * placement[self.part.pair, rank] * self.part.filled[self.part.stratum, rank]
        return exposed

    def ratio(self, examination: Floats, most_weight: float = math.inf) -> Floats:
        """rho / rho_0 of each cell, at most `most_weight`; 1 where the query is not ranked, 0 where rho_0 = 0."""
        ratio = self._ratio(self.exposure(examination), self.logging_exposure(examination))
        return np.minimum(np.where(self._ranked, ratio, 1.0), most_weight)

    def _ratio(self, exposure: Floats, logged: Floats) -> Floats:
        return np.divide(exposure, np.maximum(logged, self.clip), out=np.zeros(len(exposure)), where=logged > 0)

    @cached_property
    def _ranked(self) -> NDArray[np.bool_]:
        """Cell -> whether its query is ranked."""
        return self.ranked[self.part.query][self.part.stratum]

    def _known(self, examination: Floats) -> tuple[Floats, Floats, Floats]:
        """rho, rho_0 and their ratio of all pairs, whether they were shown or not, if all ranks are filled."""
        assert self.logging_placement is not None
        ranked = np.repeat(self.ranked, np.diff(self.offsets))
        rho, logged = self.placement @ examination, self.logging_placement @ examination
        return np.where(ranked, rho, logged), logged, np.where(ranked, self._ratio(rho, logged), 1.0)

    @cached_property
    def _full(self) -> bool:
        """Whether every interaction fills every rank that its query has a document for, so that `_known` is exact."""
        documents = np.diff(self.offsets)[self.part.query]
        none_left = np.arange(self.part.filled.shape[1]) >= documents[:, None]
        return bool(np.all(none_left | (self.part.filled >= 1.0)))

    def mean(self, examination: Floats, most_weight: float) -> float:
        """Return the estimate of the improvement: the mean of `differences`, without its terms."""
        rewards, _, interactions = self._counted
        return float((self.ratio(examination, most_weight) - 1.0) @ rewards) / interactions

    def differences(self, examination: Floats, most_weight: float) -> Differences:
        """Return terms whose expected mean is at most the improvement: weights are lowered to `most_weight`.

        For a lower bound that is all: lowering a weight, like leaving out what was not shown, can only lower the mean.
        For an upper bound, add `rest`. With counted exposure what was shown is given, and the limits of a term are
        those of what was shown. With known exposure it is random, and they are those of all that may be shown.
        """
        part, ranks = self.part, len(examination)
        weights = self.ratio(examination, most_weight) - 1.0
        if self.logging_placement is None:
            low, high = extreme_sums(weights, part.offsets, ranks)
            logged = self.logging_exposure(examination)
            moments = second_moments(weights, logged, part.offsets, examination, part.issued[part.seen])
        else:
            _, logged, ratio = self._known(examination)
            low, high = -float(ranks), ranks * max(most_weight - 1.0, 0.0)
            if self._full:
                low, high = extreme_sums(np.minimum(ratio, most_weight) - 1.0, self.offsets, ranks)
            capped = np.minimum(ratio, float(weights.max(initial=0.0)) + 1.0) - 1.0
            issued = np.bincount(part.query, part.issued, len(self.offsets) - 1).astype(np.float64)
            moments = second_moments(capped, logged, self.offsets, examination, issued)
        return paired_differences(
            part.patterns,
            weights,
            low=low * self.most_reward,
            high=high * self.most_reward,
            second_moment={name: self.most_reward**2 * value for name, value in moments.items()},
        ).at_most(self.most_per_unit)

    @cached_property
    def click_rate(self) -> float:
        """Clicks per interaction (or their rewards) that the current ranker earned."""
        rewards, _, interactions = self._counted
        return float(rewards.sum()) / interactions

    @cached_property
    def _counted(self) -> tuple[Floats, Floats, float]:
        """Rewards of each cell, interactions of each stratum, and in all, with no unit above `most_per_unit`."""
        part, patterns = self.part, self.part.patterns
        if patterns.unit is None or self.most_per_unit == math.inf:
            return part.rewards, part.issued.astype(np.float64), float(max(patterns.total_interactions, 1))
        size = np.bincount(patterns.unit, patterns.interactions).astype(np.float64)
        scale = np.minimum(self.most_per_unit / np.maximum(size, 1.0), 1.0)[patterns.unit]
        times: Floats = patterns.interactions.astype(np.float64) * scale
        clicks = times[query_of_document(patterns.offsets)] * (1.0 if patterns.rewards is None else patterns.rewards)
        rewards: Floats = np.bincount(patterns.documents, clicks, part.cells).astype(np.float64)
        issued: Floats = np.bincount(patterns.query, times, part.strata).astype(np.float64)
        return rewards, issued, max(float(times.sum()), 1.0)

    def rest(self, examination: Floats, most_weight: float) -> float:
        """Return what the terms may lack: the exposure that they leave out, as if all of it were clicked.

            sum_d rho(d) - min(rho(d)/rho_0(d), most_weight) rho_0(d)

        As relevance is at most 1, improvement <= E[mean of the terms] + rest. (The terms bound from below what is
        examined and not clicked, whose complement this is.)
        """
        part = self.part
        if self.logging_placement is not None:
            rho, logged, ratio = self._known(examination)
            each = query_sums(rho - np.minimum(ratio, most_weight) * logged, self.offsets)
            left = np.where(self.ranked, each, 0.0)[part.query]
        else:
            used = self.ratio(examination, most_weight) * self.logging_exposure(examination)
            left = self._total(examination) - np.bincount(part.stratum, np.where(self._ranked, used, 0.0), part.strata)
        # a click at a rank with examination 1 has the chance relevance(d): at most 1 / the largest examination
        _, issued, _ = self._counted
        scale = self.most_reward / float(examination.max()) / max(float(issued.sum()), 1.0)
        return scale * float(np.maximum(left, 0.0) @ issued)

    def allowance(self, examination: Floats, most_weight: float) -> float:
        """Return by how much drift that the log does not show could have moved the mean, up or down."""
        if not self.drifts:
            return 0.0
        rewards, _, interactions = self._counted
        earned = np.where(self._ranked, self.ratio(examination, most_weight), 0.0) * rewards
        return sum(drift.of(self.part.pair).allowance(earned) for drift in self.drifts) / interactions

    def _total(self, examination: Floats) -> Floats:
        """Stratum -> exposure of all documents under the new ranker; 0 where it does not rank the query."""
        at_rank = query_sums(self.placement, self.offsets)[self.part.query]
        return np.where(self.ranked[self.part.query], (at_rank * self.part.filled) @ examination, 0.0)

    def unsupported(self, examination: Floats) -> float:
        """Share of the new ranker's exposure on documents that were not shown in their stratum."""
        part = self.part
        if self.logging_placement is not None:
            rho, logged, _ = self._known(examination)
            of_query = query_sums(np.where(logged > NEVER, 0.0, rho), self.offsets)
            total = query_sums(rho, self.offsets)
            return float(of_query[part.query] @ part.issued) / max(float(total[part.query] @ part.issued), 1e-300)
        seen = np.bincount(part.stratum, np.where(self._ranked, self.exposure(examination), 0.0), part.strata)
        exposed = float(self._total(examination) @ part.issued)
        return max(1.0 - float(seen @ part.issued) / exposed, 0.0) if exposed > 0 else 0.0

    def effective_clicks(self, examination: Floats, most_weight: float) -> float:
        """Return how many clicks of equal weight the weighted clicks are worth."""
        return effective_number(self.part.clicked.sum(axis=1), self.ratio(examination, most_weight))

    def of(self, patterns_chosen: NDArray[np.bool_]) -> Self:
        """Return the comparison on some of the interactions; logging exposure stays that of all of them."""
        return replace(self, part=replace(self.part, patterns=self.part.patterns.subset(patterns_chosen)))


class Rankers:
    """The new ranker and, if it is known, the one that made the log, on all pairs of either."""

    def __init__(self, log: AggregatedLog, ranker: NewRanker, logging_scores: NDArray[np.float32] | None) -> None:
        self.log, data, cutoff = log, ranker.data, log.cutoff
        self.pairs = shown_pairs(self.log, data)
        places = places_of(self.pairs)
        rows = places.of_pairs(*pair_ids(data))
        self.listed = np.zeros(self.pairs.documents, np.bool_)
        """Pair -> whether the new ranker can show it."""
        self.listed[rows] = True
        self.ranked = np.zeros(self.pairs.queries, np.bool_)
        """Query -> whether the new ranker ranks it."""
        self.ranked[places.of_queries(data.query_ids)] = True
        self.placement = np.zeros((self.pairs.documents, cutoff))
        self.placement[rows] = ranker.placement(cutoff)
        self.logging_placement: Floats | None = None
        if logging_scores is not None:
            self.logging_placement = np.zeros_like(self.placement)
            self.logging_placement[rows] = served_placement(logging_scores, data.offsets, cutoff, "sampled")

    def compare(
        self, name: str, strata: NDArray[np.int64] | None, clip: float, most_per_unit: float = math.inf
    ) -> Comparison:
        """Return both rankers on one part of the log; where whole queries are held out, a query is the unit."""
        part = counts_by_stratum(self.log, (name,), self.pairs, strata=strata)
        if by_query(self.log):
            part = replace(part, patterns=replace(part.patterns, unit=part.query[part.patterns.query]))
        most_reward = float((self.log.manifest.get("reward") or {}).get("most", 1.0))
        return Comparison(
            part,
            self.placement,
            self.ranked,
            self.pairs.offsets,
            self.logging_placement,
            clip,
            most_reward,
            most_per_unit,
        )
