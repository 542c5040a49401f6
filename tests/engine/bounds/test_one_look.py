"""The bound for a single look: coverage in worlds whose truth is known, power, and a plain loop beside it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from saferank.engine.bounds.betting import betting
from saferank.engine.bounds.differences import Differences
from saferank.engine.bounds.one_look import (
    MOST_STAKED,
    OVERSHOOT,
    WEIGHT_OF_GUESS,
    in_random_order,
    one_look,
    rules_out,
)
from tests.engine.bounds.worlds import DELTA, LOGS, NAMES, WORLDS, World, allowed


def is_above(log: Differences, mean: float) -> bool:
    return rules_out(log, in_random_order(log), mean, DELTA)


@pytest.mark.parametrize("interactions", [3, 300])
@pytest.mark.parametrize("world", WORLDS, ids=NAMES)
def test_the_truth_is_ruled_out_as_rarely_as_promised(world: World, interactions: int) -> None:
    """Each log has clicks of its own, and with them an order of its own."""
    logs = world.draws(interactions, LOGS, seed=3)
    for guess in (world.variance, world.variance / 100.0):  # a wrong guess may cost width, never coverage
        failed = [
            is_above(replace(log, guess=guess, salt=str(number)), world.improvement) for number, log in enumerate(logs)
        ]
        assert np.mean(failed) <= allowed(LOGS)


@pytest.mark.parametrize("world", [WORLDS[0], WORLDS[1], WORLDS[4]], ids=lambda world: world.name)
def test_logs_of_one_size_are_covered_too(world: World) -> None:
    """If the order were the same for all logs of a size, the first terms would always be the same order statistics,
    and not independent draws."""
    logs = [replace(log, guess=world.variance) for log in world.draws(1_000, LOGS, seed=3)]
    assert np.mean([is_above(log, world.improvement) for log in logs]) <= allowed(LOGS)


def easy_logs(interactions: int, logs: int) -> list[Differences]:
    """X is -1, 0 or 1 with mean 0.1 and variance 0.29."""
    counts = np.random.default_rng(2).multinomial(interactions, [0.1, 0.7, 0.2], size=logs)
    return [Differences(np.array([-1.0, 0.0, 1.0]), count, -1.0, 1.0, guess=0.3) for count in counts]


def test_it_decides_about_as_often_as_student_t_and_more_often_than_betting() -> None:
    """With 200 interactions Student's t rejects a mean of 0 in 84% of the logs."""
    logs = easy_logs(200, 500)
    decided = np.mean([is_above(log, 0.0) for log in logs])
    bets = np.mean([betting(log, DELTA) > 0.0 for log in logs])
    assert decided > 0.7
    assert bets < decided - 0.2


def test_it_is_nearly_as_narrow_as_student_t() -> None:
    for log in easy_logs(3_000, 20):
        width = log.mean - one_look(log, DELTA)
        assert 0.6 * width < stats.norm.ppf(1.0 - DELTA) * log.standard_error < 1.3 * width
        assert width < log.mean - betting(log, DELTA)


def test_the_bound_is_where_the_doubt_ends() -> None:
    for log in easy_logs(300, 20):
        bound = one_look(log, DELTA)
        assert is_above(log, bound - 1e-4)
        assert not is_above(log, bound + 1e-4)


def plain_capital(values: list[float], mean: float, low: float, guess: float, delta: float) -> float:
    """The largest capital on the way, stake by stake as the module's docstring has it."""
    pay, capital, most = OVERSHOOT / delta, 1.0, 1.0
    squares, seen = guess * WEIGHT_OF_GUESS, WEIGHT_OF_GUESS
    for t, value in enumerate(values):
        share = capital / pay
        wanted = stats.norm.pdf(stats.norm.ppf(share)) / share / math.sqrt((len(values) - t) * squares / seen)
        capital *= 1.0 + min(wanted, MOST_STAKED / (mean - low)) * (value - mean)
        most = max(most, capital)
        if capital >= 1.0 / delta:
            break
        squares, seen = squares + (value - mean) ** 2, seen + 1.0
    return most


