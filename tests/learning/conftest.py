from collections.abc import Iterator

import pytest

from saferank.learning.training_loop import one_thread
from tests.learning.problem import Part, make_part


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture(scope="package")
def train() -> Part:
    return make_part(1)


@pytest.fixture(scope="package")
def validation() -> Part:
    return make_part(2)
