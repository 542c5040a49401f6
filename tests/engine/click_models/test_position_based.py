import numpy as np
import pytest

from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.engine.errors import UsageError


def test_the_defaults_are_the_papers() -> None:
    model = PositionBasedModel()
    np.testing.assert_allclose(model.examination, [1, 1 / 4, 1 / 9, 1 / 16, 1 / 25])
    np.testing.assert_allclose(model.relevance([0, 1, 2, 3, 4]), [0.2, 0.225, 0.25, 0.275, 0.3])
    assert model.cutoff == 5


def test_other_settings() -> None:
    model = PositionBasedModel(np.array([0.9, 0.0]), relevance_slope=0.5, relevance_noise=0.0)
    np.testing.assert_array_equal(model.relevance([0, 1, 2]), [0, 0.5, 1])


def test_probabilities_lie_between_0_and_1() -> None:
    with pytest.raises(UsageError, match=r"examination\[1\] is 1.5, but a probability lies between 0 and 1"):
        PositionBasedModel(np.array([1.0, 1.5]))
    with pytest.raises(UsageError, match=r"relevance\[2\] is 1.2,"):
        PositionBasedModel().relevance([0, 1, 40])
    with pytest.raises(UsageError, match=r"relevance\[0\] is nan"):
        PositionBasedModel().relevance([np.nan])
    with pytest.raises(UsageError, match="at least one rank"):
        PositionBasedModel(np.array([]))
    with pytest.raises(UsageError, match="examination must be flat"):
        PositionBasedModel(np.ones((2, 2)))
