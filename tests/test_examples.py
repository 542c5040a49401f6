"""Examples for pipelines, the Dockerfile, and every `saferank` line of README and docs, against the command line."""

import ast
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from saferank.cli.main import app
from saferank.doctor import assumption_findings, log_findings, user_findings
from saferank.verdict import checks

ROOT = Path(__file__).parents[1]
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
EXAMPLES = sorted((ROOT / "examples").iterdir())
FINDINGS = assumption_findings, log_findings, user_findings
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?:sh|console|)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^(?:\$ |docker run .* (?=saferank ))?saferank (\w+) (.*?)(?:[;>|].*)?$", re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def check(command: str, words: list[str]) -> None:
    """Let the command parse the words, without running it; raises for an unknown option or a missing argument."""
    COMMANDS[command].make_context(command, words, ignore_unknown_options=False)


def lines_of(text: str) -> list[tuple[str, list[str]]]:
    return [(found[1], shlex.split(found[2], comments=True)) for found in LINE.finditer(text)]


def test_a_wrong_option_is_found() -> None:
    ((command, words),) = lines_of("saferank fit log --features f --out model --methd auto  # why\n")
    with pytest.raises(Exception, match="--methd"):
        check(command, words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_one(page: Path) -> None:
    for block in BLOCK.finditer(page.read_text()):
        for command, words in lines_of(block[1]):
            check(command, words)


def test_actions() -> None:
    text = (ROOT / "examples/github-actions.yml").read_text()
    steps = yaml.safe_load(text)["jobs"]["certify"]["steps"]
    scripts = [step["run"] for step in steps if "run" in step]
    for script in scripts:
        subprocess.run(["bash", "-n", "-c", script], check=True)
    found = [line for script in scripts for line in lines_of(script)]
    assert [command for command, _ in found] == ["fit", "certify", "report"]
    for command, words in found:
        check(command, words)
    deploy = next(step for step in steps if "deploy" in step.get("run", ""))
    assert deploy["if"] == "steps.verdict.outputs.code == '0'"


def test_airflow() -> None:
    tree = ast.parse((ROOT / "examples/airflow_dag.py").read_text())
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = [line for text in texts for line in lines_of(text)]
    assert [command for command, _ in found] == ["fit", "certify"]
    for command, words in found:
        check(command, words)


def test_the_page_shows_the_examples_as_they_are() -> None:
    page = (ROOT / "docs/gate.md").read_text()
    assert len(EXAMPLES) == 2
    for example in EXAMPLES:
        assert example.read_text() in page


def test_the_dockerfile() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    copied = [source for name, rest in steps if name == "COPY" for source in rest.split()[:-1]]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) == kept
    assert [source for source in copied if not (ROOT / source).exists()] == []
    runs = [rest for name, rest in steps if name == "RUN"]
    for run in runs:
        subprocess.run(["sh", "-n", "-c", run], check=True)
    (pip,) = (shlex.split(run) for run in runs if run.startswith("pip "))
    assert pip[pip.index("-c") + 1] == "/src/constraints.txt"
    extras = re.fullmatch(r"/src\[(.*)\]", pip[-1])
    assert extras is not None
    assert set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])
    assert ["USER", "ranker"] in steps
    assert ["ENTRYPOINT", '["saferank"]'] in steps
    assert "saferank" in PROJECT["scripts"]


def test_every_reason_for_no_verdict_is_on_the_page_of_doctor() -> None:
    page = (ROOT / "docs/doctor.md").read_text()
    sources = "".join(Path(module.__file__ or "").read_text() for module in FINDINGS)
    codes = set(re.findall(r'(?:blocking|yield found)\(\s*"([a-z-]+)"', sources))
    assert len(codes) > 10
    refused = "".join(file.read_text() for file in Path(checks.__file__ or "").parent.glob("*.py"))
    reasons = {
        code for line in re.findall(r"\bcode ?= ?(.*)", refused) for code in re.findall(r'"([a-z]+-[a-z-]+)"', line)
    }
    assert len(reasons) > 10
    tables = [table.splitlines() for table in page.split("\n## ")]
    listed = [
        {code for row in rows if row.startswith("| `") for code in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
        for rows in tables
    ]
    assert codes in listed
    assert reasons - codes in listed
