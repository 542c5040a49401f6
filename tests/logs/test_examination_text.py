import numpy as np
import pytest

from saferank.engine.click_models.examination import inverse_rank
from saferank.engine.errors import UsageError
from saferank.logs.examination_text import parse_examination


def test_examination_in_writing() -> None:
    np.testing.assert_array_equal(parse_examination("inverse-rank:2"), inverse_rank(5, 2.0))
    np.testing.assert_array_equal(parse_examination("inverse-rank:1", 3), [1, 1 / 2, 1 / 3])
    np.testing.assert_array_equal(parse_examination("1, 0.5,0.3"), [1, 0.5, 0.3])
    np.testing.assert_array_equal(parse_examination("0.7", 1), [0.7])


@pytest.mark.parametrize("text", ["steep", "1,,0.5", "inverse-rank:x", "inverse-rank:-1", "1,1.5", "nan"])
def test_examination_that_means_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        parse_examination(text)


def test_a_curve_without_a_power_is_a_guess() -> None:
    with pytest.raises(UsageError, match="has no power"):
        parse_examination("inverse-rank")


def test_a_list_must_agree_with_the_cutoff() -> None:
    with pytest.raises(UsageError, match="3 ranks, but the cutoff is 5"):
        parse_examination("1,0.5,0.3", 5)
