"""The verdict on logs of shops whose truth is known: what it promises, and where it refuses."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from saferank.engine.bounds.registry import BOUNDS
from saferank.engine.errors import DataError, UsageError
from saferank.logs.aggregated_log import AggregatedLog
from saferank.verdict.certificate import Certificate, Needed, Verdict, meaning
from saferank.verdict.certify import CertifySettings, certify
from saferank.verdict.checks import Refused, check_features, check_untouched
from saferank.verdict.decision import decide
from saferank.verdict.judge import DEFAULT_WEIGHT
from saferank.verdict.new_ranker import NewRanker
from saferank.verdict.words import NOT_IN_A_LOG
from tests.shops import (
    Bots,
    Cascade,
    Filtered,
    Ranker,
    Shop,
    SoldOut,
    Tastes,
    TrustBias,
    Users,
    World,
    changed_once,
    learned,
    make_shop,
    nightly,
    noisy,
    with_rows,
)

QUICK = CertifySettings(details=False)


@pytest.fixture(scope="module")
def shop() -> Shop:
    return make_shop(np.random.default_rng(1), queries=30, documents=8, cutoff=4)


@pytest.fixture(scope="module")
def world(shop: Shop) -> World:
    """Rankings are drawn, so that the log tells how ranks are looked at."""
    return World(shop, noisy(shop, np.random.default_rng(5)))


@pytest.fixture(scope="module")
def log(world: World) -> AggregatedLog:
    rng = np.random.default_rng(6)
    return world.draw(10_000, rng).aggregated(rng)


@pytest.fixture(scope="module")
def better(world: World) -> Ranker:
    return world.better(0.15, np.random.default_rng(2))


def judge(
    shop: Shop, log: AggregatedLog, new: Ranker, settings: CertifySettings = QUICK, *,
    kept: NDArray[np.bool_] | None = None, **options: Any,
) -> Certificate:  # fmt: skip
    """Certify a ranker, as a model that has features of the rows `kept` if these are given."""
    data, scores = shop.data(), new.flat
    if kept is not None:
        data, scores = with_rows(data, kept), scores[kept]
    how = "sampled" if new.sampled else "deterministic"
    return certify(NewRanker(data, scores, how, complete=kept is not None), log, settings, **options)  # type: ignore[arg-type]


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(Refused) as raised:
        judge(*arguments, **options)
    assert len(str(raised.value)) > 50  # says why
    return raised.value.code


def draw(world: World, interactions: int, seed: int = 0, **options: Any) -> AggregatedLog:
    rng = np.random.default_rng([7, seed])
    return world.draw(interactions, rng).aggregated(rng, **options)


# What a verdict promises.


def test_a_better_ranker_is_deployed(world: World, log: AggregatedLog, better: Ranker) -> None:
    certificate = judge(world.shop, log, better)
    assert certificate.verdict is Verdict.DEPLOY
    assert certificate.verdict == "DEPLOY"
    assert certificate.lower < world.improvement(better) < certificate.upper
    assert (certificate.logging_exposure, certificate.strata) == ("counted", "query")
    assert {doubt.code for doubt in certificate.doubts} == {"no-ledger"}  # nor a file to keep one beside
    assert set(NOT_IN_A_LOG) <= set(certificate.assumptions)
    assert (certificate.warnings, certificate.unchecked) == ((), False)
    part = log.manifest["parts"]["certify"]
    assert certificate.interactions == part["interactions"]
    assert certificate.click_rate == pytest.approx(part["clicks"] / part["interactions"])
    assert certificate.relative[1] == pytest.approx(certificate.lower / certificate.click_rate)
    assert replace(certificate, lower=-2.0 * certificate.click_rate).relative[1] == -1.0  # no more than all clicks


def test_users_that_the_log_has_and_nobody_named_are_a_doubt(world: World, log: AggregatedLog, better: Ranker) -> None:
    shoppers = replace(log, manifest=log.manifest | {"other_columns": ["price", "Shopper_ID"]})
    assert "units-not-named" in [doubt.code for doubt in judge(world.shop, shoppers, better).doubts]
    named = replace(log, manifest=log.manifest | {"other_columns": ["price", "user_id"]})
    certificate = judge(world.shop, named, better)
    assert certificate.doubts[0].code == "units-not-named"
    assert certificate.doubts[0].remedy.startswith("With --unit=user_id")
    by_query = replace(named, manifest=named.manifest | {"split": {"by": "query", "shares": [0.6, 0.2, 0.2]}})
    assert "units-not-named" not in [doubt.code for doubt in judge(world.shop, by_query, better).doubts]


def test_known_scores_give_exact_exposure(world: World, log: AggregatedLog, better: Ranker) -> None:
    certificate = judge(world.shop, log, better, logging_scores=world.logging.flat)
    assert (certificate.verdict, certificate.logging_exposure) == (Verdict.DEPLOY, "known")
    assert certificate.lower < world.improvement(better) < certificate.upper
    same = judge(world.shop, log, world.logging, logging_scores=world.logging.flat)
    assert same.improvement == pytest.approx(0.0, abs=1e-6)
    assert -0.02 < same.lower <= 0.0 <= same.upper < 0.02


def test_a_worse_ranker_is_kept_out(world: World) -> None:
    """20% worse, with 20,000 interactions of which a fifth is held out."""
    worse = world.worse(0.2, np.random.default_rng(3))
    certificate = judge(world.shop, draw(world, 20_000), worse)
    assert certificate.verdict is Verdict.KEEP
    assert certificate.lower < world.improvement(worse) < certificate.upper < 0.0


def test_over_logs_the_bounds_hold_as_often_as_promised(world: World) -> None:
    """A ranker learned from the same log, counted exposure, delta 0.1: at most 0.1 and three standard errors."""
    logs, failed, widths = 30, np.zeros(2), []
    for seed in range(logs):
        log = draw(world, 3_000, seed)
        new = learned(world.shop, log)
        certificate = judge(world.shop, log, new, replace(QUICK, delta=0.1))
        truth = world.improvement(new)
        failed += (certificate.lower > truth, certificate.upper < truth)
        widths.append((truth - certificate.lower, certificate.upper - truth))
    assert (failed / logs <= 0.1 + 3.0 * math.sqrt(0.1 * 0.9 / logs)).all()
    assert (np.mean(widths, axis=0) < 1.0 * world.logging_utility).all()  # and they say something


def test_tolerance_delta_and_looks_move_the_bound(world: World, log: AggregatedLog) -> None:
    no_better = world.no_better(np.random.default_rng(4))
    certificate = judge(world.shop, log, no_better, CertifySettings())
    assert certificate.verdict is Verdict.MORE_DATA
    loose = judge(world.shop, log, no_better, replace(QUICK, tolerance=-certificate.lower + 1e-6))
    assert loose.verdict is Verdict.DEPLOY
    dial = dict(certificate.delta_dial)
    assert list(dial.values()) == sorted(dial.values(), reverse=True)  # a smaller delta, a lower bound
    assert dial[0.05] == certificate.lower
    third = judge(world.shop, log, no_better, replace(QUICK, spent=1 / 12, look=3))
    assert (third.spent, third.look) == pytest.approx((0.05 / 12, 3))
    assert third.lower < certificate.lower < certificate.upper < third.upper


def test_details_stand_beside_the_verdict(world: World, log: AggregatedLog, better: Ranker) -> None:
    certificate = judge(world.shop, log, better, CertifySettings())
    rows = {row.name: row for row in certificate.bounds}
    assert list(rows) == list(BOUNDS)
    assert (rows["one-look"].lower, rows["one-look"].upper) == (certificate.lower, certificate.upper)
    assert rows["one-look"].lower > rows["betting"].lower > rows["divergence"].lower
    assert rows["one-look"].lower == pytest.approx(rows["student-t"].lower, abs=certificate.standard_error)
    curves = {row.curve: row for row in certificate.other_curves}
    assert (curves["as used"].improvement, curves["as used"].lower) == (certificate.improvement, certificate.lower)
    assert curves["all ranks alike"].last == 1.0
    assert len({row.improvement for row in certificate.other_curves}) == len(curves)
    quick = judge(world.shop, log, better)
    assert (quick.lower, quick.upper, quick.verdict) == (certificate.lower, certificate.upper, certificate.verdict)


def test_segments_are_told_apart_worst_first(world: World, log: AggregatedLog, better: Ranker) -> None:
    first = [query < "q00015" for query in log.patterns["query_id"].to_pylist()]
    device = pa.array(["phone" if one else "desk" for one in first])
    place = log.patterns.schema.get_field_index("segment")
    named = replace(log, patterns=log.patterns.set_column(place, "segment", device))
    assert judge(world.shop, named, better).lower == judge(world.shop, log, better).lower  # no second chance for free
    certificate = judge(world.shop, named, better, CertifySettings())
    assert {row.segment for row in certificate.segments} == {"phone", "desk"}
    assert sum(row.interactions for row in certificate.segments) == certificate.interactions
    mean = sum(row.interactions * row.improvement for row in certificate.segments) / certificate.interactions
    assert mean == pytest.approx(certificate.improvement)
    assert certificate.segments[0].lower <= certificate.segments[1].lower
    for row in certificate.segments:
        assert row.lower < row.improvement < row.upper


# Documents and queries that the new ranker lacks.


def test_features_that_lack_the_most_shown_documents_are_refused(world: World, better: Ranker) -> None:
    rng = np.random.default_rng(8)
    drawn = world.draw(6_000, rng)
    assert refusal(world.shop, drawn.aggregated(rng), better, kept=drawn.without_most_shown()) == "missing-features"


def test_a_few_clicks_on_documents_without_features_count_against_it(
    world: World, log: AggregatedLog, better: Ranker
) -> None:
    kept = np.ones(240, np.bool_)
    kept[[3, 50]] = False
    certificate = judge(world.shop, log, better, replace(QUICK, most_weight=1e6), kept=kept)
    counts = log.statistics("certify", world.shop.data())
    clicks = counts.clicked.sum(axis=1)
    assert certificate.without_features["clicks"] == pytest.approx(clicks[~kept].sum() / clicks.sum())
    assert 0.0 < certificate.without_features["exposure"] < 0.05
    assert any("have no features" in warning for warning in certificate.warnings)
    # the same by hand: what cannot be shown has no exposure, and its clicks weigh -1
    curve = np.array(certificate.examination["curve"])
    rho = better.without(kept).placement(4)[0].reshape(-1, 4) @ curve
    before = counts.shown @ curve / counts.interactions[counts.query_of_document]
    weights = np.divide(rho, before, out=np.zeros(240), where=before > 0) - 1.0
    assert certificate.improvement == pytest.approx(weights @ clicks / certificate.interactions, abs=1e-6)


def test_queries_that_are_not_ranked_keep_their_ranking(world: World, log: AggregatedLog, better: Ranker) -> None:
    """Scores of the first 20 queries only: the others add nothing, and the certificate says how many they are."""
    data, rows = world.shop.data(), 20 * 8
    assert data.query_ids is not None
    assert data.document_ids is not None
    some = replace(
        data, features=data.features[:rows], offsets=data.offsets[:21], query_ids=data.query_ids[:20],
        document_ids=data.document_ids[:rows],
    )  # fmt: skip
    settings = replace(QUICK, most_weight=1e6)
    part = certify(NewRanker(some, better.flat[:rows]), log, settings)
    whole = judge(world.shop, log, better, settings)
    counts = log.statistics("certify", data)
    assert part.without_features["interactions"] == pytest.approx(
        counts.interactions[20:].sum() / counts.interactions.sum()
    )
    assert part.without_features["clicks"] == 0.0
    assert any("keep their current ranking" in warning for warning in part.warnings)
    curve = np.array(part.examination["curve"])
    np.testing.assert_array_equal(curve, whole.examination["curve"])
    rho, before = better.placement(4)[0].reshape(-1, 4) @ curve, counts.shown @ curve
    before = before / counts.interactions[counts.query_of_document]
    weights = np.divide(rho, before, out=np.zeros(240), where=before > 0) - 1.0
    gains = (weights * counts.clicked.sum(axis=1)).reshape(30, 8).sum(axis=1) / part.interactions
    assert part.improvement == pytest.approx(gains[:20].sum(), abs=1e-6)
    assert whole.improvement == pytest.approx(gains.sum(), abs=1e-6)


# Where no guarantee can be given.


@pytest.fixture(scope="module")
def fixed(shop: Shop) -> World:
    """One ranking per query: the log cannot tell how ranks are looked at."""
    return World(shop, noisy(shop, np.random.default_rng(5), sampled=False))


def test_a_curve_that_the_log_cannot_check_needs_trust(fixed: World) -> None:
    log, shop = draw(fixed, 6_000), fixed.shop
    new, wrong = fixed.no_better(np.random.default_rng(4)), shop.examination**2
    assert refusal(shop, log, new) == "examination-unknown"
    assert refusal(shop, log, new, examination=wrong) == "examination-unchecked"
    trusted = judge(shop, log, new, replace(QUICK, trust_examination=True), examination=wrong)
    assert trusted.unchecked
    assert any("this log cannot check it" in warning for warning in trusted.warnings)
    np.testing.assert_allclose(trusted.examination["curve"], wrong)


def test_a_curve_that_the_log_contradicts_is_refused(world: World, log: AggregatedLog, better: Ranker) -> None:
    wrong = world.shop.examination**2
    for settings in (QUICK, replace(QUICK, trust_examination=True)):
        assert refusal(world.shop, log, better, settings, examination=wrong) == "examination-contradicted"
    right = judge(world.shop, log, better, examination=world.shop.examination)
    assert right.lower <= judge(world.shop, log, better).lower  # it has to hold for curves near the given one too


def test_a_ranker_that_follows_demand_is_refused_and_known_scores_are_not() -> None:
    rng = np.random.default_rng(7)
    shop = make_shop(rng, queries=30, documents=8, cutoff=4, drift=0.6)
    world, new = World(shop, nightly(shop, rng)), noisy(shop, rng, sampled=False)
    assert refusal(shop, draw(world, 20_000), new) == "ranker-follows-demand"
    drawn = World(shop, noisy(shop, rng))  # demand drifts, but the ranker does not follow
    certificate = judge(shop, draw(drawn, 10_000), new)
    assert certificate.lower < drawn.improvement(new) < certificate.upper


def test_a_ranker_that_changed_once_is_compared_by_period_where_that_is_narrower(shop: Shop) -> None:
    """Either way is valid; with rankings drawn, comparing by period needs no allowance for drift."""
    rng = np.random.default_rng(3)
    world = World(shop, changed_once(shop, noisy(shop, rng), noisy(shop, rng), 4))
    new = noisy(shop, np.random.default_rng(2), noise=0.3, sampled=False)
    certificate = judge(shop, draw(world, 5_000), new)
    assert (certificate.strata, certificate.drift_allowance) == ("query and period", 0.0)
    assert certificate.lower < world.improvement(new) < certificate.upper


def test_a_ranker_that_changes_every_night_costs_an_allowance_for_drift() -> None:
    """Within a day it never varies, so that days have to be taken together."""
    rng = np.random.default_rng(3)
    shop = make_shop(np.random.default_rng(1), queries=30, documents=8, cutoff=4, days=10)
    world, new = World(shop, nightly(shop, rng)), noisy(shop, rng, sampled=False)
    certificate = judge(shop, draw(world, 12_000), new)
    assert certificate.strata == "query"
    assert 0.01 < certificate.drift_allowance < 0.1
    assert len(certificate.warnings) == 1
    assert certificate.lower < world.improvement(new) < certificate.upper


def test_with_rankings_drawn_within_the_day_clicks_are_compared_within_it() -> None:
    rng = np.random.default_rng(9)
    shop = make_shop(rng, queries=10, documents=5, cutoff=3, days=4, drift=0.6)
    world = World(shop, Ranker(nightly(shop, rng).scores, sampled=True))
    new = noisy(shop, rng, sampled=False)
    certificate = judge(shop, draw(world, 20_000), new)
    assert certificate.strata == "query and period"
    assert certificate.lower < world.improvement(new) < certificate.upper


@pytest.mark.parametrize("users", [Cascade(), TrustBias(), Bots()])
def test_users_who_are_not_position_based_are_refused(world: World, better: Ranker, users: Users) -> None:
    refusal(world.shop, draw(replace(world, users=users), 20_000), better)


def test_scores_of_another_ranker_are_refused(world: World, log: AggregatedLog, better: Ranker) -> None:
    other = world.logging.flat[::-1].copy()
    assert refusal(world.shop, log, better, logging_scores=other) == "other-ranker"
    reversed_order = Ranker(other.reshape(30, 8), sampled=True)
    later = World(world.shop, changed_once(world.shop, world.logging, reversed_order, 6))
    code = refusal(world.shop, draw(later, 10_000), better, logging_scores=world.logging.flat)
    assert code == "other-ranker"


def test_clicks_below_the_ranks_that_are_counted(world: World, log: AggregatedLog, better: Ranker) -> None:
    clicks = sum(part["clicks"] for part in log.manifest["parts"].values())
    few = replace(log, manifest=log.manifest | {"clicks_below_cutoff": clicks // 25})
    assert "at ranks 1 to" in judge(world.shop, few, better).covers
    many = replace(log, manifest=log.manifest | {"clicks_below_cutoff": clicks // 10})
    assert refusal(world.shop, many, better) == "clicks-below-cutoff"


def test_a_join_that_fails_is_refused(world: World, log: AggregatedLog, better: Ranker) -> None:
    data = world.shop.data()
    assert data.query_ids is not None
    strangers = replace(data, query_ids=np.char.add("other-", data.query_ids.astype(str)))
    with pytest.raises(Refused) as raised:
        certify(NewRanker(strangers, better.flat), log, QUICK)
    assert raised.value.code == "few-queries-ranked"


def test_a_ranker_that_lists_nothing_that_is_shown_is_refused(
    world: World, log: AggregatedLog, better: Ranker, tmp_path: Path
) -> None:
    """Its queries are those of the log, its documents are not; no look is spent."""
    data = world.shop.data()
    assert data.document_ids is not None
    strangers = replace(data, document_ids=np.char.add("other-", data.document_ids.astype(str)), source="scores.csv")
    with pytest.raises(Refused) as raised:
        certify(NewRanker(strangers, better.flat), log, QUICK, ledger=tmp_path / "ledger.json")
    assert (raised.value.code, raised.value.file) == ("nothing-listed", "scores.csv")
    assert not (tmp_path / "ledger.json").exists()


def test_one_document_per_query_changes_nothing() -> None:
    alone = make_shop(np.random.default_rng(1), queries=30, documents=1, cutoff=1)
    world = World(alone, noisy(alone, np.random.default_rng(5)))
    found = judge(alone, draw(world, 3_000), replace(world.logging, sampled=False))
    assert (found.verdict, found.lower, found.upper) == (Verdict.DEPLOY, 0.0, 0.0)
    assert meaning(found).startswith("Nothing changes")
    assert not found.warnings


def test_limits_of_what_is_refused() -> None:
    check_features(0.04, 0.04, source="log")
    for shares in ((0.06, 0.0), (0.0, 0.06)):
        with pytest.raises(Refused) as raised:
            check_features(*shares, source="log")
        assert (raised.value.code, raised.value.file) == ("missing-features", "log")


def test_nothing_held_out(world: World, better: Ranker) -> None:
    with pytest.raises(DataError):
        judge(world.shop, draw(world, 5_000, shares=(0.7, 0.3, 0.0)), better)


def split(**changed: object) -> dict[str, object]:
    return {"by": "hash", "seed": 0, "shares": [0.6, 0.2, 0.2], **changed}


def test_another_log_may_be_split_otherwise_unless_it_shares_files() -> None:
    ours = {"source": "a", "split": split(), "files": [{"name": "a", "sha256": "1"}]}
    model = {"used_parts": ["train"], "inputs": {"log": ours}}
    check_untouched(model, ours)
    other = {"source": "b", "split": split(seed=3), "files": [{"name": "b", "sha256": "2"}]}
    check_untouched(model, other)
    for changed, manifest, code in (
        (model, other | {"files": [{"name": "copy", "sha256": "1"}]}, "other-split"),
        (model, ours | {"split": split(by="query")}, "other-split"),
        (model | {"used_parts": ["train", "certify"]}, ours, "trained-on-certify"),
        (model, ours | {"unit": "user"}, "units-in-training"),
    ):
        with pytest.raises(Refused) as raised:
            check_untouched(changed, manifest)
        assert raised.value.code == code


def test_another_cutoff_is_a_wrong_call(world: World, log: AggregatedLog, better: Ranker) -> None:
    with pytest.raises(UsageError):
        judge(world.shop, log, better, examination=np.array([1.0, 0.5, 0.3]))


# Users who repeat, and new queries.


@pytest.mark.parametrize(("units", "least", "most"), [(False, 3, 12), (True, 0, 2)])
def test_users_who_repeat_need_units(shop: Shop, units: bool, least: int, most: int) -> None:
    """Each user has a taste and asks one query about 20 times. How many of 12 lower bounds fail, at delta 0.05."""
    world = World(shop, noisy(shop, np.random.default_rng(5)), Tastes())
    failed = 0
    for seed in range(12):
        log = draw(world, 5_000, seed, units=units, split="unit" if units else "impression")
        new = learned(shop, log)
        certificate = judge(shop, log, new)
        failed += certificate.lower > world.improvement(new)
        assert certificate.unit == ("user_id" if units else None)
    assert least <= failed <= most


def test_a_split_by_query_covers_new_queries(world: World, log: AggregatedLog, better: Ranker) -> None:
    by_query = judge(world.shop, draw(world, 10_000, split="query"), better, CertifySettings())
    assert "new ones included" in by_query.covers
    assert "new ones included" not in judge(world.shop, log, better).covers
    # terms are queries: the bounds that take single interactions only are not there
    assert [row.name for row in by_query.bounds] == [name for name, bound in BOUNDS.items() if bound.units]
    assert by_query.lower < world.improvement(better) < by_query.upper
    assert by_query.unit == "query"


@pytest.mark.parametrize("options", [{"split": "query"}, {"split": "unit", "units": True}])
def test_bounds_of_single_interactions_are_wrong_where_terms_are_units(
    world: World, better: Ranker, options: dict[str, Any]
) -> None:
    grouped = draw(world, 5_000, **options)
    for name in (name for name, bound in BOUNDS.items() if not bound.units):
        with pytest.raises(UsageError):
            judge(world.shop, grouped, better, replace(QUICK, bound=name))


def test_a_bound_for_any_time_has_its_limit_of_weights_before_the_log(world: World, better: Ranker) -> None:
    """Chosen on a log that grows between looks, it would be another at each."""
    logs = [draw(world, interactions) for interactions in (2_000, 10_000)]
    limits = {
        bound: [judge(world.shop, log, better, replace(QUICK, bound=bound)).most_weight for log in logs]
        for bound in ("betting", "one-look")
    }
    assert limits["betting"] == [DEFAULT_WEIGHT] * 2
    assert DEFAULT_WEIGHT not in limits["one-look"]
    given = replace(QUICK, bound="betting", most_weight=3.0)
    assert judge(world.shop, logs[0], better, given).most_weight == 3.0


def test_new_queries_are_reported_apart(world: World, log: AggregatedLog, better: Ranker) -> None:
    """The first three queries are taken out of the parts that are learned from."""

    def kept(table: pa.Table) -> pa.Table:
        rows = zip(table["part"].to_pylist(), table["query_id"].to_pylist(), strict=True)
        return table.filter(pa.array([part == "certify" or query > "q00002" for part, query in rows]))

    mixed = replace(log, shown_counts=kept(log.shown_counts), patterns=kept(log.patterns))
    certificate = judge(world.shop, mixed, better, CertifySettings())
    seen, new = certificate.traffic
    counts = log.statistics("certify", world.shop.data())
    assert (seen.interactions, new.interactions) == (counts.interactions[3:].sum(), counts.interactions[:3].sum())
    mean = (seen.interactions * seen.improvement + new.interactions * new.improvement) / certificate.interactions
    assert mean == pytest.approx(certificate.improvement)
    assert judge(world.shop, log, better, CertifySettings()).traffic == ()


# What is said.


def test_decide() -> None:
    assert decide(-0.01, 0.5, 0.01) is Verdict.DEPLOY
    assert decide(-0.02, -0.011, 0.01) is Verdict.KEEP
    assert decide(-0.02, 0.0, 0.01) is Verdict.MORE_DATA
    assert [verdict.exit_code for verdict in Verdict] == [0, 3, 4]


def test_how_much_more_is_needed(world: World) -> None:
    """A log of seven days that is too small: as many interactions as are said to be needed do decide."""
    new = world.better(0.05, np.random.default_rng(2))
    found = [judge(world.shop, draw(world, 4_000, seed), new) for seed in range(4)]
    undecided = [one for one in found if one.verdict is Verdict.MORE_DATA and one.needed is not None]
    assert undecided
    for one in undecided:
        assert one.needed is not None
        assert one.needed.days is not None
        assert one.interactions < one.needed.fewest < one.needed.most
        assert one.needed.days[0] == pytest.approx(7.0 * one.needed.fewest / one.interactions, rel=0.01)
        assert one.needed.verdict == "DEPLOY"
    # the noise of zero: no number is given
    close = judge(world.shop, draw(world, 4_000), world.no_better(np.random.default_rng(4)))
    assert abs(close.improvement) < close.standard_error
    assert (close.verdict, close.needed) == (Verdict.MORE_DATA, None)
    assert "no sign of a difference" in meaning(close)


@pytest.fixture(scope="module")
def undecided(world: World) -> Certificate:
    return judge(world.shop, draw(world, 4_000), world.no_better(np.random.default_rng(4)))


def test_what_it_means(undecided: Certificate) -> None:
    needed = replace(undecided, interactions=9_000, needed=Needed(12_345, 67_890, "DEPLOY", (3.4, 9.6)))
    said = meaning(needed)
    assert "13,000 to 68,000 held-out interactions (3 to 10 days of logging in all)" in said
    assert "DEPLOY" in said
    assert "9,000" in said
    assert "days" not in meaning(replace(needed, needed=Needed(12_345, 67_890, "KEEP")))
    unsupported = replace(undecided, needed=None, unsupported_exposure=0.3)
    assert "30% of what the new ranker shows never appears" in meaning(unsupported)
    drifted = meaning(replace(unsupported, drift_allowance=0.001 - unsupported.lower))
    assert "the ranker changed" in drifted
    assert "+0.001" in drifted
    assert "no sign of a difference" in meaning(replace(undecided, needed=None, improvement=-0.01, standard_error=0.01))
    assert "looks worse" in meaning(replace(undecided, needed=None, improvement=-0.03, standard_error=0.01))
    deploy = replace(undecided, verdict=Verdict.DEPLOY)
    assert meaning(deploy).startswith("With 95% confidence")
    assert "minus 0.02" in meaning(replace(deploy, tolerance=0.02))
    assert "revenue" in meaning(replace(deploy, reward="revenue"))
    assert "fewer clicks" in meaning(replace(undecided, verdict=Verdict.KEEP))


@pytest.mark.parametrize(
    "changed",
    [
        {"delta": 1.0}, {"tolerance": -0.1}, {"tolerance": math.nan}, {"bound": "hope"}, {"clip": -1.0},
        {"most_weight": 0.5}, {"most_weight": math.nan},
    ],
)  # fmt: skip
def test_wrong_settings(changed: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        CertifySettings(**changed)


def test_settings_are_also_keywords(world: World, log: AggregatedLog, better: Ranker) -> None:
    ranker = NewRanker(world.shop.data(), better.flat)
    found = certify(ranker, log, delta=0.2, details=False)
    assert found == replace(certify(ranker, log, CertifySettings(delta=0.2, details=False)), created=found.created)
    with pytest.raises(UsageError, match="'trust_examination'"):
        certify(ranker, log, trust_examinaton=True)


def test_certificate_round_trip(world: World, log: AggregatedLog, tmp_path: Path) -> None:
    certificate = judge(world.shop, log, world.no_better(np.random.default_rng(4)), CertifySettings())
    path = tmp_path / "c" / "certificate.json"
    for one in (certificate, replace(certificate, needed=Needed(1, 2, "KEEP", (1.0, 2.0)))):
        one.write(path)
        assert Certificate.read(path) == one
    assert len(repr(certificate)) < 200
    assert [file.name for file in path.parent.iterdir()] == ["certificate.json"]
    told = json.loads(path.read_text())
    assert told["verdict"] == "MORE DATA"
    assert told["inputs"]["log"]["split"] == split()
    assert told["assumptions"]


def test_a_certificate_of_version_1_is_read(tmp_path: Path) -> None:
    """Its bounds were each at level delta, and it had no ledger."""
    values = {
        "format": "saferank-certificate", "version": 1, "verdict": "DEPLOY", "improvement": 0.02, "lower": 0.01,
        "upper": None, "delta": 0.05, "tolerance": 0.0, "bound": "betting", "serve_as": "deterministic",
        "interactions": 4000, "click_rate": 0.3, "needed_interactions": None, "logging_exposure": "counted",
        "effective_clicks": 700.0, "unsupported_exposure": 0.0, "low": -2.0, "high": 9.0, "bounds": [],
        "delta_dial": [[0.05, 0.01]], "segments": [], "assumptions": ["a"], "warnings": [], "inputs": {},
        "saferank": "0.1.0", "created": "2026-11-15",
    }  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps(values))
    read = Certificate.read(tmp_path / "c.json")
    assert (read.verdict, read.lower, read.spent, read.look) == (Verdict.DEPLOY, 0.01, 0.05, 1)
    assert (read.delta_dial, read.examination["curve"], read.unchecked) == (((0.05, 0.01),), [], False)
    assert meaning(read)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": "saferank-certificate", "version": 1}',
        '{"format": "saferank-certificate", "version": 9}',
        '{"format": "saferank-certificate", "version": 2}',
    ],
)
def test_broken_certificates(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(DataError) as raised:
        Certificate.read(tmp_path / "c.json")
    assert str(raised.value.file) == str(tmp_path / "c.json")


@pytest.mark.parametrize(("limited", "code"), [(Filtered, "lists-in-kinds"), (SoldOut, "high-or-missing")])
def test_limits_that_a_new_ranker_cannot_change_are_refused(shop: Shop, limited: type[Ranker], code: str) -> None:
    world = World(shop, limited(noisy(shop, np.random.default_rng(5), scale=2.0).scores, sampled=True))
    log, new = draw(world, 8_000), noisy(shop, np.random.default_rng(8), sampled=False)
    assert refusal(shop, log, new) == code
    trusted = judge(shop, log, new, replace(QUICK, trust_candidates=True))
    assert code in [doubt.code for doubt in trusted.doubts]


def test_a_model_with_a_feature_that_knows_the_clicks_is_refused(world: World, log: AggregatedLog) -> None:
    data = world.shop.data()
    counts = log.statistics(("train", "validation", "certify"), data)
    known = (counts.clicks / np.maximum(counts.times_shown, 1)).astype(np.float32)
    data = replace(data, features=known[:, None], feature_names=("ctr",))
    with pytest.raises(Refused) as raised:
        certify(NewRanker(data, known, complete=True), log, QUICK)
    assert raised.value.code == "feature-knows-clicks"


def test_ties_are_in_random_order_and_named(world: World, log: AggregatedLog) -> None:
    shop, scores = world.shop, np.round(world.logging.flat)
    data, order = shop.data(), np.argsort(-shop.mean_relevance, axis=1, kind="stable")
    place = (order + shop.documents * np.arange(shop.queries)[:, None]).ravel()
    sorted_rows = replace(data, document_ids=np.asarray(data.document_ids)[place])
    as_made, as_sorted = (
        certify(NewRanker(*one), log, QUICK) for one in ((data, scores), (sorted_rows, scores[place]))
    )
    assert as_made.lower == pytest.approx(as_sorted.lower, abs=1e-9)
    assert any("same score" in warning for warning in as_made.warnings)
