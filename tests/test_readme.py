"""What README.md and docs/ show works when pasted: Python blocks run, and so do the commands."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what a reader would run, with the line of the page that it stands on, in the order of the page."""
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start()) + 2
        if block[1] == "python":
            yield f"line {first}", [sys.executable, "-W", "error", "-c", block[2]]
            continue
        for number, line in enumerate(block[2].splitlines(), first):
            if line.startswith("$ saferank"):
                words = shlex.split(line, comments=True)[2:]
                yield f"line {number}: {line}", [sys.executable, "-m", "saferank", *words]


def test_all_blocks_are_found_in_order() -> None:
    page = "```python\nprint(1)\n```\n\n```console\n$ saferank data x  # why\nout\n$ ls\n$ saferank demo\n```\n"
    found = list(commands(page))
    assert [where for where, _ in found] == ["line 2", "line 6: $ saferank data x  # why", "line 9: $ saferank demo"]
    assert [command[-1] for _, command in found] == ["print(1)\n", "x", "demo"]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name)
def test_page_runs_from_top_to_bottom_in_one_folder(page: Path, tmp_path: Path) -> None:
    for where, command in commands(page.read_text()):
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert result.returncode == 0, f"{page.name}, {where}\n{result.stderr}"


def test_every_page_that_is_linked_is_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
