"""--json: one object on standard output, strict JSON, with the numbers of the screen and the same exit code."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main

from saferank.cli.json_output import json_text
from saferank.cli.main import app
from saferank.plan.make_plan import make_plan
from saferank.plan.plan import Plan
from saferank.verdict.certificate import Verdict
from tests.cli.running import Call
from tests.verdict.small_log import linear_policy, small_log

FIT = "--scorer", "linear", "--method", "exposure-crm", "--epochs", "1"
LOG = "log.parquet", "--features", "features.parquet"
CALLS: dict[str, list[str]] = {
    "data": ["synthetic:small"],
    "simulate": ["synthetic:small", "--interactions", "300", "--out", "new.parquet"],
    "aggregate": ["log.parquet", "--out", "stats"],
    "doctor": [*LOG],
    "plan": [*LOG],
    "fit": [*LOG, "--out", "fitted", *FIT],
    "split": ["log.parquet", "--out", "train.parquet"],
    "certify": ["model", *LOG, "--serve-as", "sampled"],
    "report": ["model"],
    "rank": ["model", "features.parquet", "--ignore", "logging_score", "--out", "ranked.parquet"],
    "export": ["model", "--to", "onnx", "--out", "model.onnx"],
}
"""The other two, demo and reproduce, are in the tests of their own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, world = tmp_path_factory.mktemp("json"), small_log()
    world.write(folder / "log.parquet", 3_000)
    world.write_features(folder / "features.parquet")
    linear_policy(0.3, 0.5).save(folder / "model")
    return folder


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_every_command_has_it() -> None:
    group: Any = typer.main.get_command(app)
    assert set(CALLS) | {"demo", "reproduce"} == set(group.commands)
    for command in group.commands.values():
        assert any("--json" in param.opts for param in command.params), command.name


Numbers = Callable[[dict[str, Any]], list[str]]
ON_SCREEN: dict[str, Numbers] = {
    "data": lambda made: (
        [f"{made['splits']['train'][name]:,}" for name in ("queries", "documents")]
        + [f"{share:.1%}" for share in made["splits"]["test"]["labels"].values()]
    ),
    "simulate": lambda made: [f"{made[name]:,}" for name in ("interactions", "queries_issued", "shown", "clicks")],
    "aggregate": lambda made: [f"{made['parts'][part]['clicks']:,}" for part in ("train", "validation", "certify")],
    "doctor": lambda made: [
        f"{made['traffic']['clicks']:,}",
        *(f"{share:.2%}" for share in made["click_through"]),
        f"effective clicks {made['summary']['effective_clicks']:,.0f}",
        f"never shown {made['summary']['never_shown']:.0%}",
    ],
    "plan": lambda made: [f"{made['interactions']:,}", f"{made['click_rate']:.3f}"],
    "fit": lambda made: (
        [f"{row[name]:.4f}" for row in made["comparison"] for name in ("estimate", "lower_bound")]
        + [f"{value:.3g}" for value in made["examination"]]
    ),
    "split": lambda made: [f"{made['impressions']:,}", f"{made['held_out']:,}", made["certify"][-1]],
    "certify": lambda made: [f"{made[name]:+.5f}" for name in ("improvement", "lower", "upper")],
    "report": lambda made: [made["kind"], made["out"]],
    "rank": lambda made: [f"{made['documents']:,}", made["serve_as"]],
    "export": lambda made: [made["out"], made["to"], f"{made['documents']} golden", f"{made['difference']:.0e}"],
}


