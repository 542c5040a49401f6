import ir_measures
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from saferank.engine import metrics
from tests.engine.metrics.cases import enumerated, ir_measures_values, random_case


def test_by_hand() -> None:
    scores, labels, offsets = [1.0, 3.0, 2.0, 9.0, 8.0], [1.0, 0.0, 2.0, 0.0, 0.0], [0, 3, 5]
    assert_allclose(metrics.reciprocal_rank_by_score(scores, labels, offsets), [1 / 2, 0.0])
    assert_allclose(metrics.reciprocal_rank_by_score(scores, labels, offsets, threshold=2), [1 / 2, 0.0])
    assert_allclose(metrics.reciprocal_rank_by_score(scores, labels, offsets, 1), [0.0, 0.0])


def test_ties_by_position_and_on_average() -> None:
    scores, labels, offsets = [5.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0], [0, 4]
    assert_allclose(metrics.reciprocal_rank_by_score(scores, labels, offsets, ties="position"), [1 / 3])
    on_average = metrics.reciprocal_rank_by_score(scores, labels, offsets)
    assert_allclose(on_average, [(1 / 2 + 1 / 3 + 1 / 4) / 3])
    cut = metrics.reciprocal_rank_by_score(scores, labels, offsets, 3)
    assert_allclose(cut, [(1 / 2 + 1 / 3) / 3])


@pytest.mark.parametrize("threshold", [1, 3])
@pytest.mark.parametrize("cutoff", [1, 3, 5, 20])
def test_equals_ir_measures(cutoff: int, threshold: int) -> None:
    case = random_case(cutoff)
    theirs = ir_measures_values(ir_measures.RR(rel=threshold) @ cutoff, case, larger_id_first=False)
    ours = metrics.reciprocal_rank_by_score(*case, cutoff, threshold=threshold, ties="position")
    assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("threshold", [1, 3])
@pytest.mark.parametrize("cutoff", [1, 3, 10])
def test_expectation_equals_enumeration(cutoff: int, threshold: int) -> None:
    def reciprocal_rank(ranked: list[float]) -> float:
        return next((1 / rank for rank, label in enumerate(ranked, start=1) if label >= threshold), 0.0)

    case = random_case(cutoff, queries=16, longest=6)
    case.scores[::7] = -np.inf
    ours = metrics.expected_reciprocal_rank(*case, cutoff, threshold=threshold)
    assert_allclose(ours, enumerated(case, cutoff, reciprocal_rank), rtol=1e-7, atol=1e-12)


def test_sharp_policy_ranks_by_score_with_ties_on_average() -> None:
    case = random_case(5)
    sharp = metrics.expected_reciprocal_rank(100.0 * case.scores, case.labels, case.offsets)
    assert_allclose(sharp, metrics.reciprocal_rank_by_score(*case), rtol=1e-6, atol=1e-9)


def test_one_of_two_documents_by_hand() -> None:
    weights = np.array([3.0, 2.0])
    value = metrics.expected_reciprocal_rank(np.log(weights), [1.0, 0.0], [0, 2])
    assert_allclose(value, [3 / 5 + 2 / 5 * 1 / 2], rtol=1e-8)


def test_nothing_relevant_is_zero() -> None:
    assert_array_equal(metrics.reciprocal_rank_by_score([1.0], [0.0], [0, 1]), [0.0])
    assert_array_equal(metrics.expected_reciprocal_rank([1.0], [0.0], [0, 1]), [0.0])
    assert_array_equal(metrics.expected_reciprocal_rank([-np.inf, 0.0], [1.0, 0.0], [0, 2]), [0.0])
