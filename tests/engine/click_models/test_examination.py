import numpy as np
import pytest

from saferank.engine.click_models.examination import inverse_rank
from saferank.engine.errors import UsageError


def test_inverse_rank() -> None:
    np.testing.assert_allclose(inverse_rank(), [1, 1 / 4, 1 / 9, 1 / 16, 1 / 25])
    np.testing.assert_allclose(inverse_rank(3, 1.0), [1, 1 / 2, 1 / 3])
    np.testing.assert_array_equal(inverse_rank(2, 0), [1, 1])
    for wrong in ((0, 1.0), (5, -1.0)):
        with pytest.raises(UsageError):
            inverse_rank(*wrong)
