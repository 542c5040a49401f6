"""`saferank.toml`: what it sets, what wins over it, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from saferank.cli.config import (
    KINDS,
    Config,
    ConfigError,
    Option,
    command_options,
    read_config,
    unless_common,
    with_columns,
)
from saferank.cli.main import app
from tests.cli.running import Call

Write = Callable[[str], Path]
GROUP: Any = typer.main.get_command(app)
COMMANDS = GROUP.commands


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the file of a project beside the folder in which commands run."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def write(text: str) -> Path:
        file = tmp_path / "project" / "saferank.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    return write


def test_options_of_commands() -> None:
    fit = {option.parameter: option for option in command_options(COMMANDS["fit"])}
    assert fit["log"] == Option("log", ("log",), str, is_path=True)
    assert fit["constant"] == Option("constant", ("constant", "bound"), str, ("proven", "paper"))
    assert fit["out"] == Option("out", ("out",), str, is_path=True)
    assert fit["earlier"].kind is list
    for command in COMMANDS.values():
        options = command_options(command)
        assert len(options) == len(command.params)
        assert {option.kind for option in options} <= set(KINDS)


def test_tables(write: Write) -> None:
    config = read_config(
        write(
            """
            [columns]
            click = "clicked"
            [common]
            log = "log.parquet"
            delta = 1
            on_bad_rows = "drop"
            examination = [1, 0.5]
            [fit]
            bound = "paper"
            delta = 0.1
            earlier = ["old/*.parquet", "duckdb://a.db/log"]
            features = "synthetic:small"
            missing = 0
            no-log1p = true
            out = "/models/new"
            """
        ),
        COMMANDS,
    )
    folder = write("").parent
    log = str(folder / "log.parquet")
    shared = {"log": log, "on_bad_rows": "drop", "examination": "1,0.5"}
    assert config.columns == {"click": "clicked"}
    assert config.values["doctor"] == shared
    assert config.values["certify"] == {**shared, "delta": 1}
    assert config.values["report"] == {"log": log, "on_bad_rows": "drop"}
    assert config.values["demo"] == {}
    assert config.values["fit"] == {
        **shared,
        "constant": "paper",
        "delta": 0.1,
        "earlier": [str(folder / "old/*.parquet"), f"duckdb://{folder}/a.db/log"],
        "features": "synthetic:small",
        "missing": "0",
        "no_log1p": True,
        "out": "/models/new",
    }
    assert "delta" in config.common["certify"]
    assert "delta" not in config.common["fit"]


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("[certfy]\n", "certfy", "certify"),
        ("[fit]\nlerning-rate = 0.1", "fit.lerning-rate", "fit.learning-rate"),
        ("[common]\nfeature = 'f'", "common.feature", "common.features"),
        ("[common]\nout = 'model'", "common.out", None),
        ("[common]\nbound = 'betting'\n[fit]\nbound = 'betting'", "fit.bound", None),
        ("[fit]\nlayout = 3", "fit.layout", None),
        ("[fit]\ndelta = '0.1'", "fit.delta", None),
        ("[fit]\nepochs = 1.5", "fit.epochs", None),
        ("[fit]\nepochs = true", "fit.epochs", None),
        ("[fit]\ncompare = 1", "fit.compare", None),
        ("[fit]\nearlier = [1]", "fit.earlier", None),
        ("[fit]\nscorer = 'gbd'", "fit.scorer", "gbdt"),
        ("[columns]\nclick = 1", "columns.click", None),
        ("delta = 0.1", "delta", None),
        ("[fit", None, None),
    ],
)
def test_what_is_refused_is_named(text: str, key: str | None, nearest: str | None, write: Write) -> None:
    file = write(text)
    with pytest.raises(ConfigError) as caught:
        read_config(file, COMMANDS)
    assert (caught.value.file, caught.value.key, caught.value.nearest) == (file, key, nearest)
    assert caught.value.exit_code == 2


def test_message(write: Write) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(write("[certify]\ndetla = 0.1"), COMMANDS)
    message = "certify.detla: is not an option of certify. Did you mean certify.delta?"
    assert str(caught.value) == f"{caught.value.file}, {message}"


def test_no_such_file(saferank: Call, tmp_path: Path) -> None:
    ran = saferank("--config", tmp_path / "none.toml", "data", "synthetic:small")
    assert (ran.exit_code, ran.out) == (2, "")


@pytest.mark.parametrize("way", ["option", "variable", "here"])
def test_a_command_runs_by_the_file_and_the_command_line_wins(
    way: str, write: Write, saferank: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(
        """
        [columns]
        click = "clicked"
        query_id = "nobody"
        [common]
        log = "log.csv"
        cutoff = 1
        [aggregate]
        out = "stats"
        """
    )
    (file.parent / "log.csv").write_text("impression_id,q,document_id,position,clicked\n1,a,x,1,0\n1,a,y,2,1\n")
    if way == "here":
        monkeypatch.chdir(file.parent)
    if way == "variable":
        monkeypatch.setenv("SAFERANK_CONFIG", str(file))
    options = ["--config", "../project/saferank.toml"] if way == "option" else []
    ran = saferank(*options, "aggregate", "--cutoff", "2", "--column", "query_id=q")
    assert ran.exit_code == 0, ran.err
    manifest = json.loads((file.parent / "stats" / "manifest.json").read_text())
    assert manifest["cutoff"] == 2
    assert {"click": "clicked", "query_id": "q"}.items() <= manifest["columns"].items()


class Context:
    """The part of a context that is read."""

    def __init__(self, config: Config, given: tuple[str, ...] = ()) -> None:
        self.obj, self.info_name, self.given = config, "certify", given

    def get_parameter_source(self, name: str) -> Any:
        class Source:
            pass

        source = Source()
        source.name = "COMMANDLINE" if name in self.given else "DEFAULT_MAP"  # type: ignore[attr-defined]
        return source


def test_columns_of_the_command_line_replace_those_of_the_same_name() -> None:
    context: Any = Context(Config(columns={"click": "clicked", "query_id": "q"}))
    assert with_columns(context, None) == ["click=clicked", "query_id=q"]
    assert with_columns(context, ["click=c", "position=p"]) == ["query_id=q", "click=c", "position=p"]


def test_what_commands_share_is_left_out_where_it_does_not_apply() -> None:
    config = Config(common={"certify": frozenset({"split", "cutoff"})})
    context: Any = Context(config, ("cutoff",))
    assert unless_common(context, split="a", cutoff=3, split_by="time") == [None, 3, "time"]


@pytest.mark.parametrize("where", ["README.md", "help"])
def test_the_example_is_one(where: str, write: Write) -> None:
    """What the README and --help show is understood, and names the same things."""
    if where == "help":
        shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output.split("in the folder you work in")[1]
        text = "\n".join(line.strip() for line in shown.split("╭")[0].splitlines())
    else:
        readme = (Path(__file__).parents[2] / "README.md").read_text()
        text = readme.split("```toml\n")[1].split("```")[0]
    assert len(text.strip().splitlines()) <= 10
    config = read_config(write(text), COMMANDS)
    assert config.columns == {"click": "clicked"}
    assert {"log", "features", "out"} <= set(config.values["fit"])
    assert {"log", "features", "model"} <= set(config.values["certify"])
