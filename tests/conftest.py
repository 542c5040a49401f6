import fcntl
import gc
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
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


def pytest_collection_finish() -> None:
    """What was imported stays to the end, and need not be looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else DuckDB complains at the end of what was not collected


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


@pytest.fixture(scope="module", autouse=True)
def _each_thing_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Count and diagnose a log, and draw a chart, once for a module, where they only lead to what is tested.

    Tests that are about counting (tests/logs), diagnosing (tests/doctor) or drawing (tests/report) do without.
    """
    about = request.path.parent.name
    with pytest.MonkeyPatch.context() as patch:
        if about != "logs":
            from tests.counted_logs import counted_once

            patch.setattr("saferank.logs.load_log.aggregate", counted_once)
        if about != "doctor":
            from tests.diagnosed_logs import diagnosed_once

            diagnosed = diagnosed_once()
            for module in ("saferank.verdict.log_doubts", "saferank.ranker"):
                patch.setattr(f"{module}.diagnose", diagnosed)
        if about != "report":
            from tests.drawn_charts import PAGES, drawn_once

            drawn = drawn_once()
            for module in PAGES:
                patch.setattr(f"saferank.report.{module}.chart_svg", drawn)
        yield


def shorten_training(patch: pytest.MonkeyPatch) -> None:
    from saferank.lab import world
    from saferank.learning import boosting, start

    patch.setattr("saferank.learning.climb.STOPS", (1, 3, 9, 27))
    patch.setattr("saferank.learning.relevance.MOST_TREES", 30)
    patch.setattr("saferank.learning.learn.boost", partial(boosting.boost, most_trees=20))
    patch.setattr(start, "LINEAR", replace(start.LINEAR, epochs=3, least_steps=20))
    patch.setattr(start, "MOST_TREES", 10)
    patch.setattr("saferank.doctor.leaking_features.WINDOWS", (7,))
    patch.setattr(world, "LOGGING_TRAINING", replace(world.LOGGING_TRAINING, epochs=4))


@pytest.fixture
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short paths of trees, and few epochs for models of the logging policy: for long commands, whose course is tested.

    Features that know the clicks of some last days are looked for in one window only. How well commands learn is tested
    in tests/learning and by docs/tutorial.md, and such features in tests/doctor, which do without this.
    """
    shorten_training(monkeypatch)


@pytest.fixture(scope="module")
def short_trainings() -> Iterator[None]:
    """The same for all tests of a module, and for what they share."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_training(patch)
        yield


@pytest.fixture
def few_queries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`synthetic:small` with a twentieth of its queries, and short training."""
    request.getfixturevalue("short_training")
    from saferank.datasets.synthetic import PRESETS

    small = PRESETS["small"]
    monkeypatch.setitem(PRESETS, "small", replace(small, queries=(30, 20, 20)))


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """`reproduce` with a thread in place of processes, each of which takes seconds to start."""

    @contextmanager
    def thread(*_: object) -> Iterator[tuple[ThreadPoolExecutor, Callable[[], int]]]:
        with ThreadPoolExecutor(1) as pool:
            yield pool, lambda: 1

    monkeypatch.setattr("saferank.lab.reproduce.workers", thread)
    monkeypatch.setattr("saferank.lab.reproduce.one_thread", lambda: None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository."""
    folder = Path(__file__).parents[2] / "shared/data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not here: no folder {folder}")
    return folder
