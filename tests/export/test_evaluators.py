"""What replays a file scores it as the format's documentation says: small models with results worked out by hand."""

import json
import sys
from typing import Any

import numpy as np
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.export import ltr_plugin, onnx_graph, solr_json, vespa_expression
from tests.policy.made import make_policy

NAMES = ("title_match", "original_score")


def rows(*values: tuple[float, float]) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def solr(kind: str, params: dict[str, Any]) -> bytes:
    features = [{"name": "original_score"}, {"name": "title_match"}]  # in another order than the rows
    return json.dumps(
        {"class": f"org.apache.solr.ltr.model.{kind}", "name": "m", "features": features, "params": params}
    ).encode()


def test_solr_trees_have_weights_and_thresholds_with_slack() -> None:
    right = {"feature": "original_score", "threshold": "10.0", "left": {"value": "50"}, "right": {"value": "75"}}
    root = {"feature": "title_match", "threshold": "0.5", "left": {"value": "-100"}, "right": right}
    text = solr("MultipleAdditiveTreesModel", {
        "trees": [{"weight": "1", "root": root}, {"weight": "2", "root": {"value": "-10"}}]
    })  # fmt: skip
    given = rows((0.5, 20), (0.5000005, 20), (0.51, 10), (1, 20), (np.nan, 20))
    assert solr_json.scores(text, given, NAMES).tolist() == [-100 - 20, -100 - 20, 50 - 20, 75 - 20, -100 - 20]


def test_solr_sums_and_networks() -> None:
    text = solr("LinearModel", {"weights": {"title_match": 1.0, "original_score": 0.5}})
    assert solr_json.scores(text, rows((1, 20), (3, np.nan)), NAMES).tolist() == [1 + 10, 3]
    hidden = {"matrix": [[1.0, 2.0], [-1.0, 0.0]], "bias": [0.5, 1.0], "activation": "relu"}
    last = {"matrix": [[2.0, 3.0]], "bias": [-1.0], "activation": "identity"}
    text = solr("NeuralNetworkModel", {"layers": [hidden, last]})
    # original_score 4, title_match 1: relu(4 + 2 + 0.5) = 6.5 and relu(-4 + 1) = 0
    assert solr_json.scores(text, rows((1, 4)), NAMES).tolist() == [2 * 6.5 + 3 * 0 - 1]


def test_the_plugin_goes_yes_if_less_and_takes_0_for_a_missing_value() -> None:
    leaves = [{"nodeid": 1, "leaf": 0.5}, {"nodeid": 2, "leaf": 0.25}]
    tree = {"nodeid": 0, "depth": 0, "split": "original_score", "split_condition": 3.0, "yes": 1, "no": 2, "missing": 2}
    model = {
        "type": "model/xgboost+json",
        "definition": json.dumps([tree | {"children": leaves}, {"nodeid": 0, "leaf": 8}]),
    }
    linear = {"type": "model/linear", "definition": json.dumps({"title_match": 2.0, "log1p_original_score": 1.0})}
    lines = [json.dumps({"model": {"name": "m", "model": one}}) for one in (model, linear)]
    given = rows((1, 2.5), (1, 3), (1, np.nan))
    assert ltr_plugin.scores(lines[0].encode(), given, NAMES).tolist() == [8.5, 8.25, 8.5]
    both = ltr_plugin.scores("\n".join(lines).encode(), given, NAMES)
    assert both.tolist() == pytest.approx([8.5 + 2 + np.log(3.5), 8.25 + 2 + np.log(4), 8.5 + 2])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.0 + 3.0 * original_score - title_match", [2 + 3 * 4 - 1, 2 + 3 * 9 - 0]),
        ("if (title_match < 1.0, 5.0, (-6.5))", [-6.5, 5]),
        ("if (!(title_match >= 1.0), 5.0, 1e-2 * original_score)", [0.04, 5]),
        ("log(1.0 + original_score) * (title_match + 1)", [2 * np.log(5), np.log(10)]),
        ("isNan(title_match) + 1", [1, 1]),
    ],
)
def test_ranking_expressions(text: str, expected: list[float]) -> None:
    found = vespa_expression.scores(text.encode(), rows((1, 4), (0, 9)), NAMES)
    assert found.tolist() == pytest.approx(expected)


def test_every_comparison_with_a_missing_value_is_false() -> None:
    given = rows((np.nan, 1))
    for text, expected in (
        ("if (title_match < 1.0, 5.0, 6.0)", 6),
        ("if (!(title_match >= 1.0), 5.0, 6.0)", 5),
        ("isNan(title_match)", 1),
    ):
        assert vespa_expression.scores(text.encode(), given, NAMES).tolist() == [expected]


@pytest.mark.parametrize(
    "text", ["price", "1.0 +", "if (title_match, 1.0", "1.0 2.0", "log title_match", "if (1.0, 2.0)"]
)
def test_what_is_no_expression_of_the_features(text: str) -> None:
    with pytest.raises(DataError):
        vespa_expression.scores(text.encode(), rows((1, 4)), NAMES)


def test_names_that_vespa_reads() -> None:
    given = ("attribute(price)", "fieldMatch(title).completeness", "list price", "list,price", "7", "log")
    readable = ["attribute(price)", "fieldMatch(title).completeness", "list_price", "list_price_2", "f7", "log_"]
    assert vespa_expression.feature_names(given) == readable
    text = " + ".join(readable).encode()
    assert vespa_expression.scores(text, np.array([[1, 2, 4, 8, 16, 32]], np.float32), given).tolist() == [63]


def test_the_extra_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = onnx_graph.encode(make_policy(), "m")
    for package in ("onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=r"saferank\[onnx\]"):
        onnx_graph.encode(make_policy(), "m")
    with pytest.raises(UsageError, match=r"saferank\[onnx\]"):
        onnx_graph.scores(text, np.zeros((1, 3), np.float32), ("price", "stock", "age"))
