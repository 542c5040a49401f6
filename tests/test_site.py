"""The site builds strictly (links and anchors are checked), reads without a network, and documents what is public."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import griffe
import mkdocs_hooks
import pytest
from mkdocs.exceptions import PluginError

import saferank
from saferank.engine import plackett_luce

ROOT = Path(__file__).parents[1]


def test_the_site(tmp_path: Path) -> None:
    """Built once, strictly: MkDocs checks links and anchors; the rest is checked on the pages."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.name: page.read_text() for page in tmp_path.glob("*.html")}
    names = [f"saferank.{name}" for name in saferank.__all__]
    names += [f"saferank.engine.plackett_luce.{name}" for name in plackett_luce.__all__]
    assert [name for name in names if f'id="{name}"' not in pages["api.html"]] == []
    scripts = [script.stem for script in (ROOT / "benchmarks").glob("*.py")]
    assert [script for script in scripts if f'id="{script}py"' not in pages["benchmarks.html"]] == []
    quoting = 'href="guarantees.html#how-much-data-it-needs"'  # a place that quotes benchmarks/certify.py
    assert quoting in pages["benchmarks.html"]
    assert len(pages) > 20
    for name, page in pages.items():  # nothing is fetched when it is read
        tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)
        assert (name, [tag for tag in tags if re.search(r"(?:src|href)=\"?(?:https?:)?//", tag)]) == (name, [])


def test_a_public_name_without_docstring_ends_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    code = 'class A:\n    """An A."""\n    def f(self): ...\n    def _g(self): ...\n\ndef b(): ...\n'
    with griffe.temporary_visited_module(code) as module:
        assert list(mkdocs_hooks.undocumented(module["A"], "A")) == ["A.f"]
        assert list(mkdocs_hooks.undocumented(module["b"], "b")) == ["b"]
        handler = SimpleNamespace(get_options=lambda options: options, collect=lambda _name, _options: module["b"])
        plugins = {"mkdocstrings": SimpleNamespace(get_handler=lambda _: handler)}
        monkeypatch.setattr(mkdocs_hooks, "PUBLIC", {"saferank": ROOT / "src/saferank/__init__.py"})
        with pytest.raises(PluginError):
            mkdocs_hooks.on_env(None, SimpleNamespace(plugins=plugins))  # type: ignore[arg-type]


def test_a_public_name_that_the_reference_lacks_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module.py").write_text('__all__ = ["new"]\n')
    monkeypatch.setattr(mkdocs_hooks, "PUBLIC", {"saferank": tmp_path / "module.py"})
    with griffe.temporary_visited_module('def new():\n    """New."""\n') as module:
        handler = SimpleNamespace(get_options=lambda options: options, collect=lambda _name, _options: module["new"])
        plugins = {"mkdocstrings": SimpleNamespace(get_handler=lambda _: handler)}
        with pytest.raises(PluginError, match=r"saferank\.new"):
            mkdocs_hooks.on_env(None, SimpleNamespace(plugins=plugins))  # type: ignore[arg-type]


def test_sections_that_quote_a_script_are_found_outside_blocks() -> None:
    page = (
        "# Page\n\n```sh\n# no heading\n```\n\n## The `first` part\n\npython benchmarks/x.py twice: benchmarks/x.py\n"
    )
    assert mkdocs_hooks.quotes("page.md", page, "x.py") == ["[Page: The `first` part](page.md#the-first-part)"]
    assert mkdocs_hooks.quotes("page.md", page, "y.py") == []
