"""Looks that are written down: what a look costs, and what it is remembered as."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saferank.engine.errors import UsageError
from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict.certify import CertifySettings, certify, take_look
from saferank.verdict.checks import Refused
from saferank.verdict.inputs import VerdictInputs, load_inputs
from saferank.verdict.ledger import Ledger
from tests.policy.made import write_features
from tests.shops import Ranker, World, noisy, noisy_world
from tests.verdict.small_log import linear_policy, small_log

QUICK = CertifySettings(details=False)


@pytest.fixture(scope="module")
def world() -> World:
    return noisy_world(20)


@pytest.fixture(scope="module")
def log(world: World) -> AggregatedLog:
    rng = np.random.default_rng(2)
    return world.draw(6_000, rng).aggregated(rng)


def inputs(world: World, log: AggregatedLog, new: Ranker) -> VerdictInputs:
    shop = world.shop
    ids = {"query_id": np.repeat(shop.query_ids, shop.documents), "document_id": shop.document_ids}
    return load_inputs(ids | {"score": new.flat}, log, trained_without_held_out=True)


def test_each_model_spends_less_and_the_same_one_what_it_did(world: World, log: AggregatedLog, tmp_path: Path) -> None:
    book = tmp_path / "looks.json"
    first, second = (
        inputs(world, log, noisy(world.shop, np.random.default_rng(seed), sampled=False)) for seed in (3, 4)
    )
    found = [take_look(one, QUICK, book) for one in (first, second, first)]
    assert [one.look for one in found] == [1, 2, 1]
    assert [one.spent for one in found] == pytest.approx([0.05 / 2, 0.05 / 6, 0.05 / 2])
    assert found[0].lower == found[2].lower
    direct = certify(second.ranker, log, replace(QUICK, spent=1 / 6, look=2), trained_without_held_out=True)
    assert (found[1].lower, found[1].upper) == (direct.lower, direct.upper)
    looks = Ledger.read(book).looks
    assert [look.lower for look in looks] == [found[0].lower, found[1].lower]
    # other settings are another look: one may not turn the dial for free
    assert take_look(first, replace(QUICK, tolerance=0.1), book).look == 3
    assert take_look(first, replace(QUICK, details=True), book).look == 1
    assert take_look(first, replace(QUICK, explore=True), book).look == 1  # flatter ones are of the same look


def test_without_a_ledger_a_look_has_all_of_delta(world: World, log: AggregatedLog) -> None:
    one = take_look(inputs(world, log, world.logging), QUICK, None)
    assert (one.spent, one.look) == pytest.approx((0.05, 1))
    assert "looks" not in one.inputs


def test_a_refusal_is_no_look(world: World, log: AggregatedLog, tmp_path: Path) -> None:
    wrong = replace(inputs(world, log, world.logging), examination=world.shop.examination**3)
    with pytest.raises(Refused):
        take_look(wrong, QUICK, tmp_path / "looks.json")
    assert list(tmp_path.iterdir()) == []


def test_the_share_is_the_ledgers(world: World, log: AggregatedLog, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        take_look(inputs(world, log, world.logging), replace(QUICK, spent=0.5), tmp_path / "looks.json")


def test_files_and_what_they_hold_give_the_same_certificate(tmp_path: Path) -> None:
    small, policy = small_log(), linear_policy(1.0, 0.2)
    small.write(tmp_path / "log.parquet", 4_000)
    policy.save(tmp_path / "model")
    write_features(tmp_path / "features.parquet", small.data)
    named = certify(tmp_path / "model", str(tmp_path / "log.parquet"), QUICK, features=tmp_path / "features.parquet")
    log = small.aggregated(tmp_path / "log.parquet")
    direct = certify(policy, log, replace(QUICK, spent=0.5), features=small.data)
    assert (named.verdict, named.lower, named.upper) == (direct.verdict, direct.lower, direct.upper)
    assert [look.lower for look in Ledger.read(tmp_path / "log.parquet.ledger.json").looks] == [named.lower]
    known = certify(policy, log, QUICK, features=small.data, logging_scores=small.logging_scores)
    assert (known.logging_exposure, direct.logging_exposure) == ("known", "counted")
    with pytest.raises(UsageError):
        certify(policy, log)
    with pytest.raises(UsageError):
        certify(
            {"query_id": ["q0"], "document_id": ["d0"], "score": [1.0]},
            log,
            logging_scores="noise",
            trained_without_held_out=True,
        )
