"""Trust bias: the same clicks for every choice of what relevance 0 and 1 mean, and one choice among them."""

import numpy as np
import pytest

from saferank.engine.click_models.trust_bias import TrustBias


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (0.4, 0.1), (2.5, -0.3)])
def test_every_affine_change_of_relevance_has_the_same_normal_form(scale: float, shift: float) -> None:
    alpha, beta = np.array([0.3, 0.2, 0.1]), np.array([0.6, 0.1, 0.02])
    found = TrustBias(alpha * scale, beta + alpha * shift).normalised()
    # low = -min(0.6 / 0.3, 0.1 / 0.2, 0.02 / 0.1) = -0.2, high = (1 - 0.6) / 0.3
    np.testing.assert_allclose(found.alpha, alpha * (0.4 / 0.3 + 0.2))
    np.testing.assert_allclose(found.beta, [0.6 - 0.3 * 0.2, 0.1 - 0.2 * 0.2, 0.0], atol=1e-12)
    assert found.examination[0] == pytest.approx(1.0)


def test_normalised_clicks_are_the_same_with_another_relevance_in_the_same_order() -> None:
    given = TrustBias(np.array([0.3, 0.2, 0.1]), np.array([0.6, 0.1, 0.02]))
    found, relevance = given.normalised(), np.array([0.2, 0.25, 0.9])
    moved = (relevance - -0.2) / (0.4 / 0.3 + 0.2)
    np.testing.assert_allclose(np.outer(moved, found.alpha) + found.beta, np.outer(relevance, given.alpha) + given.beta)


def test_position_based_clicks_have_no_trust_and_begin_with_1() -> None:
    found = TrustBias(np.array([0.5, 0.2, 0.1]), np.zeros(3)).normalised()
    np.testing.assert_allclose(found.alpha, [1.0, 0.4, 0.2])
    np.testing.assert_array_equal(found.beta, 0.0)
