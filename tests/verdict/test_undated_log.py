"""A log without timestamps: a ranker that follows drifting demand cannot be seen in it."""

import numpy as np
import pytest

from saferank.verdict.certificate import Certificate
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import Refused
from saferank.verdict.new_ranker import NewRanker
from tests.shops import World, make_shop, nightly, noisy


def certified(world: World, *, known: bool = False, trust: bool = False, seed: int = 0) -> Certificate:
    rng = np.random.default_rng([3, seed])
    log = world.draw(3_000, rng).aggregated(rng, timestamps=False)
    new = NewRanker(world.shop.data(), world.no_better(rng).flat, complete=True)
    scores = world.logging.flat if known else None
    return certify(new, log, CertifySettings(trust_stability=trust, details=False), logging_scores=scores)


def drawn() -> World:
    rng = np.random.default_rng(1)
    shop = make_shop(rng)
    return World(shop, noisy(shop, rng))


def test_it_is_refused_even_where_the_ranker_follows_demand() -> None:
    rng = np.random.default_rng(2)
    shop = make_shop(rng, days=10, drift=0.6)
    for world in (World(shop, nightly(shop, rng)), drawn()):
        with pytest.raises(Refused) as raised:
            certified(world)
        assert raised.value.code == "no-timestamps"


def test_it_is_not_if_stability_is_stated_or_the_scores_are_known() -> None:
    found = certified(drawn(), trust=True)
    assert "no-timestamps" in [doubt.code for doubt in found.doubts]
    assert certified(drawn(), known=True).logging_exposure == "known"
