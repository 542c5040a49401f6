"""How flat a policy may go live: the flatter ones that the same look proves, and no others."""

import math
from dataclasses import replace

import numpy as np
import pytest

from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict.certificate import Certificate, Verdict
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import Refused
from saferank.verdict.decision import TEMPERATURES
from saferank.verdict.new_ranker import NewRanker
from tests.shops import Ranker, World, make_shop, noisy

ASKED = CertifySettings(details=False, explore=True)


@pytest.fixture(scope="module")
def world() -> World:
    shop = make_shop(np.random.default_rng(1), queries=30, documents=8, cutoff=4)
    return World(shop, noisy(shop, np.random.default_rng(5)))


@pytest.fixture(scope="module")
def better(world: World) -> Ranker:
    """Drawn with Plackett-Luce, and so sharp that a flatter one is better than the current ranker too."""
    return world.better(0.2, np.random.default_rng(2), sampled=True)


def drawn(world: World, interactions: int, seed: int) -> AggregatedLog:
    rng = np.random.default_rng([8, seed])
    return world.draw(interactions, rng).aggregated(rng)


@pytest.fixture(scope="module")
def log(world: World) -> AggregatedLog:
    return drawn(world, 10_000, 0)


def at(ranker: Ranker, temperature: float) -> Ranker:
    return Ranker(ranker.scores / np.float32(temperature), sampled=True)


def judge(world: World, log: AggregatedLog, new: Ranker, settings: CertifySettings = ASKED) -> Certificate:
    how = "sampled" if new.sampled else "deterministic"
    ranker = NewRanker(world.shop.data(), new.flat, how)  # type: ignore[arg-type]
    return certify(ranker, log, settings, logging_scores=world.logging.flat)


def test_what_is_proven_is_what_certifying_it_alone_proves(world: World, log: AggregatedLog, better: Ranker) -> None:
    found = judge(world, log, better)
    assert found.verdict is Verdict.DEPLOY
    tried = TEMPERATURES[: len(found.exploration) + 1]
    alone = [judge(world, log, at(better, temperature), replace(ASKED, explore=False)) for temperature in tried]
    rows = [(row.temperature, row.improvement, row.lower) for row in found.exploration]
    proven = [one.verdict is Verdict.DEPLOY for one in alone]
    assert proven == [True] * len(rows) + [False] * (len(tried) - len(rows))
    assert rows == [(t, one.improvement, one.lower) for t, one in zip(tried, alone, strict=False)][: len(rows)]
    assert found.temperature == rows[-1][0] > 1.0


def test_nothing_is_tried_where_nothing_may_be_flattened(world: World, log: AggregatedLog, better: Ranker) -> None:
    by_score = judge(world, log, Ranker(better.scores))
    assert (by_score.verdict, by_score.exploration, by_score.temperature) == (Verdict.DEPLOY, (), 1.0)
    worse = judge(world, log, world.worse(0.2, np.random.default_rng(3), sampled=True))
    assert worse.verdict is not Verdict.DEPLOY
    assert worse.exploration == ()
    assert judge(world, log, better, replace(ASKED, explore=False)).exploration == ()


def test_a_flatter_policy_that_is_refused_is_not_proven(
    world: World, log: AggregatedLog, better: Ranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter([None, Refused("it rests on what is missing", code="high-or-missing")])

    def second_time(*_: object) -> None:
        if (refused := next(calls)) is not None:
            raise refused

    monkeypatch.setattr("saferank.verdict.decision.check_left_out", second_time)
    found = judge(world, log, better)
    assert (found.verdict, found.exploration) == (Verdict.DEPLOY, ())


def test_over_logs_a_policy_that_is_too_flat_is_seldom_proven(world: World) -> None:
    """The current ranker, sharpened: at 1.5 it is flatter than that, and hardly worse. At most delta go that far."""
    sharp, delta, logs = at(world.logging, 1.0 / 1.48), 0.1, 16
    assert world.improvement(at(sharp, 1.5)) < 0.0 < world.improvement(at(sharp, 1.25))
    found = [judge(world, drawn(world, 4_000, seed), sharp, replace(ASKED, delta=delta)) for seed in range(logs)]
    too_far = sum(one.temperature > 1.25 for one in found)
    assert too_far / logs <= delta + 3.0 * math.sqrt(delta * (1.0 - delta) / logs)
    assert sum(one.temperature == 1.25 for one in found) > logs / 4  # and what may be flattened often is
