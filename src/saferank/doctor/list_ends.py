"""Whether lists end because of clicks: rows that are logged only when they were seen, or only up to the last click.

A verdict assumes that a new ranker fills the same ranks, as often. If users stop after a click and only what they saw
is in the log, a better document at the top makes lists shorter, and what they do not show is not missed.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions

Integers = NDArray[np.int64]
SIGNIFICANT = 4.0
"""Normal deviate from which it is believed."""
LEAST_RATIO = 1.3
"""How many times as often lists have to end after a click, for it to matter."""
NEARLY_ALL = 0.9
"""Share of the lists that end at a click from which nothing else explains it."""


@dataclass(frozen=True)
class ListEnds:
    """A test of whether lists end after a click more often than they do after a document without one."""

    z: float = 0.0
    """Normal deviate."""
    ratio: float = 1.0
    """How many times as often."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance, and enough to matter."""
        return self.z > SIGNIFICANT and self.ratio > LEAST_RATIO


def list_ends(sample: SampledImpressions | None) -> ListEnds:
    """Test whether a list ends at a rank more often if the document there was clicked than if it was not.

    Cells are documents at a rank above the last one of all. In each, given how many were clicked and how many lists
    ended, the number of both is hypergeometric if the end does not depend on the click (Mantel and Haenszel 1959).
    Screens that show fewer documents may belong to users who click more often everywhere. So clicks one rank above the
    end are compared in the same way, and only what clicks at the end have more counts; unless NEARLY_ALL ends are
    clicks, as where rows are logged up to the last one.
    """
    if sample is None or len(sample.document) == 0:
        return ListEnds()
    ends = np.zeros(len(sample.document), np.bool_)
    ends[sample.offsets[1:] - 1] = True
    last = int(sample.rank.max())
    here, above = np.flatnonzero(sample.rank < last), np.flatnonzero((sample.rank < last - 1) & ~ends)
    at_end, next_to_last = _log_ratio(sample, here, ends[here]), _log_ratio(sample, above, ends[above + 1])
    if at_end is None:
        return ListEnds()
    ratio, error = at_end
    if sample.click[here][ends[here]].mean() < NEARLY_ALL:
        if next_to_last is None:
            return ListEnds()
        ratio, error = ratio - next_to_last[0], math.hypot(error, next_to_last[1])
    return ListEnds(ratio / error, math.exp(ratio))


def _log_ratio(sample: SampledImpressions, rows: Integers, ended: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Return the logarithm of how many times as often lists end with a click as expected, and its standard error."""
    key = sample.document[rows] * (int(sample.rank.max()) + 1) + sample.rank[rows]
    cell, click = np.unique(key, return_inverse=True)[1], sample.click[rows]
    count, clicks, ending = (np.bincount(cell, values) for values in (np.ones(len(rows)), click, ended))
    expected = float((clicks * ending / np.maximum(count, 1.0)).sum())
    both = float((click * ended).sum())
    variance = clicks * ending * (count - clicks) * (count - ending) / np.maximum(count**2 * (count - 1.0), 1.0)
    if both <= 0.0 or variance.sum() <= 0.0:
        return None
    return math.log(both / expected), math.sqrt(float(variance.sum()) / (both * expected))
