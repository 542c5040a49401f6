"""Sets of clicked documents and how often each was seen."""

from typing import Any

import numpy as np
import pytest

from saferank.engine.errors import DataError
from saferank.engine.types.click_patterns import ClickPatterns

PATTERNS: dict[str, Any] = {
    "query": [0, 0, 1],
    "offsets": [0, 2, 2, 3],
    "documents": [0, 2, 3],
    "interactions": [5, 7, 1],
}


def test_sums_are_those_of_the_clicked_documents() -> None:
    patterns = ClickPatterns(**PATTERNS)
    values = np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(patterns.sums(values), [1.0 + 100.0, 0.0, 1000.0])
    assert patterns.patterns == 3
    assert patterns.total_interactions == 5 + 7 + 1
    none = ClickPatterns(query=np.array([0]), offsets=[0, 0], documents=[], interactions=[2])  # type: ignore[arg-type]
    np.testing.assert_array_equal(none.sums(values), [0.0])


@pytest.mark.parametrize(
    ("changed", "row"),
    [
        ({"offsets": [0, 2, 3]}, None),
        ({"interactions": [1]}, None),
        ({"offsets": [0, 2, 2, 4]}, None),
        ({"offsets": [0, 2, 1, 3]}, None),
        ({"interactions": [5, 0, 1]}, 1),
        ({"segment": np.array(["a"])}, None),
    ],
)
def test_shapes_agree(changed: dict[str, Any], row: int | None) -> None:
    with pytest.raises(DataError) as error:
        ClickPatterns(**PATTERNS | changed)
    assert error.value.row == row
