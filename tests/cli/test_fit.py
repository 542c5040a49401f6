"""The command on a small log, and what it says and writes."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from saferank.cli.fit import _chosen, _steps
from saferank.engine.click_models.position_based import PositionBasedModel
from saferank.features.load_features import with_ids
from saferank.lab.raw_log import write_raw_log
from saferank.learning.fit_policy import Step
from saferank.learning.methods import FROM_COUNTS, METHODS
from saferank.learning.training_loop import Epoch
from saferank.logs.load_log import load_log
from saferank.policy.policy import Policy
from saferank.ranker import SafeRanker
from tests.cli.running import Ran, cells, run_here, words
from tests.learning.problem import EXAMINATION, make_part, parameters
from tests.policy.made import write_features

Call = Callable[..., Ran]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with log.parquet, the same log as statistics, and features.parquet."""
    folder, part = tmp_path_factory.mktemp("inputs"), make_part(1)
    data = with_ids(replace(part.data, feature_names=("a", "b", "c", "d"), labels=part.relevance.astype(np.float32)))
    model = PositionBasedModel(EXAMINATION, relevance_slope=1.0, relevance_noise=0.0)
    write_raw_log(folder / "log.parquet", data, part.logging_scores, model, 4_000, np.random.default_rng(2))
    load_log(folder / "log.parquet").write(folder / "stats")
    write_features(folder / "features.parquet", data, production=part.logging_scores)
    return folder


