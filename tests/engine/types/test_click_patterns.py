"""Sets of clicked documents and how often each was seen."""

import re
from typing import Any

import numpy as np
import pytest

from saferank.engine.errors import DataError
from saferank.engine.types.click_patterns import ClickPatterns

PATTERNS: dict[str, Any] = {
    "query": [0, 0, 1],
    "bounds": [0, 2, 2, 3],
    "documents": [0, 2, 3],
    "interactions": [5, 7, 1],
}


def test_sums_are_those_of_the_clicked_documents() -> None:
    patterns = ClickPatterns(**PATTERNS)
    values = np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(patterns.sums(values), [1.0 + 100.0, 0.0, 1000.0])
    assert patterns.patterns == 3
    assert patterns.total_interactions == 5 + 7 + 1
    none = ClickPatterns(query=np.array([0]), bounds=[0, 0], documents=[], interactions=[2])  # type: ignore[arg-type]
    np.testing.assert_array_equal(none.sums(values), [0.0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bounds": [0, 2, 3]}, "3 patterns with 3 bounds and 3 counts."),
        ({"interactions": [1]}, "3 patterns with 4 bounds and 1 counts."),
        ({"bounds": [0, 2, 2, 4]}, "bounds of patterns must rise from 0 to the 3 clicked documents."),
        ({"bounds": [0, 2, 1, 3]}, "bounds of patterns must rise from 0 to the 3 clicked documents."),
        ({"interactions": [5, 0, 1]}, "row 1: got 0, but a pattern was seen at least once."),
        ({"segment": np.array(["a"])}, "1 values of segment for 3."),
    ],
)
def test_shapes_agree(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        ClickPatterns(**PATTERNS | changed)
