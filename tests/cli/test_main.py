import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from saferank import __version__
from saferank.cli.main import app
from saferank.datasets import dataset
from saferank.engine.errors import DataError, SaferankError, UsageError
from tests.cli.running import Call, run_python

HEAVY = ("torch", "numba", "ibis", "altair", "duckdb", "pyarrow")
NAME_HEAVY = f"print('heavy:', *sorted(set(sys.modules) & set({HEAVY})), file=sys.stderr)"


def test_help_teaches() -> None:
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert "Learn a better ranker from clicks. Never ship a worse one." in result.output
    assert "saferank data synthetic:small" in result.output
    path = [result.output.index(f"saferank {command} ") for command in ("demo", "doctor", "fit", "rank", "aggregate")]
    assert path == sorted(path)  # in the order in which one needs them
    assert max(map(len, result.output.splitlines())) <= 80


COMMANDS = [command.callback.__name__ for command in app.registered_commands if command.callback is not None]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    assert "…" not in result.output  # no option and no word is cut
    assert f"saferank {command} " in result.output.split("Usage:")[1].split("\n", 1)[1]


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"saferank {__version__}\n"


def test_installed_command() -> None:
    command = shutil.which("saferank", path=str(Path(sys.executable).parent))
    assert command is not None
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"saferank {__version__}\n"


@pytest.mark.parametrize("statement", ["import saferank.engine.metrics", "run()"])
def test_imports_and_help_are_light(statement: str) -> None:
    script = f"""
import sys, saferank
from saferank.cli.main import run
sys.argv = ["saferank", "--help"]
try:
    {statement}
finally:
    {NAME_HEAVY}
"""
    assert run_python("-c", script).err == "heavy:\n"


def test_error_of_a_user_is_a_message_and_no_stack_trace() -> None:
    ran = run_python("-c", "from saferank.cli.main import run; run()", "data", "synthetic:tiny")
    assert ran.exit_code == 2
    assert ran.out == ""
    assert ran.err.startswith("Error: no synthetic data set is called 'tiny'")
    assert "Traceback" not in ran.err
    assert all(len(line) <= 80 for line in ran.err.splitlines())


@pytest.mark.parametrize(
    ("error", "exit_code", "text"),
    [
        (UsageError("no such preset."), 2, "Error: no such preset.\n"),
        (UsageError("leave --unit out."), 2, "Error: leave --unit out.\n"),
        (SaferankError("[red] is not markup here"), 1, "Error: [red] is not markup here\n"),
        (
            DataError("got 0, but positions count from 1.", file="a" * 90 + ".parquet", row=4, column="position"),
            1,
            "Error:\n" + "a" * 90 + ".parquet,\nrow 4, column 'position': got 0, but positions count from 1.\n",
        ),
    ],
)
def test_exit_code_and_text_of_an_error(
    error: SaferankError, exit_code: int, text: str, saferank: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> None:
        raise error

    monkeypatch.setattr(dataset, "load_dataset", fail)
    assert saferank("data", "anything") == (exit_code, "", text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["dat"], "No such command 'dat'"),
        (["data"], "Missing argument 'DATA'"),
        (["demo", "--few", "0"], "Invalid value for '--few'"),
        (["demo", "--seed", str(10**30)], "Invalid value for '--seed'"),
    ],
)
def test_wrong_call(arguments: list[str], text: str, saferank: Call) -> None:
    ran = saferank(*arguments)
    assert ran.exit_code == 2
    assert text in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(("sent", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_query_that_is_interrupted_raises_an_error_of_its_own(
    sent: signal.Signals, exit_code: int, saferank: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def query(_: str) -> None:
        try:
            signal.raise_signal(sent)
        except BaseException as error:  # as a database does
            raise RuntimeError("Query interrupted") from error

    monkeypatch.setattr(dataset, "load_dataset", query)
    assert saferank("data", "anything").exit_code == exit_code
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_as_a_module() -> None:
    assert run_python("-m", "saferank", "--version") == (0, f"saferank {__version__}\n", "")


def test_shell_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_SAFERANK_COMPLETE": "complete_bash", "COMP_WORDS": "saferank re", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    ran = run_python("-c", "import sys; sys.argv = ['saferank']; from saferank.cli.main import run; run()")
    assert (ran.exit_code, ran.out.split()) == (0, ["report", "reproduce"])
