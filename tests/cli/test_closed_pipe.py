"""A process of its own writes into a pipe that nobody reads: its exit code is still the command's."""

import os
import subprocess
import sys

import pytest

TINY = """
import typer
from rich.console import Console
from saferank.cli import main

@main.app.command()
def tiny(way: str, code: int) -> None:
    say = {"rich": Console().print, "echo": typer.echo, "print": print, "stderr": Console(stderr=True).print}[way]
    for _ in range(20):
        say("a line of a verdict " * 500)
    raise typer.Exit(code)

main.run()
"""


def run_unread(*arguments: str) -> int:
    """Run Python with stdout and stderr to a pipe whose reading end is closed; return the exit code."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run([sys.executable, *arguments], stdout=writer, stderr=writer, timeout=120).returncode
    finally:
        os.close(writer)


@pytest.mark.parametrize(("way", "code"), [("rich", 3), ("echo", 0), ("print", 4), ("stderr", 3)])
def test_the_exit_code_is_that_of_the_command(way: str, code: int) -> None:
    assert run_unread("-c", TINY, "tiny", way, str(code)) == code


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["data", "synthetic:no"], 2)])
def test_real_commands(arguments: list[str], code: int) -> None:
    assert run_unread("-m", "saferank", *arguments) == code


def test_what_is_read_is_what_was_written() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TINY, "tiny", "rich", "3"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 3
    assert done.stdout.split() == ["a", "line", "of", "a", "verdict"] * 10_000
    assert done.stderr == ""
