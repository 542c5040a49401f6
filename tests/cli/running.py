"""Run the command line as a user would: in this process, one command by itself, or in a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from saferank.cli.main import run


class Ran(NamedTuple):
    exit_code: int
    out: str
    err: str


Call = Callable[..., Ran]


def run_here(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Call the entry point, 80 columns wide."""
    monkeypatch.setattr(sys, "argv", ["saferank", *arguments])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        run()
    assert isinstance(end.value.code, int)
    return Ran(end.value.code, *capsys.readouterr())


def caller(command: Callable[..., Any]) -> Callable[..., str]:
    """Return a function that calls this command by itself and returns its output; its errors are raised."""
    app = typer.Typer()
    app.command()(command)

    def call(*arguments: object) -> str:
        texts = [str(argument) for argument in arguments]
        return CliRunner().invoke(app, texts, catch_exceptions=False, env={"COLUMNS": "80"}).output

    return call


def run_python(*arguments: str) -> Ran:
    """Run a Python process of its own."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def cells(out: str) -> dict[str, list[str]]:
    """Rows of a printed table: the first cell names the row."""
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in out.splitlines() if "│" in line]
    return {row[0]: row[1:] for row in rows}


def words(out: str) -> str:
    """The output without the line breaks of a narrow screen."""
    return " ".join(out.split())
