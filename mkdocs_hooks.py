"""What the site (mkdocs.yml) is made of besides docs/*.md, and what its build refuses.

README, CONTRIBUTING and CHANGELOG become pages, and README's section for one's own log a page of its own. The page of
benchmarks is made from the docstrings of benchmarks/*.py, what they printed (benchmarks/printed), and the places that
quote their figures. A public name that the reference lacks, or that has no docstring, ends the build.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from pymdownx.slugs import slugify

ROOT = Path(__file__).parent
QUICKSTART = "Five minutes on your own log"
PUBLIC = {
    "saferank": ROOT / "src/saferank/__init__.py",
    "saferank.plackett_luce": ROOT / "src/saferank/engine/plackett_luce/__init__.py",
}
"""Public modules, and the file in which their `__all__` is written."""
SLUG = slugify(case="lower")
"""Anchors of headings, as in mkdocs.yml."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    home, quickstart = home_and_quickstart((ROOT / "README.md").read_text())
    made = {
        "index.md": home,
        "quickstart.md": quickstart,
        "contributing.md": as_page((ROOT / "CONTRIBUTING.md").read_text()),
        "changelog.md": as_page((ROOT / "CHANGELOG.md").read_text()),
        "benchmarks.md": benchmarks_page(ROOT),
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Say in the reference where the public names of the engine are written, which static analysis does not find."""
    if page.file.src_uri != "api.md":
        return markdown
    entry = r"::: saferank.engine.plackett_luce.\1\n    options: {heading: saferank.plackett_luce.\1, toc_label: \1}"
    return re.sub(r"^::: saferank\.plackett_luce\.(\w+)", entry, markdown, flags=re.MULTILINE)


def on_env(env: Any, config: MkDocsConfig, **_: Any) -> Any:
    """Refuse a public name without an entry in the reference, or without a docstring."""
    handler = config.plugins["mkdocstrings"].get_handler("python")  # type: ignore[attr-defined]
    entries = set(re.findall(r"^::: (\S+)", (ROOT / "docs/api.md").read_text(), re.MULTILINE))
    names = [f"{module}.{name}" for module, file in PUBLIC.items() for name in exported(file)]
    lacking = [f"{name} is not in docs/api.md" for name in names if name not in entries]
    for name in names:
        written = name.replace("saferank.plackett_luce.", "saferank.engine.plackett_luce.")
        found = handler.collect(written, handler.get_options({}))
        lacking += [f"{one} has no docstring" for one in undocumented(found, name)]
    if lacking:
        raise PluginError("Undocumented public names:\n" + "\n".join(lacking))
    return env


def exported(file: Path) -> list[str]:
    """Return the names in `__all__` of a module, without importing it."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise PluginError(f"{file} has no __all__.")


def undocumented(found: Any, name: str) -> Iterator[str]:
    """Yield the name if it has no docstring, and its public functions and properties without one (griffe objects)."""
    if found.docstring is None:
        yield name
    if found.is_class:
        for member in found.members.values():
            described = member.is_function or "property" in member.labels
            if described and not member.name.startswith("_") and member.docstring is None:
                yield f"{name}.{member.name}"


def as_page(text: str) -> str:
    """Return a page of the repository's root with its links as they are from docs/."""
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\]\((CONTRIBUTING|CHANGELOG)\.md", lambda found: f"]({found[1].lower()}.md", text)


def home_and_quickstart(readme: str) -> tuple[str, str]:
    """Split README into the first page and its section for one's own log, which links to it."""
    found = re.search(rf"^## {QUICKSTART}\n.*?(?=^## )", readme, re.MULTILINE | re.DOTALL)
    if found is None:
        raise PluginError(f"README.md has no section '{QUICKSTART}'.")
    pointer = f"## {QUICKSTART}\n\nTwo files and five commands: [{QUICKSTART.lower()}](quickstart.md).\n\n"
    return as_page(readme.replace(found[0], pointer)), as_page(found[0].removeprefix("#"))


def benchmarks_page(root: Path) -> str:
    """Return the page of benchmarks: of each script its docstring, what it printed, and where that is quoted."""
    parts = [
        "# Benchmarks\n\nWhich script prints which figure. `make bench` runs them all and keeps what they print in "
        "`benchmarks/printed`; most end with an error where a claim does not hold. This page is made from their "
        "docstrings and from what is kept there; of a script whose output was not kept, it has the docstring alone.\n"
    ]
    home, quickstart = home_and_quickstart((root / "README.md").read_text())
    pages = {"index.md": home, "quickstart.md": quickstart}
    pages |= {page.name: page.read_text() for page in sorted((root / "docs").glob("*.md"))}
    for script in sorted((root / "benchmarks").glob("*.py")):
        text = ast.get_docstring(ast.parse(script.read_text()))
        if text is None:
            raise PluginError(f"{script} has no docstring.")
        quoted = [link for name, page in pages.items() for link in quotes(name, page, script.name)]
        where = f"Quoted in {'; '.join(quoted)}." if quoted else "Quoted nowhere."
        kept = root / "benchmarks" / "printed" / f"{script.stem}.txt"
        printed = f"\n```text\n{kept.read_text().rstrip()}\n```\n" if kept.exists() else ""
        parts.append(f"## {script.name}\n\n{text}\n\n{where}\n{printed}")
    return "\n".join(parts)


def quotes(name: str, page: str, script: str) -> list[str]:
    """Return links to the sections of a page that name the script, each once."""
    links, title, section, in_block = [], "", "", False
    for line in page.splitlines():
        in_block ^= line.startswith("```")
        if not in_block and (heading := re.match(r"(#+) (.*)", line)):
            title, section = (heading[2], "") if heading[1] == "#" else (title, heading[2])
        if re.search(rf"benchmarks/{script}\b", line):
            anchor = f"#{SLUG(section, '-')}" if section else ""
            links.append(f"[{title}{': ' if section else ''}{section}]({name}{anchor})")
    return list(dict.fromkeys(links))
