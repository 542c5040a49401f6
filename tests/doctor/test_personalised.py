"""Rankings that depend on the user: found where users repeat queries, and not where rankings are drawn afresh."""

from dataclasses import replace

import numpy as np

from saferank.doctor.diagnosis import diagnose
from tests.shop_log import ShopLog
from tests.shops import PositionBased, Tastes, World, make_shop, nightly, noisy


def drawn(world: World, seed: int, interactions: int = 3_000) -> ShopLog:
    return world.draw(interactions, np.random.default_rng(seed))


def test_rankings_by_group_are_found() -> None:
    rng = np.random.default_rng(0)
    shop = make_shop(rng, queries=20)
    groups = [World(shop, noisy(shop, rng), PositionBased(loyal=True)) for _ in range(2)]
    first, second = (drawn(world, 1) for world in groups)  # the same users and queries
    assert np.array_equal(first.unit, second.unit)
    assert np.array_equal(first.query, second.query)
    odd = (first.unit % 2 == 1)[:, None]
    mixed = replace(
        first,
        ranking=np.where(odd, second.ranking, first.ranking),
        clicks=np.where(odd, second.clicks, first.clicks),
    )
    found = diagnose(mixed.aggregated(0, units=True), em=False, replicates=5)
    assert found.personalised.significant
    assert "personalised" in [finding.code for finding in found.blocking]
    assert not diagnose(mixed.aggregated(0), em=False, replicates=5).personalised.significant  # nobody can tell


def test_rankings_drawn_afresh_and_rankers_that_change_are_not_taken_for_it() -> None:
    rng = np.random.default_rng(1)
    shop = make_shop(rng, queries=20)
    for ranker in (noisy(shop, rng), nightly(shop, rng)):
        world = World(shop, ranker, Tastes())
        flagged = [
            diagnose(drawn(world, seed).aggregated(0, units=True), em=False, replicates=5).personalised.significant
            for seed in range(8)
        ]
        assert sum(flagged) <= 1


def test_sessions_of_a_day_are_not_taken_for_it_where_the_ranker_changes_every_night() -> None:
    """Each sees one ranker, but no other than the other sessions of its day."""
    rng = np.random.default_rng(2)
    shop = make_shop(rng, queries=20)
    log = drawn(World(shop, nightly(shop, rng), Tastes()), 0)
    sessions = replace(log, unit=np.unique(log.unit * (log.day.max() + 1) + log.day, return_inverse=True)[1])
    found = diagnose(sessions.aggregated(0, units=True), em=False, replicates=5).personalised
    assert found.repeated > 0.05
    assert not found.significant
