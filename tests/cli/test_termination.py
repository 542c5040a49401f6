"""SIGTERM and Ctrl-C in a process of its own: the exit code, and nothing half written left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HALF_WAY = """
import time
from pathlib import Path
from saferank.cli.main import run
from saferank.datasets import dataset
from saferank.files.atomic_write import whole_file, whole_folder
from saferank.logs.run_query import connect

def load_dataset(name):
    connection = connect()
    with whole_file(Path("log.parquet")) as file, whole_folder(Path("model")) as folder:
        file.write_text("half")
        (folder / "weights").write_text("half")
        print("ready", flush=True)
        time.sleep(60)

dataset.load_dataset = load_dataset
run()
"""


@pytest.mark.parametrize(
    ("sent", "exit_code", "word"), [(signal.SIGTERM, 143, "Terminated."), (signal.SIGINT, 130, "Interrupted.")]
)
def test_what_was_half_written_is_removed(sent: signal.Signals, exit_code: int, word: str, tmp_path: Path) -> None:
    (tmp_path / "log.parquet").write_text("old")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_WAY, "data", "anything"],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert {file.suffix for file in tmp_path.glob("*.unfinished")} == {".unfinished"}
            assert len(list(scratch.iterdir())) == 1  # the folder of the connection
            process.send_signal(sent)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, err.splitlines()[-1]) == (exit_code, word)
    assert "Traceback" not in err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.parquet", "scratch"]
    assert (tmp_path / "log.parquet").read_text() == "old"
    assert list(scratch.iterdir()) == []
