import numpy as np
import pytest

from saferank.engine.plackett_luce.grid import kth_largest, longest_list


@pytest.mark.parametrize("k", [1, 5, 32, 33, 60, 100])
@pytest.mark.parametrize("documents", [1, 2, 40, 60, 75])
@pytest.mark.parametrize("distinct", [3, 1000])
def test_kth_largest_of_the_finite_scores_is_that_of_sorting(k: int, documents: int, distinct: int) -> None:
    rng = np.random.default_rng([k, documents, distinct])
    for _ in range(5):
        scores = rng.integers(0, distinct, documents) / 7.0
        scores[rng.random(documents) < 0.2] = -np.inf
        scores[0] = 1.5
        finite = sorted(scores[scores > -np.inf], reverse=True)
        before = scores.copy()
        assert kth_largest(scores, k) == finite[min(k, len(finite)) - 1]
        np.testing.assert_array_equal(scores, before)


def test_longest_list() -> None:
    assert longest_list(np.array([0, 3, 3, 10, 12])) == 7
