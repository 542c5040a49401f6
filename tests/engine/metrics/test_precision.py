import ir_measures
import pytest
from numpy.testing import assert_allclose

from saferank.engine import metrics
from tests.engine.metrics.cases import enumerated, ir_measures_values, random_case


def test_by_hand() -> None:
    scores, labels, offsets = [4.0, 3.0, 2.0, 1.0, 1.0, 2.0], [1.0, 0.0, 2.0, 1.0, 0.0, 1.0], [0, 4, 6]
    assert_allclose(metrics.precision_by_score(scores, labels, offsets, 3), [2 / 3, 1 / 3])
    assert_allclose(metrics.precision_by_score(scores, labels, offsets, 3, threshold=2), [1 / 3, 0.0])


def test_ties_by_position_and_on_average() -> None:
    scores, labels, offsets = [1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0, 3]
    assert_allclose(metrics.precision_by_score(scores, labels, offsets, 1, ties="position"), [0.0])
    assert_allclose(metrics.precision_by_score(scores, labels, offsets, 1), [2 / 3])


@pytest.mark.parametrize("threshold", [1, 2])
@pytest.mark.parametrize("cutoff", [1, 5, 20])
def test_equals_ir_measures(cutoff: int, threshold: int) -> None:
    case = random_case(cutoff)
    theirs = ir_measures_values(ir_measures.P(rel=threshold) @ cutoff, case, larger_id_first=True)
    ours = metrics.precision_by_score(*case, cutoff, threshold=threshold, ties="position")
    assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("cutoff", [1, 3, 10])
def test_expectation_equals_enumeration(cutoff: int) -> None:
    def precision(ranked: list[float]) -> float:
        return sum(label >= 2 for label in ranked) / cutoff

    case = random_case(cutoff, queries=12, longest=6)
    ours = metrics.expected_precision(*case, cutoff, threshold=2)
    assert_allclose(ours, enumerated(case, cutoff, precision), rtol=1e-7, atol=1e-12)


def test_sharp_policy_ranks_by_score_with_ties_on_average() -> None:
    case = random_case(5)
    sharp = metrics.expected_precision(100.0 * case.scores, case.labels, case.offsets)
    assert_allclose(sharp, metrics.precision_by_score(*case), rtol=1e-6, atol=1e-9)
