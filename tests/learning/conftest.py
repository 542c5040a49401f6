from collections.abc import Iterator

import pytest
import torch

from tests.learning.problem import Part, make_part


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """These models are so small that a second thread of PyTorch only waits, long on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="package")
def train() -> Part:
    return make_part(1)


@pytest.fixture(scope="package")
def validation() -> Part:
    return make_part(2)