@pytest.fixture
def here(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the inputs, as the current folder."""
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    request.getfixturevalue("short_training")

    def run(*arguments: str, log: str = "log.parquet") -> Ran:
        quick = "--method", "exposure-crm", "--scorer", "linear", "--epochs", "2", "--learning-rate", "0.05"
        whole = ["fit", log, "--features", "features.parquet", "--out", "model", *quick, *arguments]
        return run_here(whole, monkeypatch, capsys)

    return run


GIVEN = "--examination", "1,0.5,0.25"
KNOWN = *GIVEN, "--logging-scores", "production"

IN_PYTHON: dict[str, Any] = {
    "method": "exposure-crm",
    "scorer": "linear",
    "examination": EXAMINATION,
    "logging_scores": "production",
    "epochs": 2,
    "learning_rate": 0.05,
}


def test_a_model_a_table_and_words(here: Path, call: Call) -> None:
    ran = call(*KNOWN, "--compare")
    assert (ran.exit_code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    rows = cells(ran.out)
    assert list(rows) == ["current ranker", *(name for name in FROM_COUNTS if METHODS[name].objective is not None)]
    manifest = json.loads((here / "model" / "manifest.json").read_text())
    for policy in manifest["comparison"]["policies"]:
        assert [float(cell.rstrip("%")) for cell in rows[policy["name"]]] == pytest.approx(
            [policy["estimate"], policy["lower_bound"], policy["divergence"], 100 * policy["never_shown"]], abs=0.0051
        )
    estimates = {policy["name"]: policy["estimate"] for policy in manifest["comparison"]["policies"]}
    change = estimates["exposure-crm"] / estimates["current ranker"] - 1
    assert "model: exposure-crm." in ran.out
    assert f"{change:+.1%} relative to the current ranker" in ran.out
    assert "not a certificate" in ran.out
    assert manifest["inputs"]["log"]["source"] == "log.parquet"
    assert {file.name for file in here.iterdir()} - {"cache"} == {"features.parquet", "log.parquet", "model", "stats"}


def test_columns_of_text_are_named(here: Path, call: Call) -> None:
    features = pq.read_table(here / "features.parquet")
    titles = pa.array([f"title {row}" for row in range(len(features))])
    pq.write_table(features.append_column("title", titles), here / "features.parquet")
    assert "not features: title." in words(call(*KNOWN, log="stats").out)


def rank(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> pa.Table:
    arguments = ["rank", "model", "features.parquet", "--ignore", "production", "--out", "ranked.parquet"]
    assert run_here(arguments, monkeypatch, capsys).exit_code == 0
    return pq.read_table("ranked.parquet")


def test_text_and_missing_values_as_features(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same as features that were made by hand, also in `rank`, with a value that the model has not seen."""
    table = pq.read_table("features.parquet")
    brand = [("x", "y", None)[row % 3] for row in range(len(table))]
    holes = [None if row % 5 == 0 else value for row, value in enumerate(table["b"].to_pylist())]
    place = table.column_names.index("b")
    own = table.set_column(place, "b", pa.array(holes, pa.float32())).append_column("brand", pa.array(brand))
    pq.write_table(own, "features.parquet")
    options = (*KNOWN, "--no-compare", "--scaling", "none", "--no-log1p")
    assert call(*options, "--categorical", "brand", "--missing", "indicator", log="stats").exit_code == 0
    schema = Policy.load(here / "model").schema
    assert schema.names == ("a", "b", "c", "d", "brand=x", "brand=y", "b is missing")
    assert (schema.categories, schema.indicators) == ({"brand": ("x", "y")}, ("b",))
    refused = call("--live", "model", "--categorical", "brand,colour", log="stats")
    assert refused.exit_code == 2
    assert "--categorical colour" in refused.err
    ranked = rank(monkeypatch, capsys)
    new = own.set_column(own.column_names.index("brand"), "brand", pa.array(["new"] * len(own)))
    pq.write_table(new, "features.parquet")
    other = rank(monkeypatch, capsys)

    def by_hand(values: Sequence[str | None]) -> pa.Table:
        made = table.set_column(place, "b", pa.array([0 if hole is None else hole for hole in holes], pa.float32()))
        for value in ("x", "y"):
            made = made.append_column(f"brand={value}", pa.array([float(value == one) for one in values]))
        return made.append_column("b is missing", pa.array([float(hole is None) for hole in holes]))

    pq.write_table(by_hand(brand), "features.parquet")
    assert call(*options, log="stats").exit_code == 0
    assert rank(monkeypatch, capsys).equals(ranked)
    pq.write_table(by_hand(["new"] * len(table)), "features.parquet")
    assert rank(monkeypatch, capsys).equals(other)
    assert not other.equals(ranked)


@pytest.mark.usefixtures("here")
def test_ids_of_other_names_and_kinds(call: Call) -> None:
    for file in ("log.parquet", "features.parquet"):
        table = pq.read_table(file)
        pq.write_table(
            table.rename_columns(["sku" if name == "document_id" else name for name in table.column_names]), file
        )
    named = (*KNOWN, "--no-compare", "--column", "document_id=sku")
    assert call(*named).exit_code == 0
    log = pq.read_table("log.parquet")
    numbers = pa.array([int(document[1:]) for document in log["sku"].to_pylist()])
    pq.write_table(log.set_column(log.column_names.index("sku"), "sku", numbers), "log.parquet")
    ran = call(*named, "--on-bad-rows", "drop")
    assert ran.exit_code == 1
    for word in ("'sku'", "int64", "string", "d0", "convert"):
        assert word in words(ran.err)


def test_it_is_the_same_as_from_python(here: Path, call: Call) -> None:
    call(*KNOWN, "--no-compare", "--seed", "3", "--delta", "0.2", "--bound", "paper", "--no-log1p", "--scaling", "none")
    ranker = SafeRanker(
        **IN_PYTHON,
        seed=3,
        delta=0.2,
        constant="paper",
        log1p=False,
        scaling="none",
    ).fit("log.parquet", "features.parquet")
    policy = Policy.load(here / "model")
    assert parameters(policy.scorer) == parameters(ranker.policy.scorer)
    assert policy.schema == ranker.policy.schema
    assert policy.manifest["settings"] == ranker.policy.manifest["settings"]


def test_a_folder_of_statistics_gives_the_same_as_the_log(here: Path, call: Call) -> None:
    call(*KNOWN, "--no-compare")
    of_log = Policy.load(here / "model")
    assert call(*KNOWN, "--no-compare", log="stats").exit_code == 0
    of_statistics = Policy.load(here / "model")
    assert parameters(of_statistics.scorer) == parameters(of_log.scorer)
    assert of_statistics.manifest["inputs"]["log"]["files"] == of_log.manifest["inputs"]["log"]["files"]
    assert call("--examination", "1,0.5", log="stats").exit_code == 2  # two ranks, but three were counted


def test_chosen_features_and_those_to_ignore(here: Path, call: Call) -> None:
    def names(*arguments: str) -> tuple[str, ...]:
        assert call(*GIVEN, "--no-compare", *arguments, log="stats").exit_code == 0
        return Policy.load(here / "model").schema.names

    assert names() == ("a", "b", "c", "d", "production")
    assert names("--feature-columns", "c, a") == ("c", "a")
    assert names("--feature-columns", "c,a", "--logging-scores", "production") == ("c", "a")
    assert names("--ignore", "production,b", "--missing", "0.5") == ("a", "c", "d")
    assert Policy.load(here / "model").schema.missing == 0.5


def test_method_and_estimated_examination(here: Path, call: Call) -> None:
    ran = call("--method", "naive", "--no-compare", "--ignore", "production", log="stats")
    assert ran.exit_code == 0
    assert list(cells(ran.out)) == ["current ranker", "naive"]
    curve = ", ".join(f"{value:.3g}" for value in Policy.load(here / "model").examination)
    assert f"Examination curve, estimated from the log: {curve}." in ran.out
    assert curve.startswith("1, 0.")


def test_auto_is_gain_bound_for_a_scorer_without_trees(here: Path, call: Call) -> None:
    ran = call("--method", "auto", "--no-compare", log="stats")
    assert ran.exit_code == 0
    assert Policy.load(here / "model").manifest["settings"]["method"] == "gain-bound"
    assert "gain-bound" in cells(ran.out)


def test_other_columns_of_the_log(here: Path, call: Call) -> None:
    table = pq.read_table("log.parquet")
    pq.write_table(
        table.rename_columns(["clicked" if name == "click" else name for name in table.column_names]), "log.parquet"
    )
    assert call(*KNOWN, "--no-compare").exit_code == 1
    assert call(*KNOWN, "--no-compare", "--column", "click=clicked").exit_code == 0
    assert (here / "model").is_dir()


def test_documents_without_features(here: Path, call: Call) -> None:
    pq.write_table(pq.read_table("features.parquet").slice(1), "features.parquet")
    ran = call(*GIVEN, log="stats")
    assert ran.exit_code == 1
    assert ran.err.startswith("Error: features.parquet: ")
    assert not (here / "model").exists()
    ran = call(*GIVEN, "--on-bad-rows", "drop", "--no-compare")
    assert ran.exit_code == 0
    assert Policy.load(here / "model").inputs["shown_pairs_without_features"] == 1


def test_a_log_without_clicks(here: Path, call: Call) -> None:
    table = pq.read_table("log.parquet")
    none = pa.array([0] * len(table), pa.int8())
    pq.write_table(table.set_column(table.column_names.index("click"), "click", none), "log.parquet")
    ran = call()
    assert (ran.exit_code, ran.out) == (1, "")
    assert ran.err.startswith("Error: log.parquet: ")
    assert not (here / "model").exists()


def test_a_policy_that_is_estimated_to_be_worse_is_said_to_be(here: Path, call: Call) -> None:
    ran = call(*GIVEN, "--no-compare", "--feature-columns", "a", "--epochs", "1", "--learning-rate", "1e-6")
    manifest = json.loads((here / "model" / "manifest.json").read_text())
    logging, learned = (policy["estimate"] for policy in manifest["comparison"]["policies"])
    assert learned < 0.98 * logging
    assert "--logging-scores" in ran.out


def test_holes_are_filled_with_the_number_that_stands_for_them(
    here: Path, call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pq.read_table("features.parquet")
    holes = [None if row % 3 == 0 else value for row, value in enumerate(table["b"].to_pylist())]

    def write(values: Sequence[float | None]) -> None:
        column = pa.array(values, pa.float32())
        pq.write_table(table.set_column(table.column_names.index("b"), "b", column), "features.parquet")

    write(holes)
    ran = call(*KNOWN, log="stats")
    assert (ran.exit_code, ran.out) == (1, "")
    assert ran.err.startswith("Error: features.parquet, row 0, column 'b': ")
    assert not (here / "model").exists()
    assert call(*KNOWN, "--missing", "0.5", log="stats").exit_code == 0
    filled = Policy.load(here / "model")
    python = SafeRanker(**IN_PYTHON, missing=0.5).fit("stats", "features.parquet")
    ranked = rank(monkeypatch, capsys)
    write([0.5 if value is None else value for value in holes])
    assert call(*KNOWN, log="stats").exit_code == 0
    by_hand = Policy.load(here / "model")
    assert parameters(filled.scorer) == parameters(by_hand.scorer) == parameters(python.policy.scorer)
    assert rank(monkeypatch, capsys).equals(ranked)


def test_warnings_about_the_examination_go_to_stderr(here: Path, call: Call) -> None:
    table = pq.read_table("log.parquet")
    pq.write_table(table.filter(pc.less(table["impression_id"], 150)), "log.parquet")
    ran = call("--no-compare", "--ignore", "production")
    assert ran.exit_code == 0
    assert ran.err.startswith("Warning: ")
    assert (here / "model").is_dir()


def test_no_chance_of_a_verdict_is_foreseen_for_a_log_that_certify_refuses(here: Path, call: Call) -> None:
    trees = "--logging-scores", "production", "--method", "auto", "--scorer", "gbdt"
    assert "chance that certify" in call("--examination", "1,0.5,0.25", *trees, log="stats").out
    contradicted = call("--examination", "1,1,1", *trees, log="stats")
    assert contradicted.err.startswith("Warning: ")
    assert "Predicted" in contradicted.out
    assert "chance that certify" not in contradicted.out
    assert (here / "model").is_dir()


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["--out", "log.parquet"], 2),
        (["--missing", "zero"], 2),
        (["--column", "click"], 2),
        (["--delta", "1"], 2),
        (["--learning-rate", "0"], 2),
        (["--cutoff", "2"], 2),  # but examination is given for 3
        (["--features", "nowhere.parquet"], 1),
        (["--logging-scores", "score"], 1),
        (["--ignore", "size"], 1),
    ],
)
def test_wrong_calls(arguments: Sequence[str], exit_code: int, here: Path, call: Call) -> None:
    ran = call(*GIVEN, *arguments)
    assert (ran.exit_code, ran.out) == (exit_code, "")
    assert arguments[1] in ran.err
    assert not (here / "model").exists()


