"""What docs/architecture.md promises about the house."""

from pathlib import Path

import pytest

import saferank
from saferank.learning.methods import METHODS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/saferank"
PAGE = (ROOT / "docs/architecture.md").read_text()


def test_the_engine_is_an_afternoons_reading() -> None:
    assert sum(len(file.read_text().splitlines()) for file in (SOURCE / "engine").rglob("*.py")) <= 5_000


def test_every_method_is_in_the_table() -> None:
    for method in METHODS.values():
        assert f"| `{method.name}` | {method.description} | {method.needs} |" in PAGE


def test_every_room_is_named() -> None:
    rooms = [folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()]
    assert [room for room in rooms if room not in PAGE] == []


@pytest.mark.parametrize(("page", "least"), [("architecture.md", 20), ("paper.md", 15)])
def test_every_file_that_a_page_names_is_there(page: str, least: int) -> None:
    words = {word.strip("`,.:;()") for word in (ROOT / "docs" / page).read_text().split()}
    named = [word for word in words if word.endswith(".py") and "/" in word and not word.startswith("tests/")]
    assert len(named) > least
    assert [name for name in named if not (SOURCE / name).exists()] == []


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(saferank.__all__) == dir(saferank)
    for name in saferank.__all__:
        assert len(getattr(saferank, name).__doc__ or "") > 40, name
