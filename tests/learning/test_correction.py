"""The correction of the current ranker's scores: its evidence against plain least squares, and what it does with it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from saferank.engine.propensity.click_evidence import click_evidence
from saferank.engine.ragged import within_queries
from saferank.lab.simulate import simulate
from saferank.learning.correction import STEPS, correct
from saferank.learning.evidence import (
    LEAST_EVIDENCE,
    Evidence,
    Slopes,
    find_evidence,
    fit_slopes,
    orthogonal,
    with_relevance,
    within_query_slopes,
)
from saferank.learning.logged_parts import logged_parts
from saferank.learning.methods import LoggedPart
from saferank.learning.relevance import Sample
from saferank.policy.scorers import score
from saferank.policy.scorers.trees import Trees
from tests.learning.problem import EXAMINATION, FEATURES, Part, make_part, only_first_queries, parameters


def with_base(part: Part, interactions: int, seed: int = 0) -> tuple[LoggedPart, LoggedPart]:
    """Two logs of the part's queries; the last column has the scores of the logging policy."""
    features = np.column_stack([part.data.features, part.logging_scores]).astype(np.float32)
    logs = [
        simulate(part.logging_scores, part.data.offsets, part.relevance, EXAMINATION, size, np.random.default_rng(rng))
        for size, rng in ((interactions, [seed, 1]), (interactions // 3, [seed, 2]))
    ]
    data = replace(part.data, features=features)
    return logged_parts(data, logs[0], logs[1], EXAMINATION, logging_scores=features[:, -1])


def start() -> Trees:
    return Trees(FEATURES + 1, "column")


# Least squares


def sample_of(seed: int, issued: int = 12) -> tuple[Sample, NDArray[np.float32], NDArray[np.float64]]:
    part = make_part(seed, queries=15, interactions=3_000)
    log = only_first_queries(part.log, issued)
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, part.data.documents))
    return Sample(part.data, log, EXAMINATION), first.astype(np.float32), 0.5 * first + second + part.relevance


@pytest.mark.parametrize("seeds", [(1,), (2, 3)])
def test_slopes_are_least_squares_with_a_constant_per_query(seeds: tuple[int, ...]) -> None:
    samples, starts, held_out = zip(*(sample_of(seed) for seed in seeds), strict=True)
    found = fit_slopes(samples, starts, held_out)
    evidence = [click_evidence(sample.log, EXAMINATION) for sample in samples]
    y, weight = (np.concatenate([getattr(one, name) for one in evidence]) for name in ("relevance", "weight"))
    query = np.concatenate([100 * place + s.data.query_of_document for place, s in enumerate(samples)])
    dummies = (query[:, None] == np.unique(query)).astype(float)
    x = np.column_stack([np.concatenate(starts), np.concatenate(held_out), dummies])
    root = np.sqrt(weight)
    slopes = np.linalg.lstsq(root[:, None] * x, root * y, rcond=None)[0]
    bread = np.linalg.pinv((weight[:, None] * x).T @ x)
    rest = weight * (y - x @ slopes)
    per_query = np.stack([x[query == one].T @ rest[query == one] for one in np.unique(query)])
    errors = np.sqrt(np.diag(bread @ (per_query.T @ per_query) @ bread)[:2])
    assert (found.start_slope, found.slope) == pytest.approx(tuple(slopes[:2]), rel=1e-4)
    assert (found.start_error, found.error) == pytest.approx(tuple(errors), rel=1e-4)


def test_a_start_without_scores_has_no_slope() -> None:
    sample, flat, held_out = sample_of(1)
    found = fit_slopes([sample], [0 * flat], [held_out])
    assert (found.start_slope, found.start_error) == (0.0, 0.0)
    assert found.error > 0


def test_within_queries_is_less_the_weighted_mean() -> None:
    offsets = np.array([0, 2, 5, 6])
    values = np.array([1.0, 3.0, 2.0, 4.0, 9.0, 7.0])
    weight = np.array([1.0, 3.0, 0.0, 0.0, 0.0, 2.0])
    means = (1.0 * 1 + 3.0 * 3) / 4, 0.0, 7.0  # without weights, nothing is taken away
    expected = values - np.repeat(means, [2, 3, 1])
    np.testing.assert_allclose(within_queries(values, offsets, weight), expected)


