"""Whether impressions were logged twice under different ids: by two exports that overlap, or an event that fired twice.

Copies lie in different parts of the log, so training sees clicks that are held out, and every copy counts as evidence.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions

Integers = NDArray[np.int64]
SIGNIFICANT = 4.0
"""Normal deviate from which it is believed."""
MOSTLY = 0.5
"""Share of the lists that two impressions have at the same moment from which they are taken for copies. Where times are
those of the day, say, users who are shown the same list at the same time are many, and some click alike."""
LEAST_SHARE = 0.01
"""Share of all impressions that have to be copies for it to matter."""


@dataclass(frozen=True)
class RepeatedImpressions:
    """A test of whether impressions of the same list and moment have the same clicks more often than others do."""

    z: float = 0.0
    """Normal deviate."""
    mostly: float = 0.0
    """Share of such impressions that are copies."""
    share: float = 0.0
    """Share of all impressions that are copies of another."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance, and enough to matter."""
        return self.z > SIGNIFICANT and self.mostly > MOSTLY and self.share > LEAST_SHARE


def repeated_impressions(sample: SampledImpressions | None, impressions: int) -> RepeatedImpressions:
    """Test whether two impressions with the same list and moment have the same clicks more often than by chance.

    Only pairs of impressions count of which at least one has a click. Given the list, the clicks of two users are
    independent, so pairs of the same moment should be alike as often as pairs of different moments. `impressions` is
    the number that the sample was drawn from: a copy is in it as seldom as any other impression.
    """
    if sample is None or sample.moment is None:
        return RepeatedImpressions()
    rng, first = np.random.default_rng(0), sample.offsets[:-1]
    place = np.unique(sample.document * (int(sample.rank.max()) + 1) + sample.rank, return_inverse=True)[1]
    value = rng.integers(1, 1 << 62, int(place.max()) + 1)[place]  # sums of these, modulo 2^64, tell sets apart
    shown, clicked = (np.add.reduceat(values, first) for values in (value, value * sample.click.astype(np.int64)))
    some, moment = clicked != 0, sample.moment[first]
    everywhere = _alike(shown[moment >= 0], clicked[moment >= 0])
    together = _alike(np.stack([shown, moment])[:, moment >= 0], clicked[moment >= 0])
    alike, pairs = together
    chance = (everywhere[0] - alike + 1.0) / (everywhere[1] - pairs + 2.0)
    if pairs == 0 or not some.any():
        return RepeatedImpressions()
    excess = alike - pairs * chance
    copies = excess / (1.0 - chance)
    in_sample = len(shown) / max(impressions, len(shown))
    return RepeatedImpressions(
        z=excess / math.sqrt(pairs * chance * (1.0 - chance)),
        mostly=copies / pairs,
        share=copies / float(some.sum()) / in_sample,
    )


def _alike(lists: Integers, clicked: Integers) -> tuple[float, float]:
    """Return the number of pairs with the same list and the same clicks, and of those with the same list.

    Pairs without any click are left out.
    """
    group = np.unique(lists, axis=-1, return_inverse=True)[1].ravel()
    both = np.unique(np.stack([group, clicked])[:, clicked != 0], axis=1, return_counts=True)[1]
    every, without = np.bincount(group), np.bincount(group[clicked == 0], minlength=int(group.max(initial=-1)) + 1)
    return _pairs(both), _pairs(every) - _pairs(without)


def _pairs(counts: Integers) -> float:
    """Return the number of pairs within groups of these sizes."""
    sizes = counts.astype(np.float64)
    return float((sizes * (sizes - 1.0) / 2.0).sum())
