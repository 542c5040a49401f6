"""Whether clicks are position-based: P(click on d at rank k) = examination_k * relevance_d, whatever else is shown.

The verdict rests on it. Users are known to deviate in three ways, each of which leaves its own trace in a log.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.doctor.log_arrays import SampledImpressions, compact
from saferank.engine.propensity.curve_fit import curvature
from saferank.engine.propensity.harvesting import harvest
from saferank.engine.propensity.interventions import find_interventions
from saferank.engine.ragged import query_of_document
from saferank.engine.types.log_statistics import LogStatistics

SIGNIFICANT = 3.6
"""Normal deviate from which a misfit is believed: one clean log in 3000, for each of three tests."""
MARGIN = 0.1
"""Relative misfit that is accepted, however certain: it is smaller than what other assumptions cost."""
PRIOR_CLICKS = 1.0
"""Clicks at the average rate that each document is assumed to have had before the log."""


@dataclass(frozen=True)
class Misfit:
    """How far clicks are from position-based ones in one respect."""

    z: float
    """Normal deviate, with a sign."""
    size: float
    """The misfit itself, relative to click-through; 0 for position-based clicks."""
    error: float
    """Standard error of `size`; infinite if the log cannot be tested."""
    rests_on: int
    """Rows, pairs of rows, or documents that moved."""

    @property
    def significant(self) -> bool:
        """Whether it is beyond chance and beyond the margin."""
        return abs(self.z) > SIGNIFICANT and abs(self.size) > MARGIN


NOTHING = Misfit(0.0, 0.0, math.inf, 0)


@dataclass(frozen=True)
class PositionBased:
    """The three tests: context and stop on single impressions, trust on the counts of the log."""

    context: Misfit
    stop: Misfit
    trust: Misfit

    @property
    def users_stop(self) -> bool:
        """Whether a click makes clicks further down rarer.

        Users who each want one kind of document also click on few of a diverse list, and are position-based all the
        same. That explains rare second clicks if rankings vary enough to show that what stands above does not matter.
        """
        cleared = self.context.size - 3.0 * self.context.error > self.stop.size / 2.0
        return self.stop.significant and self.stop.size < 0 and not cleared

    @property
    def holds(self) -> bool:
        """Whether no test contradicts position-based clicks."""
        return not (self.context.significant or self.users_stop or self.trust.significant)


def position_based(
    sample: SampledImpressions | None, statistics: LogStatistics, rng: np.random.Generator, *, by_period: bool = False
) -> PositionBased:
    """Run the three tests. `by_period`: click-through changes over periods, so compare within them."""
    trust = trust_test(statistics, rng)
    if sample is None:
        return PositionBased(NOTHING, NOTHING, trust)
    cell: NDArray[np.int64] = sample.document * statistics.cutoff + sample.rank
    cell = compact(cell * (int(sample.period.max()) + 1) + sample.period if by_period else cell)
    return PositionBased(context_test(sample, cell, statistics.cutoff), stop_test(sample, cell), trust)


def context_test(sample: SampledImpressions, cell: NDArray[np.int64], ranks: int) -> Misfit:
    """Test whether click-through of a document at a rank depends on the clicks expected above it.

        sum over rows of (c - mean of its cell) (x - mean of its cell),    x = expected clicks above

    has mean 0 for position-based clicks, whatever the users and rankings, as long as rankings do not depend on the
    user. Users who stop at what they like make it negative. `size`: relative change of click-through per expected
    click above. Clicks above are predicted from the other half of the sample, so that a user's own clicks do not enter
    both factors. The variance is summed by impressions.
    """
    half = query_of_document(sample.offsets) % 2
    expected = [sample.sums_above(_expected_clicks(sample, half != one, ranks)) for one in (0, 1)]
    above = np.where(half == 0, *expected)
    cell = 2 * cell + half  # what is expected differs between the halves by chance
    rate, residual = _centred(sample.click, cell)
    _, above = _centred(above, cell)
    terms = sample.sums(residual * above)
    size_of = float((rate * above**2).sum())
    used = int((above != 0).sum())
    if size_of <= 1e-12:
        return NOTHING
    # both variances hold for independent impressions; the first also if rows of an impression go together
    variance = max(float(terms @ terms), _permutation_variance(residual, above, cell))
    error = math.sqrt(variance)
    return NOTHING if error == 0 else Misfit(terms.sum() / error, terms.sum() / size_of, error / size_of, used)


def stop_test(sample: SampledImpressions, cell: NDArray[np.int64]) -> Misfit:
    """Test whether clicks of one impression go together more or less often than independent ones.

        sum over two rows of an impression of (c - mean of its cell) (c' - mean of its cell)

    has mean 0 for independent clicks. Users who stop after a click make it negative; users who differ in how readily
    they click make it positive, which does no harm. `size`: the same relative to the product of the click-throughs,
    -1 if there is never a second click.
    """
    rate, residual = _centred(sample.click, cell)
    rate = np.where((np.bincount(cell) > 1)[cell], rate, 0.0)  # a cell of one row has no residual
    pairs = (sample.sums(residual) ** 2 - sample.sums(residual**2)) / 2.0
    expected = float((sample.sums(rate) ** 2 - sample.sums(rate**2)).sum()) / 2.0
    error = math.sqrt(float(pairs @ pairs))
    if error == 0 or expected <= 0:
        return NOTHING
    lengths = np.diff(sample.offsets)
    return Misfit(
        pairs.sum() / error, pairs.sum() / expected, error / expected, int((lengths * (lengths - 1) // 2).sum())
    )


def trust_test(statistics: LogStatistics, rng: np.random.Generator) -> Misfit:
    """Test whether click-through falls with rank in the same way for documents of high and of low relevance.

        P(click on d at k) ~ examination_k * k^(-theta g_d),    g_d: log relevance of d, centred

    Position-based clicks have theta = 0. Users who trust the ranker click on poor documents at the top: theta < 0.
    A score test in the likelihood of `harvest`, with the curve estimated as well. What was shown is split at random
    into two halves: one gives g, the other is tested, and then vice versa; so a lucky document does not count twice.
    `size`: by how much the ratio of the last rank to the first differs between documents one standard deviation
    above and one below the mean of g, in logarithms.
    """
    shown, clicked = statistics.shown, statistics.clicked
    first_shown = shown // 2 + (shown % 2) * rng.integers(0, 2, shown.shape)
    first_clicked = rng.hypergeometric(clicked, shown - clicked, np.maximum(first_shown, 0))
    halves = [(first_shown, first_clicked), (shown - first_shown, clicked - first_clicked)]
    found = [
        _trust_score(
            LogStatistics(statistics.offsets, statistics.interactions, *tested), _log_relevance(*other, statistics)
        )
        for tested, other in (halves, halves[::-1])
    ]
    score, information, variance, documents = map(sum, zip(*found, strict=True))
    if information <= 0 or variance <= 0:
        return NOTHING
    contrast = 2.0 * math.log(max(statistics.cutoff, 2))
    error = math.sqrt(variance)
    return Misfit(score / error, -score / information * contrast, error / information * contrast, documents)


def _trust_score(half: LogStatistics, relevance: NDArray[np.float64]) -> tuple[float, float, float, int]:
    """Return score, information and variance of theta, with the curve profiled out, and the number of documents."""
    pairs = find_interventions(half)
    if len(pairs.ranks) < 2 or pairs.queries < 2:
        return 0.0, 0.0, 0.0, 0
    fit = harvest(pairs)
    g = relevance[pairs.document]
    g = g - np.average(g, weights=fit.total)
    deviation = math.sqrt(float(np.average(g * g, weights=fit.total)))
    if deviation < 1e-9:
        return 0.0, 0.0, 0.0, 0
    g = g / deviation
    along = -np.log(pairs.ranks + 1.0)
    expected = fit.weight @ along
    score = g * (fit.gradient @ along)
    cross = ((g[:, None] * fit.weight) * (along - (expected / fit.total)[:, None])).sum(axis=0)
    own = float((g * g * (fit.weight @ along**2 - expected**2 / fit.total)).sum())
    curve = curvature(fit.weight, fit.total)[1:, 1:]
    slope = np.linalg.solve(curve, cross[1:])
    per_document = score - fit.gradient[:, 1:] @ slope
    variance = float(per_document @ per_document) * pairs.pairs / (pairs.pairs - 1)
    return float(score.sum()), own - float(cross[1:] @ slope), variance, pairs.pairs


def _log_relevance(
    shown: NDArray[np.int64], clicked: NDArray[np.int64], statistics: LogStatistics
) -> NDArray[np.float64]:
    """Log of clicks over the clicks that an average document would have had at the same ranks, shrunk to 0."""
    rate = statistics.clicked.sum(axis=0) / np.maximum(statistics.shown.sum(axis=0), 1)
    ratio: NDArray[np.float64] = (clicked.sum(axis=1) + PRIOR_CLICKS) / (shown @ rate + PRIOR_CLICKS)
    return np.log(ratio)


def _expected_clicks(sample: SampledImpressions, chosen: NDArray[np.bool_], ranks: int) -> NDArray[np.float64]:
    """Chance of a click in each row, by the click-through of its rank and of its document in the chosen rows."""
    rank, document, click = sample.rank[chosen], sample.document[chosen], sample.click[chosen]
    rate = np.bincount(rank, click, ranks) / np.maximum(np.bincount(rank, minlength=ranks), 1)
    documents = int(sample.document.max()) + 1
    clicks, average = np.bincount(document, click, documents), np.bincount(document, rate[rank], documents)
    relevance = (clicks + PRIOR_CLICKS) / (average + PRIOR_CLICKS)
    return np.minimum(rate[sample.rank] * relevance[sample.document], 1.0)


def _centred(values: NDArray[np.float64], cell: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of each row's cell, and the value less that mean."""
    mean = (np.bincount(cell, values) / np.maximum(np.bincount(cell), 1))[cell]
    return mean, values - mean


def _permutation_variance(one: NDArray[np.float64], other: NDArray[np.float64], cell: NDArray[np.int64]) -> float:
    """Variance of the sum of products over all orders of one of the two within each cell."""
    rows = np.bincount(cell)
    return float((np.bincount(cell, one**2) * np.bincount(cell, other**2) / np.maximum(rows - 1, 1)).sum())
