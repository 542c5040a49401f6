"""Exposure of policies whose lists are as long as those of a log, against drawn rankings and by hand."""

import numpy as np
import pyarrow.compute as pc
import pytest

from saferank import SafeRanker, load_log
from saferank.engine.plackett_luce import exposure, sample_rankings
from saferank.engine.types.log_statistics import LogStatistics
from saferank.learning.list_lengths import ListLengths
from tests.shops import World, make_shop, noisy

EXAMINATION = np.array([1.0, 0.6, 0.3])
OFFSETS = np.array([0, 4, 6, 9])
SCORES = np.array([2.0, 1.0, 0.0, -1.0, 0.5, 0.0, 1.0, 0.0, -1.0])


def drawn_log(lengths: list[tuple[float, ...]], interactions: int = 60_000) -> LogStatistics:
    """Rankings drawn from SCORES, of which each query shows 1, 2 or 3 documents with these chances."""
    rng = np.random.default_rng(0)
    shown = np.zeros((len(SCORES), len(EXAMINATION)), np.int64)
    for query, chances in enumerate(lengths):
        offsets = np.array([0, OFFSETS[query + 1] - OFFSETS[query]])
        scores = SCORES[OFFSETS[query] : OFFSETS[query + 1]]
        rankings = sample_rankings(scores, offsets, len(EXAMINATION), interactions, rng)[0]
        length = rng.choice([1, 2, 3], size=interactions, p=chances)
        for rank in range(len(EXAMINATION)):
            listed = rankings[(length > rank) & (rankings[:, rank] >= 0), rank]
            shown[OFFSETS[query] : OFFSETS[query + 1], rank] = np.bincount(listed, minlength=offsets[1])
    return LogStatistics(OFFSETS, np.full(3, interactions), shown, np.zeros_like(shown))


def test_the_exposure_is_that_of_lists_which_end_early() -> None:
    log = drawn_log([(0.5, 0.2, 0.3), (0.0, 0.4, 0.6), (0.1, 0.0, 0.9)])
    found = ListLengths.of(log).exposure(SCORES, EXAMINATION)
    counted = log.shown @ EXAMINATION / 60_000
    np.testing.assert_allclose(found, counted, atol=5 * np.sqrt(0.25 / 60_000))
    full = exposure(SCORES, OFFSETS, EXAMINATION)
    assert (full - found)[:4].sum() == pytest.approx(0.5 * 0.9 + 0.2 * 0.3, abs=0.01)
    np.testing.assert_allclose(
        ListLengths.of(log).full_exposure(log, EXAMINATION), full, atol=5 * np.sqrt(0.25 / 18_000)
    )


def test_full_lists_change_nothing_whatever_the_number_of_documents() -> None:
    log = drawn_log([(0.0, 0.0, 1.0)] * 3)
    assert ListLengths.of(log).share is None
    np.testing.assert_array_equal(
        ListLengths.of(log).exposure(SCORES, EXAMINATION), exposure(SCORES, OFFSETS, EXAMINATION)
    )
    np.testing.assert_allclose(
        ListLengths.of(log).full_exposure(log, EXAMINATION), log.shown @ EXAMINATION / 60_000, rtol=1e-12
    )


def test_a_gap_is_not_an_end_and_a_query_never_issued_has_full_lists() -> None:
    shown = np.array([[0, 0, 10], [0, 10, 0], [0, 0, 0], [0, 0, 0], [10, 0, 0], [0, 5, 0], *[[0, 0, 0]] * 3])
    log = LogStatistics(OFFSETS, np.array([10, 10, 0]), shown, np.zeros_like(shown))
    share = ListLengths.of(log).share
    assert share is not None
    np.testing.assert_allclose(share, [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])


def test_small_screens_do_not_raise_what_a_fit_predicts() -> None:
    """Half of the impressions show two documents of five: a new ranker would not show more there either."""
    rng = np.random.default_rng(3)
    shop = make_shop(rng, queries=60)
    log = World(shop, noisy(shop, rng)).draw(8_000, rng).table()
    features = shop.features(rng)
    phone = pc.and_(pc.equal(pc.bit_wise_and(log["impression_id"], 1), 1), pc.greater(log["position"], 2))
    predicted = []
    for shown in (log, log.filter(pc.invert(phone))):
        ranker = SafeRanker(log1p=False).fit(load_log(shown), features)
        before, after = ranker.comparison
        predicted.append(after.estimate / before.estimate - 1)
    assert predicted[1] < predicted[0] + 0.05  # it was 0.2 above
