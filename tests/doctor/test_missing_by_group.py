"""Documents that are never shown for some values of a column are found; what a ranker seldom shows is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.log_arrays import SampledImpressions
from saferank.doctor.missing_by_group import MissingByGroup, missing_by_group
from saferank.engine.types.ranking_data import RankingData
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import Refused
from saferank.verdict.new_ranker import NewRanker
from tests.shop_log import ShopLog
from tests.shops import PositionBased, Ranker, World, draw, make_shop, noisy, regional

Integers = NDArray[np.int64]
QUERIES, DOCUMENTS, CUTOFF, LISTS = 40, 12, 5, 12_000


def logged(
    *, regions: int = 4, local: float = 0.3, queries: int = QUERIES, seed: int = 0, lengths: tuple[int, ...] = (CUTOFF,)
) -> tuple[SampledImpressions, Integers, NDArray[np.bool_]]:
    """Return a sample, the region of each row, and which documents a region lacks, of (region, row of the pairs).

    Each document belongs to a query; those of all queries have the same ids if there are many queries.
    """
    rng = np.random.default_rng(seed)
    query, region = rng.integers(0, queries, LISTS), rng.integers(0, regions, LISTS)
    home = np.where(rng.random(DOCUMENTS * queries) < local, rng.integers(0, regions, DOCUMENTS * queries), -1)
    if queries > QUERIES:
        home = np.tile(home[:DOCUMENTS], queries)
    lacks = (home >= 0) & (home != np.arange(regions)[:, None])
    scores = rng.normal(size=(queries, DOCUMENTS))[query] + rng.gumbel(size=(LISTS, DOCUMENTS))
    scores[lacks.reshape(regions, queries, DOCUMENTS)[region, query]] = -np.inf
    length = np.array(lengths)[region % len(lengths)]
    shown = np.arange(DOCUMENTS) < length[:, None]
    row, rank = np.nonzero(shown)
    sample = SampledImpressions(
        offsets=np.append(0, np.cumsum(length)),
        document=query[row] * DOCUMENTS + np.argsort(-scores, axis=1)[shown],
        rank=rank,
        click=np.zeros(len(row)),
        period=np.zeros(len(row), np.int64),
        moment=row,
    )
    return sample, region[row], lacks


def pairs(queries: int = QUERIES) -> RankingData:
    ids = np.array([f"d{row % DOCUMENTS if queries > QUERIES else row}" for row in range(queries * DOCUMENTS)])
    return RankingData(
        np.zeros((len(ids), 0), np.float32),
        np.arange(queries + 1) * DOCUMENTS,
        query_ids=np.array([f"q{query}" for query in range(queries)]),
        document_ids=ids,
    )


def found(by_period: bool = False, queries: int = QUERIES, **options: Any) -> tuple[MissingByGroup, NDArray[np.bool_]]:
    sample, region, lacks = logged(queries=queries, **options)
    return missing_by_group(sample, region, pairs(queries), by_period=by_period), lacks


@pytest.mark.parametrize("regions", [2, 4, 12])
def test_what_is_local_is_found_with_how_much_it_is_missing(regions: int) -> None:
    missing, lacks = found(regions=regions)
    assert missing.significant
    share = lacks.mean(axis=0)  # regions are equally large
    seen = missing.of_pairs > 0
    assert not seen[share == 0].any()
    assert seen.sum() > 0.2 * (share > 0).sum()  # the rest is seldom shown anywhere
    assert np.abs(missing.of_pairs - share)[seen].max() < (0.1 if regions < 12 else 0.25)


def test_the_share_is_of_what_would_be_shown() -> None:
    """Two regions, and what the second lacks would be shown there as often as in the first."""
    sample, region, lacks = logged(regions=2, local=0.1)
    rows = np.bincount(2 * sample.document + region, minlength=2 * QUERIES * DOCUMENTS).reshape(-1, 2)
    would_be = sum(rows[lacks[side], 1 - side].sum() for side in (0, 1))
    missing = missing_by_group(sample, region, pairs(), by_period=False)
    assert missing.share == pytest.approx(would_be / (rows.sum() + would_be), rel=0.1)


@pytest.mark.parametrize("regions", [2, 12, 60])
@pytest.mark.parametrize("lengths", [(CUTOFF,), (1, CUTOFF)])
@pytest.mark.parametrize("by_period", [False, True])
def test_what_one_ranker_draws_is_not_missing(regions: int, lengths: tuple[int, ...], by_period: bool) -> None:
    each = [found(by_period, regions=regions, local=0.0, lengths=lengths, seed=seed)[0] for seed in range(3)]
    assert max(one.z for one in each) < 3.0
    assert max(one.documents for one in each) == 0


def test_counts_of_rare_queries_are_summed_over_their_common_documents() -> None:
    missing, lacks = found(queries=4_000)  # three lists each, of the same twelve documents
    assert missing.significant
    assert missing.documents == lacks[:, :DOCUMENTS].any(axis=0).sum()


def test_users_who_are_shown_the_same_list_again() -> None:
    """Some users in each region, who see one list of a query all the time: few draws, however many impressions."""
    sample, region, _ = logged(local=0.0)
    user = 8 * region + np.repeat(np.random.default_rng(1).integers(0, 8, LISTS), CUTOFF)
    query = sample.document // DOCUMENTS
    first = np.unique((user * QUERIES + query) * CUTOFF + sample.rank, return_index=True, return_inverse=True)
    again = replace(sample, document=sample.document[first[1]][first[2]])
    found = missing_by_group(again, region, pairs(), by_period=False)
    with_users = missing_by_group(replace(again, unit=user), region, pairs(), by_period=False)
    assert with_users.documents < 0.5 * found.documents
    assert not with_users.significant


def test_values_that_change_their_meaning_halfway() -> None:
    sample, region, _ = logged(regions=2)
    day = np.repeat(np.arange(LISTS) * 8 // LISTS, CUTOFF)
    renamed = region + 2 * (day >= 4)
    missing = missing_by_group(replace(sample, period=day), renamed, pairs(), by_period=False)
    assert missing.significant
    assert missing.documents > 50


def test_documents_that_come_later_are_compared_within_periods() -> None:
    """A region that joins in the second half, when the first region is gone; other documents are shown then."""
    sample, _, _ = logged(regions=2, local=0.0)
    late = sample.offsets[-1] // 2 <= np.arange(sample.offsets[-1])
    other = (sample.document + DOCUMENTS // 2) % DOCUMENTS + sample.document // DOCUMENTS * DOCUMENTS
    region = late.astype(np.int64)
    changed = replace(sample, document=np.where(late, other, sample.document), period=region)
    assert missing_by_group(changed, region, pairs(), by_period=True).z == 0.0


def mixed_up(log: ShopLog, regions: int, rng: np.random.Generator) -> tuple[Integers, ShopLog]:
    """Return the region of each impression, which is its slot modulo their number, and the log with other times."""
    order = rng.permutation(len(log.query))
    changed = {name: getattr(log, name)[order] for name in ("query", "unit", "ranking", "clicks")}
    return log.slot[order] % regions, replace(log, **changed)


def test_certify_refuses_unless_it_is_told_that_all_can_be_shown() -> None:
    rng = np.random.default_rng(2)
    shop, ranker = regional(make_shop(rng), rng)
    drawn = draw(shop, ranker, PositionBased(), 12_000, rng)
    region, drawn = mixed_up(drawn, 4, rng)
    log = drawn.aggregated(rng, groups={"region": region, "half": drawn.second % 2})
    health = diagnose(log, em=False, replicates=2)
    assert [(group.column, group.missing.significant) for group in health.groups] == [("region", True), ("half", False)]
    (finding,) = [one for one in health.blocking if one.code == "missing-by-group"]
    assert "region" in finding.text
    assert "region" in finding.remedy
    new = NewRanker(shop.data(), noisy(shop, rng).flat, "deterministic", complete=False)
    with pytest.raises(Refused) as raised:
        certify(new, log, CertifySettings(details=False))
    assert raised.value.code == "missing-by-group"
    certificate = certify(new, log, CertifySettings(details=False, trust_candidates=True))
    assert "missing-by-group" in [doubt.code for doubt in certificate.doubts]


def test_a_deploy_that_rests_on_what_few_regions_have_is_refused() -> None:
    """In every 20th query, what is wanted most is only delivered to one region of eight."""
    rng = np.random.default_rng(0)
    shop = make_shop(rng, queries=40, documents=10, cutoff=4)
    shop = replace(shop, per_day=8, relevance=np.repeat(shop.relevance, 8, axis=0))
    local = np.zeros((40, 10), np.bool_)
    local[::20, 0] = True
    shop = replace(shop, relevance=np.where(local, 0.95, 0.5 * shop.relevance))
    scores = noisy(shop, rng).scores[0]
    there = (np.arange(len(shop.relevance)) % 8 == 0)[:, None, None]
    world = World(shop, Ranker(np.where(local & ~there, -np.inf, scores), sampled=True))
    region, mixed = mixed_up(world.draw(16_000, rng), 8, rng)
    relying = Ranker(np.where(local, 9.0, scores), sampled=True)
    new = NewRanker(shop.data(), relying.flat, "sampled", complete=False)
    log = mixed.aggregated(rng, groups={"region": region})
    assert not any(one.blocks for one in diagnose(log, em=False, replicates=2).findings)
    with pytest.raises(Refused) as raised:
        certify(new, log, CertifySettings(details=False))
    assert raised.value.code == "high-or-missing"
    unaware = certify(new, mixed.aggregated(np.random.default_rng(3)), CertifySettings(details=False))
    assert unaware.lower > world.improvement(relying)  # without the column the bound is above the truth
