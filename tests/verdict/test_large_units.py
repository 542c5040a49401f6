"""Users of whom a few search far more than the others, and what certify offers for them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saferank.doctor.possible_drift import PossibleDrift
from saferank.engine.errors import UsageError
from saferank.logs.aggregated_log import AggregatedLog
from saferank.policy.serve import ServeAs
from saferank.verdict.certificate import Certificate, Verdict, meaning
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.comparison import Rankers
from saferank.verdict.ledger import Ledger
from saferank.verdict.new_ranker import NewRanker
from saferank.verdict.words import PER_UNIT
from tests.shops import Ranker, World, noisy_world


@pytest.fixture(scope="module")
def world() -> World:
    return noisy_world()


@pytest.fixture(scope="module")
def log(world: World) -> AggregatedLog:
    """About six searches per user, but a few have hundreds."""
    rng = np.random.default_rng(3)
    drawn = world.draw(12_000, rng)
    traffic = rng.pareto(1.3, 2_000) + 1.0
    unit = rng.choice(len(traffic), 12_000, p=traffic / traffic.sum())
    return replace(drawn, unit=unit).aggregated(rng, units=True, split="unit")


@pytest.fixture(scope="module")
def better(world: World) -> Ranker:
    return world.better(0.2, np.random.default_rng(2))


def judge(world: World, log: AggregatedLog, new: Ranker, most: int | None = None, **options: object) -> Certificate:
    how: ServeAs = "sampled" if new.sampled else "deterministic"
    ranker = NewRanker(world.shop.data(), new.flat, how, complete=False)
    settings = CertifySettings(details=False, most_per_unit=most)
    return certify(ranker, log, settings, **options)  # type: ignore[arg-type]


def test_the_advice_decides(world: World, log: AggregatedLog, better: Ranker) -> None:
    undecided = judge(world, log, better)
    assert undecided.verdict is Verdict.MORE_DATA
    assert undecided.lower < -0.5 * undecided.click_rate
    [advice] = [warning for warning in undecided.warnings if "--most-per-unit" in warning]
    [most] = [each for each in PER_UNIT if f"--most-per-unit {each} " in advice]
    decided = judge(world, log, better, most)
    assert decided.verdict is Verdict.DEPLOY
    assert decided.lower < world.improvement(better) < decided.upper
    assert decided.interactions < undecided.interactions
    assert f"each user_id counting with at most {most} interactions" in decided.covers
    assert any("draws its ranking anew" in assumption for assumption in decided.assumptions)
    assert decided.most_per_unit == most
    assert f"more than {most} interactions" in meaning(decided)
    assert not any("--most-per-unit" in warning for warning in decided.warnings)


def test_no_advice_where_nothing_would_be_decided(world: World, log: AggregatedLog) -> None:
    equal = world.no_better(np.random.default_rng(4))
    assert not any("--most-per-unit" in warning for warning in judge(world, log, equal).warnings)


def test_the_click_rate_is_that_of_what_counts(world: World, log: AggregatedLog, better: Ranker) -> None:
    """With at most one interaction per user, it is the mean of the users' own rates."""
    patterns = log.patterns.filter(log.patterns["part"].to_numpy() == "certify").to_pylist()
    users: dict[str, list[int]] = {}
    for row in patterns:
        users.setdefault(row["unit"], []).extend([len(row["clicked"])] * row["interactions"])
    certificate = judge(world, log, better, 1)
    assert certificate.interactions == len(users)
    assert certificate.click_rate == pytest.approx(np.mean([np.mean(clicks) for clicks in users.values()]))
    everything = judge(world, log, better, 1_000_000)
    assert everything.click_rate == pytest.approx(np.mean(np.concatenate([*users.values()])))
    assert everything.lower == judge(world, log, better).lower


def test_each_limit_is_a_look_of_its_own(world: World, log: AggregatedLog, better: Ranker, tmp_path: Path) -> None:
    ledger = tmp_path / "looks.json"
    looks = [judge(world, log, better, most, ledger=ledger).look for most in (None, 20, 20, None, 50)]
    assert looks == [1, 2, 2, 1, 3]
    assert len(Ledger.read(ledger).looks) == 3


def test_what_is_counted_is_counted_alike_everywhere(world: World, log: AggregatedLog, better: Ranker) -> None:
    """The estimate is the mean of the terms, and what the terms lack is weighted as they are."""
    ranker = NewRanker(world.shop.data(), better.flat, "sampled" if better.sampled else "deterministic")
    rankers, curve = Rankers(log, ranker, None), world.shop.examination
    limited, everything = (rankers.compare("certify", None, 0.0, most) for most in (3, np.inf))
    assert limited.mean(curve, 5.0) == pytest.approx(limited.differences(curve, 5.0).mean)
    assert limited.mean(curve, 5.0) != pytest.approx(everything.mean(curve, 5.0))
    assert limited.click_rate == pytest.approx(judge(world, log, better, 3).click_rate)
    assert rankers.compare("certify", None, 0.0, 1e6).rest(curve, 5.0) == pytest.approx(everything.rest(curve, 5.0))
    drift = PossibleDrift(0.1, np.ones(rankers.pairs.documents))
    shares = [
        replace(one, drifts=(drift,)).allowance(curve, 5.0) / (one.mean(curve, 5.0) + one.click_rate)
        for one in (limited, everything)
    ]
    assert shares[0] == pytest.approx(shares[1])  # the same share of what the new ranker earns
    assert limited.rest(curve, 5.0) != pytest.approx(everything.rest(curve, 5.0))


def test_wrong_calls(world: World, log: AggregatedLog, better: Ranker) -> None:
    with pytest.raises(UsageError):
        CertifySettings(most_per_unit=0)
    with pytest.raises(UsageError):  # one ranking per user, counted over all interactions, is not what is counted
        judge(world, log, better, 20, random_per_unit=True)
    rng = np.random.default_rng(3)
    without_units = world.draw(500, rng).aggregated(rng)
    with pytest.raises(UsageError):
        judge(world, without_units, better, 20)
