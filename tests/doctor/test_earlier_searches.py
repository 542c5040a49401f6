"""Searches that depend on earlier ones of the same user are found; tastes, and users who tire, are left alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from saferank.doctor.earlier_searches import SIGNIFICANT, EarlierSearches, earlier_searches
from saferank.doctor.log_arrays import sampled_impressions, shown_pairs
from saferank.logs.load_log import load_log
from saferank.verdict.checks import Refused
from saferank.verdict.log_doubts import log_doubts

QUERIES, DOCUMENTS, RANKS, DAY = 20, 8, 4, 86_400
EXAMINATION = 1.0 / np.arange(1, RANKS + 1) ** 0.7


@dataclass(frozen=True)
class Users:
    """How users who come back differ from new ones."""

    again: float = 0.5
    """Chance of a further search."""
    most: int = 3
    """Searches in all."""
    bored: float = 0.0
    """By how much of its chance a click on a document is rarer after the first one."""
    hidden: float = 0.0
    """By how much the score of what was clicked is lowered in later searches."""
    taste: float = 0.0
    tires: float = 1.0
    """Factor of all clicks in each further search."""


def searches(users: Users, seed: int, count: int = 12_000, *, fixed: bool = False, nightly: bool = False) -> pa.Table:
    """With `nightly`, the ranker changes every night, and users who clicked come back a day later, others at once."""
    rng = np.random.default_rng(seed)
    relevance, score = rng.uniform(0.1, 0.6, (QUERIES, DOCUMENTS)), rng.normal(size=(10, QUERIES, DOCUMENTS))
    query, start = rng.integers(0, QUERIES, count), np.sort(rng.integers(0, 7 * DAY, count))
    wanted = relevance[query] * np.exp(users.taste * rng.normal(size=(count, DOCUMENTS)))
    clicked, users_left, time = np.zeros((count, DOCUMENTS), np.bool_), np.arange(count), start.copy()
    parts: list[tuple[NDArray[Any], ...]] = []
    for number in range(users.most):
        who = users_left
        noise = 0.0 if fixed else rng.gumbel(size=(len(who), DOCUMENTS))
        order = np.argsort(
            -(score[time[who] // DAY * nightly, query[who]] + noise - users.hidden * clicked[who]), axis=1
        )[:, :RANKS]
        chance = np.take_along_axis(wanted[who] * (1.0 - users.bored * clicked[who]), order, axis=1)
        click = rng.random(order.shape) < np.minimum(chance, 1.0) * EXAMINATION * users.tires**number
        parts.append((who, order, click, time[who]))
        row, rank = np.nonzero(click)
        clicked[who[row], order[row, rank]] = True
        time[who] += np.where(clicked[who].any(axis=1) & nightly, DAY, 60)
        users_left = who[rng.random(len(who)) < users.again]
    who, order, click, when = (np.concatenate(values) for values in zip(*parts, strict=True))
    row = np.repeat(np.arange(len(who)), RANKS)
    return pa.table(
        {
            "impression_id": rng.permutation(len(who))[row],
            "timestamp": pa.array(when[row], pa.timestamp("s")),
            "user": who[row],
            "query_id": query[who][row].astype(str),
            "document_id": order.ravel().astype(str),
            "position": np.tile(np.arange(1, RANKS + 1), len(who)),
            "click": click.ravel().astype(np.int8),
        }
    )


def found_in(table: pa.Table, unit: str | None = "user", *, by_period: bool = False) -> EarlierSearches:
    log = load_log(table, unit=unit)
    pairs = shown_pairs(log)
    return earlier_searches(sampled_impressions(log, pairs), pairs, by_period=by_period)


@pytest.mark.parametrize(
    ("users", "code"),
    [
        (Users(bored=0.9), "users-remember"),
        (Users(bored=0.9, taste=0.5), "users-remember"),
        (Users(bored=-0.9), "users-remember"),
        (Users(hidden=2.0), "ranker-remembers"),
    ],
)
def test_searches_that_depend_on_earlier_ones_are_refused(users: Users, code: str) -> None:
    log = load_log(searches(users, 0, 6_000), unit="user")
    with pytest.raises(Refused) as caught:
        log_doubts(log, known=False)
    assert caught.value.code == code


def test_the_effect_is_the_share_of_clicks_that_are_lost() -> None:
    """The same users, who click on what they have clicked before or not."""
    found, table = found_in(searches(Users(bored=1.0), 1)), searches(Users(), 1)
    lost = 1.0 - sum(searches(Users(bored=1.0), 1)["click"].to_pylist()) / sum(table["click"].to_pylist())
    assert found.clicks.effect == pytest.approx(-lost, rel=0.5)
    assert found.clicks.effect < -0.02


@pytest.mark.parametrize("users", [Users(), Users(taste=0.7, tires=0.6), Users(again=0.85, most=20, tires=0.8)])
def test_users_who_differ_or_tire_do_no_harm(users: Users) -> None:
    found = [found_in(searches(users, seed, 2_000)) for seed in range(6)]
    for test in ("clicks", "rankings"):
        deviates = np.array([getattr(one, test).z for one in found])
        assert np.abs(deviates).max() < SIGNIFICANT
        assert abs(deviates.mean()) < 4.0 / np.sqrt(len(found))


def test_when_users_come_back_may_depend_on_their_clicks_if_the_ranker_changes() -> None:
    table = searches(Users(again=0.6), 3, nightly=True)
    assert abs(found_in(table).rankings.z) > SIGNIFICANT  # the next ranking is of another night
    found = found_in(table, by_period=True)
    assert max(abs(found.clicks.z), abs(found.rankings.z)) < SIGNIFICANT
    assert found_in(searches(Users(again=0.6, bored=0.9), 3, nightly=True), by_period=True).clicks.significant


def test_users_are_sampled_with_all_their_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saferank.logs.log_queries.SAMPLED", 3_000)
    table = searches(Users(bored=0.9), 4)
    sample = load_log(table, unit="user").sample
    assert sample is not None
    assert sample["impression"].to_numpy().max() + 1 == 3_000
    kept = np.bincount(
        np.unique(np.stack([sample["unit"].to_numpy().astype(int), sample["impression"].to_numpy()]), axis=1)[0]
    )
    every = np.bincount(table["user"].to_numpy()) // RANKS
    assert kept[kept > 0].mean() == pytest.approx(every.mean(), rel=0.1)
    assert found_in(table).clicks.significant


def test_the_same_list_again_and_users_who_are_not_named_show_nothing() -> None:
    fixed = found_in(searches(Users(bored=0.9, again=0.8, most=12), 2, fixed=True))
    assert fixed.clicks.z == fixed.rankings.z == 0.0
    assert not fixed.checked
    assert found_in(searches(Users(bored=0.9), 2), unit=None) == EarlierSearches()
    assert found_in(searches(Users(again=0.0), 2)) == EarlierSearches()
    assert (
        earlier_searches(None, shown_pairs(load_log(searches(Users(), 2, 100))), by_period=False) == EarlierSearches()
    )
