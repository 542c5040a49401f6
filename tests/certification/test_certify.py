"""The verdict, through the whole way from a written log."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from saferank.certification.certificate import Certificate, Verdict
from saferank.certification.certify import (
    CertifySettings,
    certify,
    decide,
    needed_interactions,
    weigh,
)
from saferank.certification.checks import Refused, check_effective_clicks, check_support, check_untouched
from saferank.certification.differences import Differences
from saferank.certification.watch import look
from saferank.data.aggregated_log import AggregatedLog
from saferank.data.load_log import load_log
from saferank.data.split import HashSplit
from saferank.errors import DataError, UsageError
from saferank.plackett_luce import exposure
from tests.certification.small_log import linear_policy, small_log, with_segment

BETTER, SAME, WORSE = (0.3, 0.5), (0.0, 0.5), (-0.3, 0.5)
SAMPLED = CertifySettings(serve_as="sampled")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AggregatedLog:
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    small_log().write(path, 60_000)
    return small_log().aggregated(path)


def judge(log: AggregatedLog, weights: tuple[float, float], settings: CertifySettings = SAMPLED) -> Certificate:
    world = small_log()
    return certify(linear_policy(*weights), log, world.data, settings, logging_scores=world.logging_scores)


def true_improvement(weights: tuple[float, float]) -> float:
    world = small_log()
    relevance = world.model.relevance(world.data.require_labels())
    scores = linear_policy(*weights).scores(world.data)
    new, old = (exposure(s, world.data.offsets, world.model.examination) for s in (scores, world.logging_scores))
    return float((new - old) @ relevance) / world.data.queries


def test_a_better_policy_is_deployed_and_a_worse_one_is_not(log: AggregatedLog) -> None:
    assert judge(log, BETTER).verdict is Verdict.DEPLOY
    assert judge(log, WORSE).verdict is Verdict.KEEP


@pytest.mark.parametrize("weights", [BETTER, WORSE, (0.05, 0.4)])
def test_the_interval_holds_the_truth_and_the_estimate_is_near_it(
    log: AggregatedLog, weights: tuple[float, float]
) -> None:
    certificate = judge(log, weights)
    truth = true_improvement(weights)
    assert certificate.lower < truth < certificate.upper
    assert abs(certificate.improvement - truth) < 0.5 * (certificate.upper - certificate.lower)
    assert certificate.interactions == log.manifest["parts"]["certify"]["interactions"]
    assert certificate.click_rate == pytest.approx(
        log.manifest["parts"]["certify"]["clicks"] / certificate.interactions
    )


def test_the_same_policy_is_deployed_as_no_worse(log: AggregatedLog) -> None:
    certificate = judge(log, SAME)
    assert certificate.verdict is Verdict.DEPLOY
    assert certificate.improvement == pytest.approx(0.0, abs=1e-6)


def test_counted_exposure_says_so_and_is_cautious(log: AggregatedLog) -> None:
    counted = certify(linear_policy(*BETTER), log, small_log().data, SAMPLED)
    known = judge(log, BETTER)
    assert (counted.logging_exposure, known.logging_exposure) == ("counted", "known")
    assert any("counted, not known" in warning for warning in counted.warnings)
    assert not known.warnings
    assert counted.improvement == pytest.approx(known.improvement, abs=0.02)


def test_counted_with_few_interactions_a_query_errs_to_either_safe_side(tmp_path: Path) -> None:
    """Weights are cautious for the lower bound and plain for the upper one: a better policy is never told worse."""
    small_log().write(tmp_path / "log.parquet", 400)
    thin = small_log().aggregated(tmp_path / "log.parquet")
    certificate = certify(linear_policy(*BETTER), thin, small_log().data, SAMPLED)
    assert certificate.improvement < true_improvement(BETTER) < certificate.upper
    assert certificate.lower < certificate.improvement
    assert certificate.verdict is Verdict.MORE_DATA


def test_deterministic_serving_is_another_policy(log: AggregatedLog) -> None:
    certificate = judge(log, BETTER, CertifySettings(serve_as="deterministic"))
    assert certificate.serve_as == "deterministic"
    assert certificate.improvement != pytest.approx(judge(log, BETTER).improvement, abs=1e-3)


def test_a_little_data_is_not_enough(tmp_path: Path) -> None:
    small_log().write(tmp_path / "log.parquet", 3_000)
    certificate = judge(small_log().aggregated(tmp_path / "log.parquet"), (0.0, -0.3))
    assert certificate.verdict is Verdict.MORE_DATA
    assert certificate.needed_interactions is None or certificate.needed_interactions > certificate.interactions


def test_tolerance_and_delta_move_the_verdict(log: AggregatedLog) -> None:
    certificate = judge(log, WORSE)
    loose = replace(SAMPLED, tolerance=-certificate.lower + 1e-6)
    assert judge(log, WORSE, loose).verdict is Verdict.DEPLOY
    dial = dict(certificate.delta_dial)
    assert list(dial.values()) == sorted(dial.values(), reverse=True)  # a smaller delta, a lower bound
    assert dial[0.05] == pytest.approx(certificate.lower)


def test_all_bounds_stand_side_by_side(log: AggregatedLog) -> None:
    certificate = judge(log, BETTER)
    rows = {row.name: row for row in certificate.bounds}
    assert (rows["betting"].lower, rows["betting"].upper) == (certificate.lower, certificate.upper)
    assert rows["student-t"].lower > rows["betting"].lower > rows["divergence"].lower
    assert [name for name, row in rows.items() if not row.guarantee] == ["divergence-paper", "student-t"]


def test_segments_are_told_apart_worst_first(tmp_path: Path) -> None:
    small_log().write(tmp_path / "log.parquet", 60_000)
    pq.write_table(with_segment(pq.read_table(tmp_path / "log.parquet")), tmp_path / "device.parquet")
    log = load_log(tmp_path / "device.parquet", split=HashSplit(), cutoff=3, segment="device")
    certificate = judge(log, BETTER)
    assert {row.segment for row in certificate.segments} == {"phone", "desk"}
    assert sum(row.interactions for row in certificate.segments) == certificate.interactions
    mean = sum(row.interactions * row.improvement for row in certificate.segments) / certificate.interactions
    assert mean == pytest.approx(certificate.improvement)
    assert certificate.segments[0].lower <= certificate.segments[1].lower
    for row in certificate.segments:
        assert row.lower < row.improvement < row.upper


# Where no guarantee can be given.


def split(**changed: object) -> dict[str, object]:
    return {"by": "hash", "seed": 0, "shares": [0.6, 0.2, 0.2], **changed}


def test_a_log_split_otherwise_is_refused(log: AggregatedLog) -> None:
    trained = {"log": {"source": log.source, "split": split(seed=1), "files": []}}
    policy = linear_policy(*BETTER, {"inputs": trained, "used_parts": ["train", "validation"]})
    with pytest.raises(Refused, match=r"split as 60/20/20 by hash, seed 1, but here it is split as .* seed 0"):
        certify(policy, log, small_log().data, SAMPLED)


def test_another_log_may_be_split_otherwise_unless_it_shares_files() -> None:
    ours = {"source": "a", "split": split(), "files": [{"name": "a", "sha256": "1"}]}
    model = {"used_parts": ["train"], "inputs": {"log": ours}}
    check_untouched(model, ours)
    other = {"source": "b", "split": split(seed=3), "files": [{"name": "b", "sha256": "2"}]}
    check_untouched(model, other)
    with pytest.raises(Refused, match="split it as for training"):
        check_untouched(model, other | {"files": [{"name": "copy", "sha256": "1"}]})
    with pytest.raises(Refused, match="trained on the part 'certify' too"):
        check_untouched(model | {"used_parts": ["train", "certify"]}, ours)


@pytest.mark.parametrize("known", [True, False])
def test_a_log_of_another_ranker_is_refused(log: AggregatedLog, tmp_path: Path, known: bool) -> None:
    world = small_log()
    world.write(tmp_path / "other.parquet", 60_000, scores=world.logging_scores[::-1].copy())
    other = world.aggregated(tmp_path / "other.parquet")
    if known:
        policy, scores, mixed = linear_policy(*BETTER), world.logging_scores, other
    else:  # the ranker changed between the parts
        policy, scores = linear_policy(*BETTER), None
        parts = {name: _mixed(getattr(log, name), getattr(other, name)) for name in ("impressions", "patterns")}
        mixed = replace(log, **parts)
    with pytest.raises(Refused, match="a log of another ranker, or of one that changed"):
        certify(policy, mixed, world.data, SAMPLED, logging_scores=scores)


def _mixed(first: pa.Table, second: pa.Table) -> pa.Table:
    return pa.concat_tables(
        [first.filter(pc.not_equal(first["part"], "certify")), second.filter(pc.equal(second["part"], "certify"))]
    )


def test_too_much_on_documents_never_shown_is_refused() -> None:
    check_support(0.19)
    with pytest.raises(Refused, match="30% of the new policy's exposure is on documents that the log never shows"):
        check_support(0.3)


def test_too_few_effective_clicks_are_refused(tmp_path: Path) -> None:
    check_effective_clicks(51.0)
    with pytest.raises(Refused, match="worth 7 after weighting, fewer than the 50"):
        check_effective_clicks(7.0)
    small_log().write(tmp_path / "log.parquet", 200)
    with pytest.raises(Refused, match="log more"):
        judge(small_log().aggregated(tmp_path / "log.parquet"), BETTER)


def test_another_cutoff_is_a_wrong_call(tmp_path: Path) -> None:
    small_log().write(tmp_path / "log.parquet", 2_000)
    two_ranks = load_log(tmp_path / "log.parquet", split=HashSplit(), cutoff=2)
    with pytest.raises(UsageError, match="counted for 2 ranks, but the model is for 3"):
        judge(two_ranks, BETTER)


# Parts of it.


def test_decide() -> None:
    assert decide(-0.01, 0.5, 0.01) is Verdict.DEPLOY
    assert decide(-0.02, -0.011, 0.01) is Verdict.KEEP
    assert decide(-0.02, 0.0, 0.01) is Verdict.MORE_DATA
    assert [verdict.exit_code for verdict in Verdict] == [0, 3, 4]


def test_needed_interactions_by_hand() -> None:
    differences = Differences(np.array([0.1]), np.array([100]), -1.0, 1.0, {})
    assert needed_interactions(differences, -0.2, 0.9, 0.0) == pytest.approx(
        900, abs=1
    )  # the width 0.3 must shrink to 0.1
    assert needed_interactions(differences, -0.2, 0.9, 0.05) == pytest.approx(400, abs=1)
    worse = Differences(np.array([-0.1]), np.array([100]), -1.0, 1.0, {})
    assert needed_interactions(worse, -0.9, 0.1, 0.0) == pytest.approx(400, abs=1)
    assert needed_interactions(Differences(np.zeros(1), np.array([9]), -1.0, 1.0, {}), -0.2, 0.9, 0.0) is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"delta": 1.0}, "delta is the chance"),
        ({"tolerance": -0.1}, "tolerance is a loss"),
        ({"tolerance": math.nan}, "tolerance is a loss"),
        ({"bound": "hope"}, "bound 'hope' is unknown"),
    ],
)
def test_wrong_settings(changed: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CertifySettings(**changed)  # type: ignore[arg-type]


def test_certificate_round_trip(log: AggregatedLog, tmp_path: Path) -> None:
    certificate = judge(log, BETTER)
    certificate.write(tmp_path / "c" / "certificate.json")
    assert Certificate.read(tmp_path / "c" / "certificate.json") == certificate
    assert [file.name for file in (tmp_path / "c").iterdir()] == ["certificate.json"]
    told = json.loads((tmp_path / "c" / "certificate.json").read_text())
    assert told["verdict"] == "DEPLOY"
    assert told["inputs"]["log"]["split"] == split()
    assert told["assumptions"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "was not written by `saferank certify`"),
        ('{"format": "saferank-certificate", "version": 9}', "has version 9"),
        ('{"format": "saferank-certificate", "version": 1}', "is no certificate of this version"),
    ],
)
def test_broken_certificates(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(DataError, match=message):
        Certificate.read(tmp_path / "c.json")


# Watching.


def test_watching_keeps_the_weights_and_remembers_its_looks(tmp_path: Path) -> None:
    world, policy, state = small_log(), linear_policy(*BETTER), tmp_path / "watch.npz"
    world.write(tmp_path / "log.parquet", 20_000)
    table = pq.read_table(tmp_path / "log.parquet")
    certificates = []
    for share in (0.1, 0.3, 1.0):
        pq.write_table(table.slice(0, 3 * int(20_000 * share)), tmp_path / "seen.parquet")
        seen = world.aggregated(tmp_path / "seen.parquet")
        certificates.append(look(policy, seen, world.data, SAMPLED, state))
    looks = certificates[-1].inputs["looks"]
    assert [one["interactions"] for one in looks] == [certificate.interactions for certificate in certificates]
    assert [one["lower"] for one in looks] == [certificate.lower for certificate in certificates]
    # the last look weighs clicks as the first one did, not as the grown log would
    first = world.aggregated(tmp_path / "seen.parquet")
    fresh = weigh(policy, first, world.data, SAMPLED)
    assert certify(policy, first, world.data, SAMPLED, weighing=fresh).lower != certificates[-1].lower
    pq.write_table(table.slice(0, 6_000), tmp_path / "seen.parquet")
    with pytest.raises(DataError, match="a log that is watched may only grow"):
        look(policy, world.aggregated(tmp_path / "seen.parquet"), world.data, SAMPLED, state)
    with pytest.raises(UsageError, match="a watch over another model, or with other settings"):
        look(policy, first, world.data, replace(SAMPLED, delta=0.01), state)
    state.write_bytes(b"no")
    with pytest.raises(DataError, match="remove it to begin a new watch"):
        look(policy, first, world.data, SAMPLED, state)


def test_only_betting_may_be_watched(log: AggregatedLog, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only the bound 'betting' holds at every look"):
        look(linear_policy(*BETTER), log, small_log().data, CertifySettings(bound="student-t"), tmp_path / "w.npz")
