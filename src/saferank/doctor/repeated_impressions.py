"""Whether impressions were logged twice under different ids: by two exports that overlap, or an event that fired twice.

Copies lie in different parts of the log, so training sees clicks that are held out, and every copy counts as evidence.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions
from saferank.engine.types.ranking_data import RankingData

Floats = NDArray[np.float64]
SIGNIFICANT = 4.0
"""Normal deviate from which it is believed."""
LEAST_COPIED = 0.5
"""Share of the coincidences (same list, same moment) that have to be copies: users who happen to see the same list at
the same time may click alike for reasons of their own."""
LEAST_SHARE = 0.01
"""Share of all impressions that have to be copies for it to matter."""
COARSE = 0.5
"""Share of impressions at the same moment as one of another query, from which on times are too coarse to tell."""
NOTHING = 1e-9


@dataclass(frozen=True)
class RepeatedImpressions:
    """A test of whether impressions of the same list and moment have the same clicks more often than by chance."""

    z: float = 0.0
    """Normal deviate."""
    copied: float = 0.0
    """Share of such coincidences that are copies."""
    share: float = 0.0
    """Share of all impressions that are copies of another."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance, and enough to matter."""
        return self.z > SIGNIFICANT and self.copied > LEAST_COPIED and self.share > LEAST_SHARE


def repeated_impressions(
    sample: SampledImpressions | None, pairs: RankingData, impressions: int
) -> RepeatedImpressions:
    """Test whether two impressions with the same list and moment have the same clicks more often than by chance.

    Impressions of a list and moment are put in random order, and each is compared with the next, unless neither has a
    click. If users click independently, with click-through p of each document at its rank, their clicks are the same
    with probability

        (prod (p^2 + (1 - p)^2) - prod (1 - p)^2) / (1 - prod (1 - p)^2)

    `impressions` is the number that the sample was drawn from. A copy is in it as seldom as any other impression,
    unless users were drawn with all of theirs.
    """
    if sample is None or sample.moment is None or _too_coarse(sample, pairs):
        return RepeatedImpressions()
    rng, first = np.random.default_rng(0), sample.offsets[:-1]
    place = np.unique(sample.document * (int(sample.rank.max()) + 1) + sample.rank, return_inverse=True)[1]
    value = rng.integers(1, 1 << 62, int(place.max()) + 1)[place]  # sums of these, modulo 2^64, tell sets apart
    shown, clicked = (np.add.reduceat(values, first) for values in (value, value * sample.click.astype(np.int64)))
    moment = sample.moment[first]
    group = np.unique(np.stack([shown, moment]), axis=1, return_inverse=True)[1].ravel()
    order = np.lexsort((rng.random(len(group)), group))
    one, other = order[:-1], order[1:]
    compared = (group[one] == group[other]) & (moment[one] >= 0) & ((clicked[one] != 0) | (clicked[other] != 0))
    one, other = one[compared], other[compared]
    if len(one) == 0:
        return RepeatedImpressions()
    chance = _chance_of_same_clicks(sample, place)[one]
    drawn = 1.0 if sample.unit is not None else min(len(shown) / max(impressions, 1), 1.0)
    excess = float((clicked[one] == clicked[other]).sum() - chance.sum())
    copies = excess / max(float((1.0 - chance).mean()), NOTHING)
    return RepeatedImpressions(
        z=excess / math.sqrt(max(float((chance * (1.0 - chance)).sum()), NOTHING)),
        copied=copies / len(one),
        share=copies / float((clicked != 0).sum()) / drawn,
    )


def _chance_of_same_clicks(sample: SampledImpressions, place: NDArray[np.int64]) -> Floats:
    """Return the chance that another impression of the list has the same clicks, given that one of them has any."""
    rate = ((np.bincount(place, sample.click) + 0.5) / (np.bincount(place) + 1.0))[place]
    same = np.multiply.reduceat(rate**2 + (1.0 - rate) ** 2, sample.offsets[:-1])
    neither = np.multiply.reduceat((1.0 - rate) ** 2, sample.offsets[:-1])
    chance: Floats = np.maximum(same - neither, 0.0) / np.maximum(1.0 - neither, NOTHING)
    return chance


def _too_coarse(sample: SampledImpressions, pairs: RankingData) -> bool:
    """Whether most impressions share their moment with one of another query, as where times are those of the day."""
    assert sample.moment is not None
    first = sample.offsets[:-1]
    moment, query = sample.moment[first], pairs.query_of_document[sample.document[first]]
    dated = moment >= 0
    at = moment[dated]
    queries = np.bincount(np.unique(np.stack([at, query[dated]]), axis=1)[0], minlength=1) if len(at) else np.zeros(1)
    return bool((queries[at] > 1).mean() > COARSE) if len(at) else True