def test_where_training_stands() -> None:
    steps = {
        "exposure-crm": Step("exposure-crm", Epoch(7, 0.5, 0.1, 0.3), 0.35),
        "naive": Step("naive", Epoch(2, 0.5, 0.0, 0.3), 0.35),
    }
    console = Console(width=80, record=True)
    console.print(_steps(steps))
    rows = cells(console.export_text())
    assert rows["exposure-crm"] == ["7", "0.5000", "0.1000", "0.4000", "0.3500 (+0.0500)"]
    assert rows["naive"] == ["2", "", "", "", ""]


def test_what_training_takes_the_current_ranker_to_show_is_recorded(here: Path, call: Call) -> None:
    assert call(*GIVEN, "--logging-policy", "modelled", "--ignore", "production", log="stats").exit_code == 0
    assert Policy.load(here / "model").manifest["settings"]["logging_exposure"] == "modelled"


def test_a_current_ranker_that_is_to_be_known_needs_scores(here: Path, call: Call) -> None:
    ran = call(*GIVEN, "--logging-policy", "known")
    assert ran.exit_code == 2
    assert "--logging-scores" in ran.err
    assert not (here / "model").exists()


def test_a_low_chance_is_put_down_to_the_allowance_for_drift_if_there_is_one() -> None:
    foreseen = {"name": "9 trees", "gain": 0.1, "improvement": 0.1, "chance": 0.1, "allowance": 0.0}
    log_more, drifts, likely = (
        _chosen(foreseen | other, "auto", 0.5, None, refused=False)
        for other in ({}, {"allowance": 0.06}, {"allowance": 0.06, "chance": 0.9})
    )
    assert "log more" in log_more
    assert "allowance" not in log_more
    assert "12.0% of the clicks" in drifts
    assert "allowance" not in likely