def test_how_much_of_a_slope_is_kept() -> None:
    assert pytest.approx(2.6**2) == LEAST_EVIDENCE
    assert Slopes(0.5, 0.1, 2.0, 0.5).correction == pytest.approx((2.0 / 0.5) * (1 - 2.6**2 / 4.0**2))
    assert Slopes(0.02, 0.1, 2.0, 0.5).correction == pytest.approx((2.0 / 0.1) * (1 - 2.6**2 / 4.0**2))
    assert Slopes(0.5, 0.1, 1.3, 0.5001).correction == 0.0
    assert Slopes(0.5, 0.1, -2.0, 0.5).correction == 0.0
    assert Slopes(0.5, 0.1, 2.0, 0.0).correction == 0.0
    assert Slopes(0.0, 0.0, 2.0, 0.5).correction == 0.0


# Evidence


@pytest.fixture(scope="module")
def part() -> Part:
    return make_part(1)


@pytest.fixture(scope="module")
def parts(part: Part) -> tuple[LoggedPart, LoggedPart]:
    return with_base(part, 30_000)


@pytest.fixture(scope="module")
def evidence(parts: tuple[LoggedPart, LoggedPart]) -> Evidence:
    return find_evidence(start(), *parts)


def test_the_evidence_is_of_both_parts_together(evidence: Evidence, parts: tuple[LoggedPart, LoggedPart]) -> None:
    (sample,) = evidence.samples
    np.testing.assert_array_equal(sample.log.clicked, parts[0].log.clicked + parts[1].log.clicked)
    np.testing.assert_array_equal(evidence.starts[0], parts[0].data.features[:, -1])
    assert evidence.model.forest.features_read <= FEATURES
    assert evidence.verdict_interactions == parts[1].log.total_interactions


def test_parts_of_other_queries_are_two_samples() -> None:
    first, second = make_part(1, queries=20, interactions=5_000), make_part(2, queries=20, interactions=5_000)
    parts = [with_base(one, 5_000)[0] for one in (first, second)]
    found = find_evidence(start(), parts[0], parts[1])
    assert [len(values) for values in found.held_out] == [first.data.documents, second.data.documents]
    train, validation = with_relevance(parts[0], parts[1])
    assert train.relevance is not None
    assert validation.relevance is not None
    assert (len(train.relevance), len(validation.relevance)) == (first.data.documents, second.data.documents)


def test_relevance_is_near_the_clicks_of_a_document_and_stays_a_probability(evidence: Evidence, part: Part) -> None:
    found = evidence.relevance
    assert found.min() >= 0
    assert found.max() <= 1
    assert np.corrcoef(found, part.relevance)[0, 1] > 0.9
    log = evidence.samples[0].log
    clicks, times = click_evidence(log, EXAMINATION), log.shown @ EXAMINATION
    often = times > np.quantile(times, 0.8)
    assert np.abs(found - clicks.relevance)[often].max() < 0.05
    error, of_clicks = (np.average((one - part.relevance) ** 2, weights=times) for one in (found, clicks.relevance))
    assert error < of_clicks


# Corrections


def test_with_a_clear_signal_the_policy_earns_more(
    part: Part, parts: tuple[LoggedPart, LoggedPart], evidence: Evidence
) -> None:
    scorer, data = start(), parts[0].data
    result = correct(scorer, evidence)
    assert result.best_epoch == scorer.forest.trees / len(evidence.model.forests) > 0
    assert result.chosen in result.path
    utility = replace(part, data=data).utility
    assert utility(scorer) > 1.1 * utility(start())
    step = result.chosen
    assert step is not None
    assert step.chance > 0.5
    truth = utility(scorer) - utility(start())
    assert step.gain == pytest.approx(truth, rel=0.25)
    share = STEPS[result.path.index(step)] * evidence.slopes.correction
    added = share * evidence.model.forest.scores(data.features)
    np.testing.assert_allclose(score(scorer, data.features), evidence.starts[0] + added, rtol=1e-4, atol=1e-4)
    expected = evidence.starts[0] + share * evidence.held_out[0]
    assert result.held_out_scores is not None
    np.testing.assert_allclose(result.held_out_scores, expected, rtol=1e-5, atol=1e-5)


