"""Relevances as the log leaves them open, and in each such world policies that are better by the wanted gains."""

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.possible_drift import PossibleDrift
from saferank.engine.ragged import flat_rows, offsets_of
from saferank.engine.types.log_statistics import LogStatistics
from saferank.plan.exploration_cost import RelevancePosterior
from saferank.plan.needed_interactions import Traffic, better_exposures, needed_interactions
from saferank.plan.plan import GAINS

Floats = NDArray[np.float64]
WORLDS = 5
"""Sets of relevances that are drawn; what is needed is the median over them."""
MOST_DOCUMENTS = 100_000
"""Documents, of queries drawn by their traffic, from which needed interactions are computed."""


class Worlds:
    """Queries drawn by their traffic, with several sets of relevances and for each gain a policy that reaches it.

    All issued queries, or a sample of them if they have too many documents.
    """

    def __init__(
        self,
        statistics: LogStatistics,
        scores: Floats,
        now: Floats,
        posterior: RelevancePosterior,
        examination: Floats,
        rng: np.random.Generator,
    ) -> None:
        lengths, share = np.diff(statistics.offsets), statistics.interactions / statistics.total_interactions
        if int(lengths[share > 0].sum()) > MOST_DOCUMENTS:
            draws = max(int(MOST_DOCUMENTS / float(lengths @ share)), 1)
            share = rng.multinomial(draws, share) / draws
        chosen = np.flatnonzero(share)
        self.rows = rows = flat_rows(statistics.offsets, chosen)
        self.offsets, self.share = offsets_of(lengths[chosen]), share[chosen]
        self.weight = np.repeat(self.share, lengths[chosen])
        self.scores, self.now, self.examination = scores[rows], now[rows], examination
        self.relevances = [posterior.draw(rng)[rows] for _ in range(WORLDS)]
        self.better = [
            better_exposures(self.scores, relevance, self.offsets, examination, self.weight, self.now, GAINS, rng)
            for relevance in self.relevances
        ]

    @property
    def unreachable(self) -> tuple[float, ...]:
        """Gains that no policy reaches in most worlds."""
        missed = [sum(found[place] is None for found in self.better) for place in range(len(GAINS))]
        return tuple(gain for gain, times in zip(GAINS, missed, strict=True) if 2 * times > WORLDS)

    def needed(
        self,
        logging_exposure: Floats,
        rankings: NDArray[np.int64] | None,
        delta: float,
        drifts: Sequence[PossibleDrift] = (),
    ) -> list[tuple[float, float]]:
        """Return for each gain the interactions that this way of logging needs, and the clip: the median of worlds.

        `drifts`: what a verdict on such a log allows for, of each document of the log.
        """
        found, allowed = [], tuple(drift.of(self.rows) for drift in drifts)
        for relevance, better in zip(self.relevances, self.better, strict=True):
            traffic = Traffic(
                self.offsets, self.share, relevance, self.examination, logging_exposure, rankings, allowed
            )
            shortfall = float((self.now - logging_exposure) @ (self.weight * relevance))
            found.append([needed_interactions(exposure, traffic, shortfall, delta) for exposure in better])
        return [sorted(of_gain, key=itemgetter(0))[WORLDS // 2] for of_gain in zip(*found, strict=True)]
