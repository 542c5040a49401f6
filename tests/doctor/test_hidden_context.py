"""Tastes that only the ranker knows are found by the lists that it makes; rankers that know no more are left alone."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.hidden_context import HiddenContext, hidden_context
from saferank.doctor.log_arrays import sampled_impressions, shown_pairs
from saferank.logs.load_log import load_log
from saferank.verdict.log_doubts import log_doubts
from tests.shops import Ranker, Shop, World, make_shop, noisy

INTERACTIONS = 8_000
"""Of each of two tastes."""
SIZE = {"queries": 25, "documents": 8, "cutoff": 4}


def tastes(rng: np.random.Generator) -> tuple[Shop, Shop]:
    """Two groups of users whose tastes correlate by 0.28; nothing in the log tells them apart."""
    one, other = (make_shop(rng, **SIZE) for _ in range(2))
    logits = [np.log(shop.relevance / (1.0 - shop.relevance)) for shop in (one, other)]
    return one, replace(one, relevance=1.0 / (1.0 + np.exp(-(0.6 * logits[0] + 0.8 * logits[1] + 0.6))))


def log_of(*worlds: World, rng: np.random.Generator) -> pa.Table:
    tables = [world.draw(INTERACTIONS, rng).table() for world in worlds]
    ids = [pc.add(table["impression_id"], INTERACTIONS * place) for place, table in enumerate(tables)]
    return pa.concat_tables(table.set_column(0, "impression_id", one) for table, one in zip(tables, ids, strict=True))


def test_of(table: pa.Table) -> HiddenContext:
    log = load_log(table)
    pairs = shown_pairs(log)
    return hidden_context(sampled_impressions(log, pairs), pairs, np.random.default_rng(0), by_period=False)


test_of.__test__ = False  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def personalised() -> pa.Table:
    rng = np.random.default_rng(0)
    return log_of(*(World(shop, noisy(shop, rng, noise=0.5)) for shop in tastes(rng)), rng=rng)


def test_a_ranker_that_knows_the_user_is_found(personalised: pa.Table) -> None:
    assert test_of(personalised).significant
    log = load_log(personalised)
    assert "hidden-context" in {one.code for one in diagnose(log, em=False, replicates=2).blocking}
    log_doubts(log, known=True, trust_candidates=True)  # rankings drawn from known scores do not depend on the user


def test_users_who_differ_and_rankers_that_differ_do_no_harm_alone() -> None:
    rng = np.random.default_rng(1)
    one, other = tastes(rng)
    ranker = noisy(one, rng, noise=0.5)
    found = [
        log_of(World(one, ranker), World(other, ranker), rng=rng),  # users differ, and the ranker does not know
        log_of(World(one, ranker), World(one, noisy(other, rng, noise=0.5)), rng=rng),  # an A/B test
        log_of(World(one, ranker), World(replace(one, relevance=one.relevance / 2), ranker), rng=rng),
        log_of(World(one, ranker), World(replace(one, examination=one.examination**2), ranker), rng=rng),
    ]
    assert not any(test_of(table).significant for table in found)


def test_it_is_a_standard_normal_deviate_in_clean_logs() -> None:
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shop = make_shop(rng, queries=12, documents=6, cutoff=3)
        log = World(shop, noisy(shop, rng)).draw(1_500, rng).aggregated(rng)
        pairs = shown_pairs(log)
        found.append(hidden_context(sampled_impressions(log, pairs), pairs, rng, by_period=seed % 2 == 0).z)
    assert abs(np.mean(found)) < 5.0 / np.sqrt(len(found))
    assert 0.5 < np.std(found) < 1.4
    assert max(found) < 4.0


def test_short_lists_by_device_and_rankings_that_never_vary() -> None:
    """A phone that shows fewer documents, whose users click less, is no hidden context."""
    rng = np.random.default_rng(2)
    shop = make_shop(rng, **SIZE)
    phone = replace(shop, relevance=shop.relevance / 2)
    ranker = noisy(shop, rng, noise=0.5)
    log = log_of(World(shop, ranker), World(phone, ranker), rng=rng)
    short = pc.and_(pc.greater_equal(log["impression_id"], INTERACTIONS), pc.greater(log["position"], 2))
    assert not test_of(log.filter(pc.invert(short))).significant
    assert test_of(log_of(World(shop, Ranker(ranker.scores)), rng=rng)) == HiddenContext()
