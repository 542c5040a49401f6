"""What a verdict is foreseen to find: the gain of a policy, and the chance that held-out clicks prove it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.possible_drift import PossibleDrift
from saferank.doctor.ranker_changes import Compared
from saferank.engine.bounds.differences import least_sum
from saferank.engine.bounds.verdict_choices import FIRST_LOOK, RANGE, WEIGHTS
from saferank.engine.types.log_statistics import LogStatistics
from saferank.learning.list_lengths import ListLengths

Floats = NDArray[np.float64]
NORMAL = NormalDist()
DELTA = 0.05 * FIRST_LOOK
"""Of the verdict that is foreseen."""
UNPROVEN = 0.01
"""Share of its gain that a policy is worth which the verdict has no chance to prove: where none has, the best wins."""


@dataclass(frozen=True)
class Foreseen:
    """What is foreseen of one policy."""

    name: str
    gain: float
    """Clicks per interaction more than the start of learning."""
    improvement: float
    """Clicks per interaction more than the current ranker. A start that is a model of it may be worse than it is."""
    chance: float
    """That the verdict can prove an improvement over the current ranker."""
    allowance: float = 0.0
    """Clicks per interaction that the verdict subtracts, because demand may have drifted while the ranker changed."""

    @property
    def worth(self) -> float:
        """By which policies are chosen: the gain that can be expected to go live."""
        return self.gain * (self.chance + UNPROVEN)


def most_worth(gain: float) -> float:
    """What a policy with this gain is worth if it is sure to be proven."""
    return gain * (1.0 + UNPROVEN)


@dataclass(frozen=True, eq=False)
class Foresight:
    """Foresees verdicts by estimates of relevance that did not see the clicks on the document's own query."""

    log: LogStatistics
    examination: NDArray[np.float64]
    relevance: NDArray[np.float64]
    start: NDArray[np.float64]
    """Exposure at the start of learning."""
    logging_exposure: NDArray[np.float64]
    verdict_interactions: int
    """n: interactions that the verdict will have."""
    flatter_exposure: Floats | None = None
    """Logging exposure under a flatter curve, if the verdict is to hold for that as well."""
    judged: tuple[Compared, ...] = ()
    """What the verdict may compare, if the ranker changed: the validation part stands in for the held-out one."""
    drifts: tuple[PossibleDrift, ...] = ()
    """What it allows for, of each document."""

    @cached_property
    def lengths(self) -> ListLengths:
        """The new policy's lists end where those of the log did."""
        return ListLengths.of(self.log)

    def of(self, name: str, scores: NDArray[np.float32]) -> Foreseen:
        """Return the foreseen gain of the policy with these scores, and the chance that it can be proven.

            gain   = (1/N) sum_q N_q sum_d R(d) (rho(d) - rho_start(d)); the improvement has rho_0 for rho_start
            proven = (1/N) sum_q N_q sum_d R(d) w(d) rho_0(d),     w(d) = min(rho(d) / rho_0(d), limit) - 1
                     minus the allowance for drift, if the ranker changed
            chance = Phi( (proven - width) / error ),              error^2 = (1/n) (1/N) sum_d clicks(d) w(d)^2
            width^2 = (z_delta error)^2 + (low log(1/delta) / n)^2

        with the limit of weights that gives the highest chance. The verdict credits no document with exposure beyond
        that limit, and none that the log never shows. `low` is the largest loss of one interaction: a bound that holds
        for every number of interactions allows for it, and its width is within a few percent of this (`one_look`).
        With `flatter_exposure` it is the lower chance of two curves, rho and rho_0 in w being those of either. Of what
        the verdict may compare it takes what gives the higher chance.
        """
        rho = self.lengths.exposure(scores, self.examination)
        found = []
        for one, rows in self._compared:
            flatter = None if one.flatter_exposure is None else self.lengths.exposure(scores, one.flatter)[rows]
            found.append(one._proof(rho[rows], flatter))
        chance, allowance = max(found)
        gain, improvement = (float(self._worth @ (rho - before)) for before in (self.start, self.logging_exposure))
        return Foreseen(name, gain, improvement, chance, allowance)

    @cached_property
    def _compared(self) -> list[tuple[Foresight, NDArray[np.int64] | slice]]:
        """The foresight of each way to compare, whose documents are its cells, and the document of each cell."""
        if not self.judged:
            return [(self, slice(None))]
        found: list[tuple[Foresight, NDArray[np.int64] | slice]] = []
        for one in self.judged:
            rows = one.counts.pair
            cells = replace(
                self,
                log=one.counts.statistics(),
                relevance=self.relevance[rows],
                logging_exposure=one.counts.exposure(self.examination),
                drifts=tuple(drift.of(rows) for drift in one.drifts),
            )
            if self.flatter_exposure is not None:
                cells = replace(cells, flatter_exposure=one.counts.exposure(cells.flatter))
            found.append((cells, rows))
        return found

    @property
    def flatter(self) -> Floats:
        """The flatter curve: if demand may have drifted, the verdict has to hold for one that is flatter by as much."""
        by = max((drift.at_most for drift in self.drifts), default=RANGE)
        return self.examination ** (1.0 - by)

    @cached_property
    def _worth(self) -> Floats:
        """Clicks per interaction that a document would have if every user examined it."""
        return self.log.interactions[self.log.query_of_document] / self._total * self.relevance

    @property
    def _total(self) -> int:
        return max(self.log.total_interactions, 1)

    def _proof(self, rho: Floats, flatter: Floats | None) -> tuple[float, float]:
        """Return chance and allowance: under one curve, or the lower chance of two."""
        found = self._chance(rho, self.logging_exposure)
        if flatter is not None and self.flatter_exposure is not None and found[0] > 0:
            found = min(found, self._chance(flatter, self.flatter_exposure))
        return found

    def _chance(self, rho: Floats, rho_0: Floats) -> tuple[float, float]:
        """Return the highest chance over limits of weights, by the exposures under one curve, and its allowance."""
        size, clicks = max(self.verdict_interactions, 1), self._worth * self.logging_exposure
        counted = self.log.clicks.astype(np.float64)
        ratio = np.divide(rho, rho_0, out=np.zeros(len(rho)), where=rho_0 > 0)
        best, low = (0.0, 0.0), least_sum(np.minimum(ratio, 1.0) - 1, self.log.offsets, len(self.examination))
        for limit in WEIGHTS:
            weight = np.minimum(ratio, limit) - 1
            allowance = sum(drift.allowance(clicks * (weight + 1)) for drift in self.drifts)
            proven = _dot(clicks, weight) - allowance
            error = math.sqrt(_dot(np.square(weight), counted) / self._total / size)
            width = math.hypot(NORMAL.inv_cdf(DELTA) * error, low * math.log(DELTA) / size)
            if error > 0:
                best = max(best, (NORMAL.cdf((proven - width) / error), allowance))
        return best


def _dot(left: Floats, right: Floats) -> float:
    """Return the sum of products, without BLAS, whose threads wait milliseconds for each other on a busy machine."""
    return float(np.einsum("i,i->", left, right))
