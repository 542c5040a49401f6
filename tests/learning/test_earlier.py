"""Earlier logs: they teach the regression, and the held-out part of the log stays untouched."""

from dataclasses import replace

import numpy as np
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.lab.simulate import simulate
from saferank.learning.evidence import find_evidence, with_earlier
from saferank.learning.fit_policy import FittedPolicy, fit_policy
from saferank.learning.logged_parts import logged_parts
from saferank.learning.relevance import Sample
from saferank.learning.settings import FitSettings
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from saferank.policy.scorers.trees import Trees
from saferank.verdict.checks import Refused, check_untouched
from tests.learning.aggregated import aggregated_log
from tests.learning.problem import EXAMINATION, make_part, parameters
from tests.learning.small_log import DATA, LOG, LOGS, PART

pytestmark = pytest.mark.usefixtures("short_trainings")
AUTO = FitSettings()


def earlier_log(seed: int, source: str = "before.parquet") -> AggregatedLog:
    """A log of another ranker of the same documents."""
    counts = {
        part: simulate(-PART.logging_scores, DATA.offsets, PART.relevance, EXAMINATION, 4_000, rng)
        for part, rng in zip(PARTS, np.random.default_rng(seed).spawn(3), strict=True)
    }
    log = aggregated_log(DATA, counts)
    return replace(log, manifest=log.manifest | {"source": source})


@pytest.fixture(scope="module")
def taught() -> FittedPolicy:
    """By the log and an earlier one, for tests that only read it."""
    return fit_policy(LOG, DATA, EXAMINATION, AUTO, earlier=[earlier_log(1)])


def test_its_clicks_change_what_is_predicted_and_learned(taught: FittedPolicy) -> None:
    parts = logged_parts(DATA.log1p().scaled_per_query(), LOGS["train"], LOGS["validation"], EXAMINATION)
    before = Sample(parts[0].data, earlier_log(1).statistics(PARTS, DATA), EXAMINATION)
    alone, both = (find_evidence(Trees(4), *parts, earlier=earlier) for earlier in ([], [before]))
    assert not np.array_equal(alone.held_out[0], both.held_out[0])
    truth = [np.mean((one.relevance - PART.relevance) ** 2) for one in (alone, both)]
    assert truth[1] < truth[0]
    one = fit_policy(LOG, DATA, EXAMINATION, AUTO)
    assert parameters(one.policy.scorer) != parameters(taught.policy.scorer)
    assert [log["source"] for log in taught.policy.manifest["inputs"]["earlier"]] == ["before.parquet"]


def test_the_verdict_is_foreseen_on_the_log_alone() -> None:
    parts = logged_parts(DATA.log1p().scaled_per_query(), LOGS["train"], LOGS["validation"], EXAMINATION)
    before = Sample(parts[0].data, earlier_log(1).statistics(PARTS, DATA), EXAMINATION)
    found = find_evidence(Trees(4), *parts, earlier=[before])
    assert found.foresight.log.total_interactions == 8_000
    assert found.history[0].log.total_interactions == 20_000


def test_the_held_out_part_of_the_log_is_not_looked_at(taught: FittedPolicy) -> None:
    held_out = simulate(
        -PART.logging_scores, DATA.offsets, 1 - PART.relevance, EXAMINATION, 2_001, np.random.default_rng(8)
    )
    other = aggregated_log(DATA, LOGS | {"certify": held_out})
    two = fit_policy(other, DATA, EXAMINATION, AUTO, earlier=[earlier_log(1)])
    assert parameters(taught.policy.scorer) == parameters(two.policy.scorer)


def test_a_log_is_not_earlier_than_itself() -> None:
    with pytest.raises(UsageError):
        fit_policy(LOG, DATA, EXAMINATION, AUTO, earlier=[earlier_log(1, source=LOG.source)])
    files = {"files": [{"name": "a", "sha256": "same"}]}
    log, before = (replace(one, manifest=one.manifest | files) for one in (LOG, earlier_log(1)))
    with pytest.raises(UsageError):
        fit_policy(log, DATA, EXAMINATION, AUTO, earlier=[before])


def test_nothing_is_certified_on_an_earlier_log(taught: FittedPolicy) -> None:
    policy = taught.policy
    check_untouched(policy.manifest, LOG.manifest)
    with pytest.raises(Refused) as refused:
        check_untouched(policy.manifest, earlier_log(1).manifest)
    assert refused.value.code == "trained-on-certify"


def test_documents_without_features_are_an_error_or_left_out() -> None:
    fewer = DATA.subset(np.arange(30))
    log = aggregated_log(fewer, {part: one.subset(np.arange(30)) for part, one in LOGS.items()})
    with pytest.raises(DataError) as error:
        fit_policy(log, fewer, EXAMINATION, AUTO, earlier=[earlier_log(1)])
    assert error.value.file == "features.parquet"
    fitted = fit_policy(log, fewer, EXAMINATION, replace(AUTO, without_features="drop"), earlier=[earlier_log(1)])
    (kept,) = fitted.policy.manifest["inputs"]["earlier"]
    assert kept["shown_pairs_without_features"] == len(earlier_log(1).missing_pairs(fewer)) > 0
    assert fitted.left_out == 0


def test_another_number_of_ranks_is_refused() -> None:
    before = earlier_log(1)
    with pytest.raises(UsageError):
        fit_policy(LOG, DATA, EXAMINATION, AUTO, earlier=[replace(before, manifest=before.manifest | {"cutoff": 2})])


def test_other_documents_are_a_sample_of_their_own() -> None:
    other = make_part(2)
    mine = Sample(PART.data, PART.log, EXAMINATION)
    theirs = Sample(other.data, other.log, EXAMINATION)
    found = with_earlier([mine], [mine, theirs])
    np.testing.assert_array_equal(found[0].log.clicked, 2 * PART.log.clicked)
    assert found[1] is theirs
