from collections.abc import Callable

import pytest

from tests.cli.running import Ran, run_here


@pytest.fixture
def saferank(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Call the command line in this process, 80 columns wide."""
    return lambda *arguments: run_here(list(map(str, arguments)), monkeypatch, capsys)
