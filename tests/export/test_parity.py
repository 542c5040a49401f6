"""Every format scores as saferank does, wherever it can hold the policy, and refuses it elsewhere."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from saferank.export.export_policy import FORMATS, TOLERATED
from saferank.export.golden import largest_difference, random_rows
from saferank.export.inputs import Inputs, scores_of
from saferank.export.refusal import CannotExport, Reason
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers.forest import Forest
from tests.export.made import NAMES, policy

EVERY = ("onnx", "lightgbm", "opensearch", "elasticsearch", "solr", "vespa")
ENGINES = ("opensearch", "elasticsearch", "solr")
SCORERS = ("linear", "mlp", "trees", "trees+linear", "trees+mlp", "trees+column")
WITH_INDICATOR: dict[str, Any] = {
    "names": (*NAMES, "stock is missing"), "missing": "indicator", "indicators": ("stock",)
}  # fmt: skip


def difference(made: Policy, to: str, documents: int = 600) -> float:
    offsets = np.arange(0, documents + 1, 20)
    rows = random_rows(made, documents, np.random.default_rng(7))
    text = FORMATS[to].encode(made, "m")
    names = Inputs.of(made.schema).names
    theirs = [FORMATS[to].scores(text, rows[first : first + 20], names) for first in offsets[:-1]]
    return largest_difference(np.concatenate(theirs), scores_of(made, rows, offsets))


def test_every_format_is_tried() -> None:
    assert set(FORMATS) == set(EVERY)


PREPARED = list(product(["trees+linear"], ["error", 0.0, -3.5, "indicator"], [True, False], ["per-query", "none"]))


@pytest.mark.parametrize(
    ("scorer", "missing", "log1p", "scaling"),
    [*PREPARED, *((scorer, "indicator", True, "per-query") for scorer in SCORERS if scorer != "trees+linear")],
)
def test_onnx_holds_every_policy(scorer: str, missing: Any, log1p: bool, scaling: str) -> None:
    more = WITH_INDICATOR if missing == "indicator" else {"missing": missing}
    assert difference(policy(scorer, log1p=log1p, scaling=scaling, **more), "onnx") <= TOLERATED


@pytest.mark.parametrize("to", EVERY)
@pytest.mark.parametrize("missing", ["error", 0.0])
@pytest.mark.parametrize("log1p", [True, False])
def test_trees_go_everywhere_with_log1p_and_thresholds_met_exactly(to: str, missing: Any, log1p: bool) -> None:
    assert difference(policy("trees", scaling="none", log1p=log1p, missing=missing), to) <= TOLERATED


@pytest.mark.parametrize("to", ["onnx", "lightgbm", "opensearch", "vespa"])
def test_a_flatter_policy_on_a_column_is_as_flat_elsewhere(to: str) -> None:
    assert difference(policy("trees+column", scaling="none", missing=0.0).at_temperature(3.0), to) <= TOLERATED


@pytest.mark.parametrize("to", EVERY)
def test_a_weighted_sum_of_raw_features_goes_everywhere(to: str) -> None:
    assert difference(policy("linear", scaling="none", log1p=False), to) <= TOLERATED


@pytest.mark.parametrize(
    ("to", "scorer", "log1p", "missing"),
    [
        ("lightgbm", "trees", True, -3.5),
        ("lightgbm", "trees", True, "indicator"),
        ("lightgbm", "trees+column", True, "indicator"),
        ("lightgbm", "trees+linear", False, "error"),
        ("vespa", "trees", True, -3.5),
        ("vespa", "linear", True, "indicator"),
        ("vespa", "linear", False, "indicator"),
        ("vespa", "linear", True, -3.5),
        ("vespa", "trees+linear", True, "indicator"),
        ("vespa", "trees+column", True, 0.0),
        ("opensearch", "linear", False, 0.0),
        ("opensearch", "trees+column", True, 0.0),
        ("elasticsearch", "trees+linear", False, 0.0),
        ("opensearch", "linear", True, 0.0),
        ("elasticsearch", "trees+linear", True, "error"),
        ("solr", "linear", True, 0.0),
        ("solr", "mlp", True, 0.0),
        ("solr", "mlp", False, 0.0),
    ],
)
def test_what_else_fits(to: str, scorer: str, log1p: bool, missing: Any) -> None:
    more = WITH_INDICATOR if missing == "indicator" else {"missing": missing}
    assert difference(policy(scorer, scaling="none", log1p=log1p, **more), to) <= TOLERATED


@pytest.mark.parametrize("to", EVERY)
def test_a_value_of_text_is_a_feature_of_0_and_1(to: str) -> None:
    made = policy(
        "trees", scaling="none", names=(*NAMES, "brand=Acme & Co"), categories={"brand": ("Acme & Co",)}
    )  # fmt: skip
    assert Inputs.of(made.schema).names[-1] == "brand=Acme & Co"
    assert difference(made, to) <= TOLERATED


REFUSED: list[tuple[tuple[str, ...], str, dict[str, Any], Reason]] = [
    (EVERY[1:], "trees", {"scaling": "per-query"}, "scaling"),
    (EVERY[1:], "linear", {"scaling": "per-query", "log1p": False}, "scaling"),
    (("lightgbm",), "linear", {"log1p": True}, "log1p"),
    (("lightgbm",), "trees+linear", {"log1p": True}, "log1p"),
    (ENGINES, "trees", {"missing": 2.0}, "missing"),
    (("lightgbm",), "linear", {"missing": 0.0, "log1p": False}, "missing"),
    (ENGINES, "trees", WITH_INDICATOR, "indicators"),
    (("solr",), "trees+column", {}, "start"),
    (("solr",), "trees+linear", {"log1p": False}, "start"),
    (("lightgbm", *ENGINES, "vespa"), "trees+mlp", {}, "start"),
    (("lightgbm", "opensearch", "elasticsearch", "vespa"), "mlp", {"log1p": False}, "scorer"),
]


@pytest.mark.parametrize(
    ("to", "scorer", "schema", "reason"),
    [(to, scorer, schema, reason) for formats, scorer, schema, reason in REFUSED for to in formats],
)
def test_what_a_format_cannot_hold_is_refused(to: str, scorer: str, schema: dict[str, Any], reason: Reason) -> None:
    made = policy(scorer, **({"scaling": "none"} | schema))
    with pytest.raises(CannotExport) as refused:
        FORMATS[to].encode(made, "m")
    assert (refused.value.to, refused.value.reason, refused.value.exit_code) == (to, reason, 2)


@pytest.mark.parametrize("to", EVERY[1:])
def test_a_policy_without_trees_and_start_is_refused(to: str) -> None:
    made = policy("trees", scaling="none", trees=1)
    made = replace(made, kind=ScorerKind("gbdt"), weights=Forest.empty().arrays())
    with pytest.raises(CannotExport) as refused:
        FORMATS[to].encode(made, "m")
    assert refused.value.reason == "no trees"


def test_a_server_without_logarithms_reads_features_that_are_some() -> None:
    made = policy("trees+linear", scaling="none")
    start, trees = FORMATS["opensearch"].encode(made, "shop").decode().splitlines()
    start, trees = json.loads(start)["model"], json.loads(trees)["model"]
    assert (start["name"], start["model"]["type"]) == ("shop_start", "model/linear")
    assert list(json.loads(start["model"]["definition"])) == [f"log1p_{name}" for name in NAMES]
    assert (trees["name"], trees["model"]["type"]) == ("shop", "model/xgboost+json")
    assert json.loads(trees["model"]["definition"])[0]["split"] in NAMES
    solr = json.loads(FORMATS["solr"].encode(policy("mlp", scaling="none"), "shop"))
    assert solr["features"] == [{"name": f"log1p_{name}"} for name in NAMES]
    column = json.loads(FORMATS["opensearch"].encode(policy("trees+column", scaling="none"), "shop").splitlines()[0])
    assert json.loads(column["model"]["model"]["definition"]) == {"live score": 1.0}


def test_the_whole_message() -> None:
    with pytest.raises(CannotExport) as refused:
        FORMATS["solr"].encode(policy("linear"), "m")
    assert refused.value.args[0] == (
        "--to solr: features are scaled among the candidates of a query, and this format scores one document by "
        "itself; `--to onnx` holds it, or fit with --scaling none (certify shows what that costs)."
    )
