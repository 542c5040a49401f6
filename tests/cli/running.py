"""Run the command line as a user would, in this process or in one of its own."""

import subprocess
import sys
from typing import NamedTuple

import pytest

from saferank.cli.main import run


class Ran(NamedTuple):
    exit_code: int
    out: str
    err: str


def run_here(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Call the entry point, 80 columns wide."""
    monkeypatch.setattr(sys, "argv", ["saferank", *arguments])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        run()
    assert isinstance(end.value.code, int)
    return Ran(end.value.code, *capsys.readouterr())


def run_python(*arguments: str) -> Ran:
    """Run a Python process of its own."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def cells(out: str) -> dict[str, list[str]]:
    """Rows of a printed table: the first cell names the row."""
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in out.splitlines() if "│" in line]
    return {row[0]: row[1:] for row in rows}