def test_the_step_is_that_of_the_largest_worth_or_gain(evidence: Evidence) -> None:
    """A verdict on few interactions has most chances for another step than the one that gains most."""
    small = replace(evidence, verdict_interactions=60)
    by_worth, by_gain = correct(start(), small), correct(start(), small, by_gain=True)
    assert by_worth.path == by_gain.path
    assert by_worth.chosen == max(by_worth.path, key=lambda one: one.worth)
    assert by_gain.chosen == max(by_worth.path, key=lambda one: one.gain)
    assert by_worth.chosen is not None
    assert by_gain.chosen is not None
    assert by_gain.chosen.gain > by_worth.chosen.gain
    assert by_gain.chosen.worth < by_worth.chosen.worth


def test_without_a_foreseen_gain_nothing_is_added(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be added is the opposite of what users like, and is foreseen to lose at every step."""
    monkeypatch.setattr(Evidence, "relevance", evidence.relevance)
    wrong = replace(evidence, held_out=[-values for values in evidence.held_out])
    scorer = start()
    result = correct(scorer, wrong)
    assert result.path
    assert max(one.gain for one in result.path) < 0
    assert (result.chosen, result.best_epoch, scorer.forest.trees) == (None, 0, 0)
    assert result.held_out_scores is not None
    np.testing.assert_array_equal(result.held_out_scores, evidence.starts[0])


def test_clicks_that_say_nothing_leave_the_scorer_as_it_is() -> None:
    """All documents are alike to users: in at least 19 of 20 logs no bit changes, and the start's scores stay."""
    kept = 0
    for seed in range(20):
        part = make_part(100 + seed, queries=20, interactions=1)
        part = replace(part, relevance=np.full(part.data.documents, 0.3))
        parts, scorer = with_base(part, 3_000, seed), start()
        before, scores = parameters(scorer), score(scorer, parts[0].data.features).tobytes()
        result = correct(scorer, find_evidence(scorer, *parts, seed=seed))
        same = parameters(scorer) == before and score(scorer, parts[0].data.features).tobytes() == scores
        assert same == (result.best_epoch == 0) == (result.chosen is None)
        kept += same
    assert kept >= 19


def test_trees_on_a_model_are_kept_and_more_are_added(part: Part, parts: tuple[LoggedPart, LoggedPart]) -> None:
    first = start()
    correct(first, find_evidence(first, *parts))
    second = Trees.on(first, FEATURES + 1)
    more = find_evidence(second, *parts)
    np.testing.assert_array_equal(more.starts[0], score(first, parts[0].data.features))
    correct(second, more)
    kept = slice(0, len(first.forest.value))
    np.testing.assert_array_equal(second.forest.value[kept], first.forest.value)
    assert isinstance(second.start, torch.nn.Module)
    assert part.data.documents == len(more.starts[0])


def test_columns_that_say_nearly_the_same_are_told_apart_by_what_each_adds() -> None:
    """Uncorrelated within queries, by the weights of the clicks; the first is as it was, and a fit by them the same."""
    part = make_part(3)
    sample = Sample(part.data, part.log, EXAMINATION)
    rng = np.random.default_rng(0)
    first = part.logging_scores.astype(np.float64)
    columns = np.stack([first, first + 1e-2 * rng.normal(size=len(first)), np.exp(first), np.zeros(len(first))])
    found = orthogonal(columns, sample)
    np.testing.assert_allclose(found[0], columns[0], rtol=1e-12)
    weight = click_evidence(part.log, EXAMINATION).weight
    within = np.stack([within_queries(column, part.data.offsets, weight) for column in found])
    scale = np.sqrt(np.maximum((weight * within**2).sum(axis=1), 1e-9))
    np.testing.assert_allclose((weight * within) @ within.T / np.outer(scale, scale), np.diag([1, 1, 1, 0]), atol=1e-4)
    before, after = (within_query_slopes([sample], [values])[0] @ values for values in (columns[:3], found[:3]))
    offsets = part.data.offsets
    np.testing.assert_allclose(
        within_queries(before, offsets, weight), within_queries(after, offsets, weight), atol=1e-6
    )