@pytest.mark.parametrize("command", CALLS)
@pytest.mark.usefixtures("few_queries")
def test_one_object_with_the_numbers_of_the_screen(
    command: str, folder: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    calls = [*CALLS[command]]
    if command == "certify":  # each look at the same data has less of delta
        calls += ["--ledger"]
    screen = saferank(command, *calls, *(["one.json"] if command == "certify" else []))
    told = saferank(command, *calls, *(["two.json"] if command == "certify" else []), "--json")
    assert told.exit_code == screen.exit_code, told.err
    assert screen.exit_code in ((0, 3, 4) if command == "certify" else (0,)), screen.err
    made = strict(told.out)
    numbers = ON_SCREEN[command](made)
    assert numbers
    shown = re.sub(r"\s+", " ", screen.out)
    assert [number for number in numbers if number not in shown] == []


def test_a_watch_says_its_looks_elsewhere(folder: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("time.sleep", lambda _: None)
    watch = ["--watch", "--looks", "1", "--ledger", "watched.json", "--json"]
    ran = saferank("certify", *CALLS["certify"], *watch)
    verdict = strict(ran.out)["verdict"]
    assert ran.exit_code == {"DEPLOY": 0, "KEEP": 3, "MORE DATA": 4}[verdict]
    assert verdict in ran.err


def test_plan_takes_a_file_or_none(folder: Path, saferank: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is planned is planned once: the calls differ in where they write it."""
    monkeypatch.chdir(folder)
    planned: list[Plan] = []

    def once(*arguments: Any, **options: Any) -> Plan:
        planned.extend([] if planned else [make_plan(*arguments, **options)])
        return planned[0]

    monkeypatch.setattr("saferank.plan.make_plan.make_plan", once)
    printed = [
        saferank("plan", *more) for more in ([*LOG, "--json"], ["--json", *LOG[1:], LOG[0]], [*LOG, "--json", "-"])
    ]
    assert [ran.exit_code for ran in printed] == [0, 0, 0]
    values = [strict(ran.out) for ran in printed]
    ran = saferank("plan", *LOG, "--json", "plan.json")
    assert ran.out != ""
    assert values == [{"out": "plan.html", **strict((folder / "plan.json").read_text())}] * 3
    before = (folder / "features.parquet").read_bytes()
    assert saferank("plan", "log.parquet", "--json", "features.parquet").exit_code == 2
    assert (folder / "features.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["data", "nowhere"], {"kind": "DataError", "exit_code": 1, "file": "nowhere"}),
        (["plan", "log.csv"], {"kind": "DataError", "exit_code": 1, "file": "log.csv", "column": "position"}),
        (
            ["doctor", "good.csv", "--features", "features.csv"],
            {"kind": "DataError", "exit_code": 1, "file": "features.csv", "row": 1, "column": "price"},
        ),
        (["data", "synthetic:tiny"], {"kind": "UsageError", "exit_code": 2}),
        (["doctor", "log.csv", "--cutoff", "none"], {"kind": "BadParameter", "exit_code": 2}),
        (["rank", "--config", "none.toml"], {"kind": "ConfigError", "exit_code": 2, "file": "none.toml"}),
        (["dat"], {"kind": "UsageError", "exit_code": 2}),
    ],
)
def test_an_error_is_an_object_too(
    arguments: list[str], expected: dict[str, Any], saferank: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good = "impression_id,query_id,document_id,position,click\na,q,d,1,1\n"
    Path("good.csv").write_text(good)
    Path("log.csv").write_text(good + "b,q,d,0,0\n")
    Path("features.csv").write_text("query_id,document_id,price\nq,d,1\nq,e,inf\n")
    plain, told = saferank(*arguments), saferank(*arguments, "--json")
    found = strict(told.out)["error"]
    message = found.pop("message")
    assert found == expected
    assert told[::2] == plain[::2] == (expected["exit_code"], told.err)  # the screen says the same
    assert re.sub(r"\W", "", message) in re.sub(r"\W", "", told.err)
    assert plain.out == ""


def test_an_error_is_an_object_if_the_configuration_asks_for_json(
    saferank: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saferank.toml").write_text("[data]\njson = true\n")
    assert strict(saferank("data", "synthetic:tiny").out)["error"]["exit_code"] == 2


def test_values_of_all_kinds() -> None:
    values = {
        "verdict": Verdict.DEPLOY,
        "file": Path("a/b"),
        "rows": (np.float32(0.5), np.array([1.0, np.nan]), {np.int64(3): np.True_}),
        "none": None,
    }
    expected = {"verdict": "DEPLOY", "file": "a/b", "rows": [0.5, [1.0, None], {"3": True}], "none": None}
    assert strict(json_text(values)) == expected
