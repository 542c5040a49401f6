import fcntl
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # a core each: threads that wait for one another take most of the time
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Let one worker compile the large kernels while the others wait, and then find them in Numba's cache."""
    if hasattr(config, "workerinput"):
        with Path(__file__).open() as lock:  # held until it is closed
            fcntl.flock(lock, fcntl.LOCK_EX)
            compile_kernels()


def compile_kernels() -> None:
    import numpy as np

    from saferank.engine.plackett_luce import exposure, exposure_vjp, placement
    from saferank.lab.simulate import simulate

    offsets = [0, 3]
    for kind in (np.float32, np.float64):
        scores = np.zeros(3, kind)
        exposure_vjp(scores, offsets, [1.0], exposure(scores, offsets, [1.0]))
        placement(scores, offsets, 1)
    simulate(scores, offsets, scores, [1.0], 1, np.random.default_rng(0))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Ctrl-C interrupts, even where the tests were started in the background by a shell that switched it off."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own: no test may write into the user's."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SAFERANK_CACHE", str(folder))
    return folder


@pytest.fixture
def few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """`synthetic:small` with a fifth of its queries, and short paths: for long commands, whose course is tested."""
    from saferank.datasets.synthetic import PRESETS

    small = PRESETS["small"]
    monkeypatch.setitem(PRESETS, "small", replace(small, queries=(120, 40, 40)))
    monkeypatch.setattr("saferank.learning.climb.STOPS", (1, 2, 5, 12, 27, 60))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository."""
    folder = Path(__file__).parents[2] / "shared/data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not here: no folder {folder}")
    return folder
