"""Where jobs run: in processes of this machine, or on a Dask cluster."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from saferank.engine.errors import UsageError

Workers = tuple[Executor, Callable[[], int]]
"""What runs jobs, and how many at a time, which may change on a cluster."""


def workers(processes: int, dask: str | None = None) -> AbstractContextManager[Workers]:
    """Return so many processes, or the cluster of a Dask scheduler."""
    return _processes(processes) if dask is None else _cluster(dask)


@contextmanager
def _processes(count: int) -> Iterator[Workers]:
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_start)
    try:
        yield pool, lambda: count
    finally:
        for process in list(pool._processes.values()):  # what they were at is started anew another time
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle


@contextmanager
def _cluster(scheduler: str) -> Iterator[Workers]:
    """A worker that is lost costs nothing but time: its scheduler gives the job to another one."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise UsageError("--dask needs the package distributed; install saferank[dask].") from error
    try:
        client = distributed.Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        message = f"--dask {scheduler}: no scheduler answers there; start `dask scheduler`, or correct the address."
        raise UsageError(message) from error
    try:
        executor = client.get_executor(pure=False)
        yield executor, lambda: max(1, sum(client.ncores().values()))
        executor.shutdown(wait=False)
    finally:
        client.close()


def one_thread() -> None:
    """Let the job have one thread: as many jobs run side by side as there are cores."""
    import torch

    os.environ["SAFERANK_THREADS"] = "1"
    torch.set_num_threads(1)
