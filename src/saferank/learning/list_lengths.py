"""How long the lists of a log were: small screens show fewer documents, and so they would under a new policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.plackett_luce import exposure
from saferank.engine.ragged import query_sums
from saferank.engine.types.log_statistics import LogStatistics

Floats = NDArray[np.float64]
NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class ListLengths:
    """The lengths of the lists of each query, which do not depend on who ranks."""

    offsets: NDArray[np.int64]
    share: Floats | None
    """(query, length - 1): share of its lists that have this length; None if all are as long as they can be."""

    @classmethod
    def of(cls, log: LogStatistics) -> ListLengths:
        """Return the lengths of a log's lists. A document without features leaves a gap, which is not an end."""
        possible = np.arange(1, log.cutoff + 1) <= np.diff(log.offsets)[:, None]
        reached = query_sums(log.shown, log.offsets) / np.maximum(log.interactions, 1)[:, None]
        reached = np.maximum.accumulate(reached[:, ::-1], axis=1)[:, ::-1]
        reached = np.where(possible, np.where(log.interactions[:, None] > 0, np.minimum(reached, 1.0), 1.0), 0.0)
        if (reached >= possible - NOTHING).all():
            return cls(log.offsets, None)
        return cls(log.offsets, reached - np.pad(reached[:, 1:], ((0, 0), (0, 1))))

    def exposure(self, scores: NDArray[Any], examination: NDArray[np.float64]) -> Floats:
        """Return the exposure of each document under a Plackett-Luce policy whose lists have these lengths.

        rho(d) = sum_L share_q(L) sum_{k <= L} examination[k] P(rank(d) = k)
        """
        return self.mean(lambda curve: exposure(scores, self.offsets, curve).astype(np.float64), examination)

    def mean(self, exposed: Callable[[Floats], Floats], examination: Floats) -> Floats:
        """Return the mean over list lengths of what `exposed` returns for the examination of so many ranks."""
        if self.share is None:
            return exposed(examination)
        total = np.zeros(int(self.offsets[-1]))
        for place in np.flatnonzero((self.share > NOTHING).any(axis=0)):
            total += np.repeat(self.share[:, place], np.diff(self.offsets)) * exposed(examination[: place + 1])
        return total

    def full_exposure(self, log: LogStatistics, examination: Floats) -> Floats:
        """Return the exposure that the log would show if all its lists were as long as they can be.

        rho(d) = sum_k examination[k] shown(d, k) / (lists of q that reach rank k)
        """
        reached: Any = 1.0
        if self.share is not None:
            reached = np.repeat(self.share[:, ::-1].cumsum(axis=1)[:, ::-1], np.diff(self.offsets), axis=0)
        lists = reached * np.maximum(log.interactions, 1)[log.query_of_document][:, None]
        shown = np.divide(log.shown, lists, out=np.zeros(log.shown.shape), where=lists > NOTHING)
        return np.asarray(shown @ examination)
