"""What README.md and docs/ show works when pasted: Python blocks run, and so do the commands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[object]:
    found: list[object] = []
    for page in PAGES:
        for number, (language, text) in enumerate(BLOCK.findall(page.read_text())):
            if language == kind:
                found.append(pytest.param(text, id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize("text", blocks("python"))
def test_python_blocks_run(text: str, tmp_path: Path) -> None:
    result = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("text", blocks("console"))
def test_commands_run(text: str, tmp_path: Path) -> None:
    for line in text.splitlines():
        if line.startswith("$ saferank"):
            command = [sys.executable, "-m", "saferank", *shlex.split(line, comments=True)[2:]]
            result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
            assert result.returncode == 0, result.stderr


def test_every_page_that_is_linked_is_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
