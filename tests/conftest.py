import signal
from pathlib import Path

import pytest


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


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository."""
    folder = Path(__file__).parents[2] / "shared/data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not here: no folder {folder}")
    return folder
