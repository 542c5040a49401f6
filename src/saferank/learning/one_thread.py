"""PyTorch on one thread while a scorer is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch work on one thread inside, and on as many as before afterwards.

    On the small matrices of a mini-batch its threads mostly wait for each other: on two busy cores, training took three
    times as long with two of them. What is worth several threads, the exposure kernel, has its own.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
