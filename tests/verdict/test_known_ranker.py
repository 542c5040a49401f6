"""Logging scores that are wrong are found, also where every query is rare; right ones pass."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.strata import counts_by_stratum
from saferank.policy.serve import served_placement
from saferank.verdict.checks import Refused
from saferank.verdict.known_ranker import check_known_ranker
from tests.shops import Ranker, World, make_shop, noisy

QUERIES, DOCUMENTS, RANKS = 600, 8, 4


def check(given: NDArray[Any], *, seed: int = 0, new: NDArray[Any] | None = None, rule: float = 0.0) -> None:
    """Check these scores on a log of about three held-out interactions per query; the new ranker is the same, or `new`.

    `rule`: added to every fourth document's score after it was logged.
    """
    rng = np.random.default_rng(seed)
    shop = make_shop(rng, queries=QUERIES, documents=DOCUMENTS, cutoff=RANKS)
    world = World(shop, noisy(shop, rng))
    boosted = world.logging.scores + rule * (np.arange(DOCUMENTS) % 4 == 0)
    log = World(shop, Ranker(boosted, sampled=True)).draw(9_000, rng).aggregated(rng)
    pairs = shown_pairs(log, shop.data())
    placement = served_placement(np.asarray(given, np.float32).ravel(), pairs.offsets, RANKS, "sampled")
    new_placement = placement
    if new is not None:
        by_score = np.asarray(new, np.float32).ravel()
        new_placement = served_placement(by_score, pairs.offsets, RANKS, "deterministic")
    part = counts_by_stratum(log, ("certify",), pairs, strata=np.arange(len(log.periods)))
    check_known_ranker(part, placement, new_placement, pairs.offsets, log.periods, "log")


def scores_of(seed: int = 0) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    shop = make_shop(rng, queries=QUERIES, documents=DOCUMENTS, cutoff=RANKS)
    return noisy(shop, rng).flat.reshape(QUERIES, DOCUMENTS)


@pytest.mark.parametrize("seed", range(6))
def test_right_scores_pass(seed: int) -> None:
    scores = scores_of(seed)
    check(scores, seed=seed)
    check(scores, seed=seed, new=-scores)


@pytest.mark.parametrize("wrong", ["flatter", "steeper", "out of date"])
def test_wrong_scores_are_refused(wrong: str) -> None:
    scores = scores_of()
    noise = np.random.default_rng(1).normal(size=scores.shape)
    given = {"flatter": 0.6 * scores, "steeper": 1.6 * scores, "out of date": scores + noise}[wrong]
    with pytest.raises(Refused) as caught:
        check(given)
    assert caught.value.code == "other-ranker"


def test_a_rule_after_the_scores_is_refused_if_the_new_ranker_follows_it() -> None:
    scores = scores_of()
    liked = scores + 3.0 * (np.arange(DOCUMENTS) % 4 == 0)
    with pytest.raises(Refused):
        check(scores, new=liked, rule=0.4)  # too small to be seen at any one rank
    check(scores, new=liked)
