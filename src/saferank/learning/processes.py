"""Training in several processes: each has a share of the queries of every step, and all take the same step.

The processes talk over the loopback interface (PyTorch's gloo). Features are mapped from one file, so that they are in
memory once. A query is never split, and sums over queries are added up over the processes: the result is that of one
process, up to the order in which numbers are added.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from saferank.engine.errors import SaferankError
from saferank.engine.objectives.objective import Objective
from saferank.engine.types.ranking_data import RankingData
from saferank.learning.settings import TrainingSettings

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

Array = NDArray[Any]
Problem = tuple[RankingData, Objective]


@dataclass(frozen=True)
class Team:
    """This process among those that train together."""

    place: int = 0
    size: int = 1

    def share(self, queries: Array) -> Array:
        """Return the queries that are this process's to work on."""
        mine: Array = queries[self.place :: self.size]
        return mine

    def add_up(self, values: Array) -> Array:
        """Return the sum of the values over all processes."""
        if self.size == 1:
            return values
        total = torch.from_numpy(np.ascontiguousarray(values))
        torch.distributed.all_reduce(total)
        return total.numpy()

    def add_up_gradients(self, scorer: torch.nn.Module) -> None:
        """Replace the gradients of the parameters by their sums over all processes."""
        if self.size > 1:
            for parameter in scorer.parameters():
                torch.distributed.all_reduce(parameter.grad)


ALONE = Team()


@contextmanager
def team_of(
    scorer: torch.nn.Module, problems: list[Problem], settings: TrainingSettings, *, keep_start: bool
) -> Iterator[Team]:
    """Start the other processes; this one is the first. They end when training does, or when one of them fails.

    There are no more than have a query each of every batch.
    """
    size = min(settings.processes, *(_smallest_batch(objective, settings.batch) for _, objective in problems))
    if size <= 1:
        yield ALONE
        return
    with tempfile.TemporaryDirectory(prefix="saferank-") as folder:
        lighter = [_without_features(problem, Path(folder) / f"{place}.npy") for place, problem in enumerate(problems)]
        context = multiprocessing.get_context("spawn")
        others = [
            context.Process(target=_join, args=(place, size, folder, scorer, lighter, settings, keep_start))
            for place in range(1, size)
        ]
        try:
            for process in others:
                process.start()
            with _together(0, size, folder):
                yield Team(0, size)
        except RuntimeError as error:  # of PyTorch: another process is gone
            raise SaferankError(f"one of the {size} processes died ({_codes(others)}); try fewer.") from error
        finally:
            for process in others:
                process.join(timeout=10)
                process.kill()


def _smallest_batch(objective: Objective, batch: int) -> int:
    queries = len(objective.active)
    return queries // max(1, math.ceil(queries / batch))


def _codes(processes: Sequence[BaseProcess]) -> str:
    return ", ".join(f"process {place}: {process.exitcode}" for place, process in enumerate(processes, 2))


def _without_features(problem: Problem, file: Path) -> tuple[RankingData, Objective, Path]:
    data, objective = problem
    np.save(file, data.features)
    return RankingData(np.empty((data.documents, 0), np.float32), data.offsets), objective, file


@contextmanager
def _together(place: int, size: int, folder: str) -> Iterator[None]:
    if sys.platform.startswith("linux"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    where = (Path(folder) / "store").as_uri()
    torch.distributed.init_process_group("gloo", where, rank=place, world_size=size)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def _join(
    place: int,
    size: int,
    folder: str,
    scorer: torch.nn.Module,
    lighter: list[tuple[RankingData, Objective, Path]],
    settings: TrainingSettings,
    keep_start: bool,
) -> None:
    """Take part in training, as a process that was started for it."""
    import signal

    from saferank.learning.training_loop import maximise

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the first process's to handle
    os.environ["SAFERANK_THREADS"] = "1"
    problems = [
        (replace(data, features=np.load(file, mmap_mode="r"), check_finite=False), objective)
        for data, objective, file in lighter
    ]
    own = deepcopy(scorer)  # what PyTorch hands over shares its memory with the first process
    with _together(place, size, folder):
        maximise(own, problems, settings, Team(place, size), keep_start=keep_start)
