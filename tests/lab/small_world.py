"""The world of `synthetic:small`, made once for all the tests that look at it."""

from functools import cache

from saferank.datasets.dataset import Dataset
from saferank.datasets.synthetic import synthetic_dataset
from saferank.lab.world import World, make_world, prepare
from saferank.learning.settings import TrainingSettings
from saferank.learning.training_loop import one_thread

QUICK = TrainingSettings(epochs=4, patience=4)


@cache
def small_dataset() -> Dataset:
    return prepare(synthetic_dataset("small"))


@cache
def small_world() -> World:
    with one_thread():
        return make_world(small_dataset(), seed=1)
