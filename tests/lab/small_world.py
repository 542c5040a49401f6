"""The world of `synthetic:small`, made once for all the tests that look at it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

from saferank.datasets.dataset import Dataset
from saferank.datasets.synthetic import synthetic_dataset
from saferank.lab.world import World, make_world, prepare
from saferank.learning.settings import TrainingSettings

QUICK = TrainingSettings(epochs=4, patience=4)


@cache
def small_dataset() -> Dataset:
    return prepare(synthetic_dataset("small"))


@cache
def small_world() -> World:
    with one_thread():
        return make_world(small_dataset(), seed=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """With PyTorch on one thread: on a busy machine, threads that wait for one another take most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
