"""A DEPLOY that rests on documents which are missing from most lists is refused, even if they are few."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from saferank.cli.certify_screen import show_certificate
from saferank.doctor.diagnosis import diagnose
from saferank.doctor.log_arrays import shown_pairs
from saferank.logs.aggregated_log import pair_ids, places_of
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import Refused
from saferank.verdict.comparison import Rankers
from saferank.verdict.left_out import credited
from saferank.verdict.new_ranker import NewRanker
from tests.shops import Ranker, Shop, SoldOut, World, make_shop, noisy

SETTINGS = CertifySettings(details=False)
FOR_MEMBERS = np.zeros((30, 8), np.bool_)
FOR_MEMBERS[::6, 0] = True


@pytest.fixture(scope="module")
def world() -> World:
    """In every sixth query, the best document is only there for members, who are one in eight."""
    rng = np.random.default_rng(0)
    shop = make_shop(rng, queries=30, documents=8, cutoff=4)
    shop = replace(shop, relevance=np.where(FOR_MEMBERS, 0.9, 0.5 * shop.relevance))
    scores = noisy(shop, rng, scale=2.0).scores[0] + 8.0 * FOR_MEMBERS
    return World(shop, SoldOut(scores, sampled=True, share=np.where(FOR_MEMBERS, 0.875, 0.0)))


def new_ranker(shop: Shop, scores: Ranker) -> NewRanker:
    return NewRanker(shop.data(), scores.flat, "deterministic", complete=False)


def test_what_the_new_ranker_cannot_show_is_not_proven(world: World) -> None:
    rng, shop = np.random.default_rng(1), world.shop
    log = world.draw(12_000, rng).aggregated(rng)
    assert not any(finding.code == "high-or-missing" for finding in diagnose(log, em=False).findings)
    relying = Ranker(world.logging.scores[0])  # always shows what is for members
    assert world.improvement(relying) < 0.1 * world.logging_utility
    with pytest.raises(Refused) as raised:
        certify(new_ranker(shop, relying), log, SETTINGS)
    assert raised.value.code == "high-or-missing"
    trusted = certify(new_ranker(shop, relying), log, replace(SETTINGS, trust_candidates=True))
    assert trusted.lower > max(world.improvement(relying), 0.2 * world.logging_utility)  # above the truth
    better = Ranker(np.where(FOR_MEMBERS, -9.0, shop.mean_relevance))
    assert certify(new_ranker(shop, better), log, SETTINGS).upper > 0.0  # and not refused


def test_credit_is_what_would_be_earned_where_documents_are_missing(world: World) -> None:
    rng, shop = np.random.default_rng(2), world.shop
    log = world.draw(40_000, rng).aggregated(rng)
    relying = Ranker(world.logging.scores[0])
    rankers = Rankers(log, new_ranker(shop, relying), None)
    shown = shown_pairs(log)
    share = np.where(FOR_MEMBERS, 0.875, 0.0).ravel()[places_of(shop.data()).of_pairs(*pair_ids(shown))]
    found = credited(share, rankers, rankers.compare("certify", None, 0.0), shop.examination)
    exact = float(shop.traffic @ (np.where(FOR_MEMBERS, 0.875, 0.0) * shop.mean_relevance).sum(axis=1))  # all at rank 1
    assert found == pytest.approx(exact, rel=0.1)


def test_the_screen_begins_with_what_a_trusted_verdict_relies_on(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, shop = np.random.default_rng(3), world.shop
    limited = World(shop, SoldOut(world.logging.scores, sampled=True, share=0.15))
    log = limited.draw(8_000, rng).aggregated(rng)
    found = certify(new_ranker(shop, noisy(shop, rng)), log, replace(SETTINGS, trust_candidates=True))
    assert "high-or-missing" in [doubt.code for doubt in found.doubts]
    show_certificate(found, Console(width=200), Path("certificate.json"), Path("ledger.json"), None)
    assert "your statement that any candidate could be shown" in capsys.readouterr().out.split("\n")[0]
