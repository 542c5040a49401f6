import numpy as np
import pytest

from saferank.engine.click_models.examination import inverse_rank, parse_examination
from saferank.engine.errors import UsageError


def test_inverse_rank() -> None:
    np.testing.assert_allclose(inverse_rank(), [1, 1 / 4, 1 / 9, 1 / 16, 1 / 25])
    np.testing.assert_allclose(inverse_rank(3, 1.0), [1, 1 / 2, 1 / 3])
    np.testing.assert_array_equal(inverse_rank(2, 0), [1, 1])
    with pytest.raises(UsageError, match="got cutoff 0"):
        inverse_rank(0)
    with pytest.raises(UsageError, match="got power -1"):
        inverse_rank(5, -1)


def test_examination_in_writing() -> None:
    np.testing.assert_array_equal(parse_examination("inverse-rank:2"), inverse_rank(5, 2.0))
    np.testing.assert_array_equal(parse_examination("inverse-rank:1", 3), [1, 1 / 2, 1 / 3])
    np.testing.assert_array_equal(parse_examination("1, 0.5,0.3"), [1, 0.5, 0.3])
    np.testing.assert_array_equal(parse_examination("0.7", 1), [0.7])


@pytest.mark.parametrize(
    "text", ["steep", "", "1,,0.5", "1;0.5", "inverse-rank:x", "inverse-rank:-1", "inverse-rank:nan"]
)
def test_examination_that_means_nothing(text: str) -> None:
    with pytest.raises(UsageError, match=f"^examination {text}: write inverse-rank:POWER, .* such as 1,0.5,0.3"):
        parse_examination(text)


@pytest.mark.parametrize("text", ["inverse-rank", "inverse-rank:"])
def test_a_curve_without_a_power_is_a_guess(text: str) -> None:
    with pytest.raises(UsageError, match=rf"^examination {text}: has no power\. .*only if you know it.* estimates"):
        parse_examination(text)


def test_a_list_of_examination_is_checked() -> None:
    with pytest.raises(UsageError, match=r"examination 1,0.5,0.3 is for 3 ranks, but the cutoff is 5: leave it out"):
        parse_examination("1,0.5,0.3", 5)
    with pytest.raises(UsageError, match=r"examination\[1\] is 1.5, but a probability"):
        parse_examination("1,1.5")
    with pytest.raises(UsageError, match=r"examination\[0\] is nan"):
        parse_examination("nan")