@pytest.mark.parametrize("value", [0.2, 1.5])
def test_against_a_plain_loop(value: float) -> None:
    """All values are the same, so that their order does not matter."""
    log = Differences(np.array([value]), np.array([40]), -1.0, 2.0, guess=0.5)
    bottom, top = -1.0, value
    for _ in range(40):
        middle = 0.5 * (bottom + top)
        reached = plain_capital([value] * 40, middle, -1.0, 0.5, DELTA) >= 1.0 / DELTA
        bottom, top = (middle, top) if reached else (bottom, middle)
    assert -1.0 < bottom < value
    assert one_look(log, DELTA) == pytest.approx(bottom, abs=1e-3)


def unit_logs(logs: int) -> list[Differences]:
    """60 units of 1 to 20 interactions. X is +-1 with mean 0; a unit's terms have the same sign in 90%."""
    rng = np.random.default_rng(5)
    made = []
    for _ in range(logs):
        sizes = rng.integers(1, 21, 60)
        agree = rng.binomial(sizes, 0.9)
        values = (rng.integers(0, 2, 60) * 2 - 1) * (2 * agree - sizes)
        made.append(
            Differences(values.astype(float), np.ones(60, np.int64), -1.0, 1.0, guess=90.0, sizes=sizes.astype(float))
        )
    return made


def test_units_cover_the_truth_and_their_interactions_alone_do_not() -> None:
    logs = unit_logs(LOGS)
    assert np.mean([is_above(log, 0.0) for log in logs]) <= allowed(LOGS)
    assert np.mean([betting(log, DELTA) > 0.0 for log in logs]) <= allowed(LOGS)
    apart = []
    for log in logs[:500]:
        assert log.sizes is not None
        up = int(((log.values + log.sizes) / 2).sum())
        counts = np.array([log.interactions - up, up])
        apart.append(Differences(np.array([-1.0, 1.0]), counts, -1.0, 1.0))
    assert np.mean([is_above(log, 0.0) for log in apart]) > 0.2


def test_large_units_that_count_for_less_cover_the_truth_and_decide_more() -> None:
    """300 units, of which a few are very large; a unit's X all have one sign, + in 50% or 75% of the units."""
    rng, logs = np.random.default_rng(7), LOGS // 4
    above, decided = np.zeros(2), np.zeros(2)
    for _ in range(logs):
        sizes = np.ceil(rng.pareto(1.2, 300))
        for truth, found in ((0.0, above), (0.5, decided)):
            values = np.where(rng.random(300) < (1 + truth) / 2, sizes, -sizes)
            log = Differences(values, np.ones(300, np.int64), -1.0, 1.0, guess=30.0, sizes=sizes)
            found += [is_above(log, 0.0), is_above(log.at_most(5), 0.0)]
    assert max(above / logs) <= allowed(logs)
    assert decided[1] > 0.9 * logs
    assert decided[0] < 0.6 * logs


def test_no_unit_loses_more_than_is_at_hand() -> None:
    """Units of 20 interactions that all win or all lose, at a mean of 0. The variance is guessed far too low, so that
    as much is staked as may be: with what one interaction allows, the first unit to win would reach the goal."""
    ups = np.random.default_rng(6).binomial(10, 0.5, LOGS)
    logs = [
        Differences(
            np.array([-20.0, 20.0]), np.array([10 - up, up]), -1.0, 1.0, guess=1e-4, sizes=np.full(2, 20.0),
            salt=str(number),
        )
        for number, up in enumerate(ups)
    ]  # fmt: skip
    assert np.mean([is_above(log, 0.0) for log in logs]) <= allowed(LOGS)


def test_units_of_one_interaction_are_interactions() -> None:
    log = easy_logs(300, 1)[0]
    apart = replace(log, sizes=np.ones(3))
    assert one_look(apart, DELTA) == one_look(log, DELTA)


def test_nothing_to_doubt() -> None:
    nothing = Differences(np.empty(0), np.empty(0, np.int64), -1.0, 1.0)
    assert one_look(nothing, DELTA) == -1.0
    assert not is_above(nothing, -0.5)
    assert one_look(Differences(np.array([-1.0]), np.array([9]), -1.0, 1.0), DELTA) == -1.0
