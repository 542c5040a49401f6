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


@pytest.mark.parametrize("examination", [[1.0, 1.5], [], [[1.0], [0.5]]])
def test_examination_is_a_flat_list_of_probabilities(examination: list[float]) -> None:
    with pytest.raises(UsageError):
        PositionBasedModel(np.array(examination))


@pytest.mark.parametrize("labels", [[0.0, 1.0, 40.0], [np.nan]])
def test_relevance_is_a_probability(labels: list[float]) -> None:
    with pytest.raises(UsageError):
        PositionBasedModel().relevance(labels)
