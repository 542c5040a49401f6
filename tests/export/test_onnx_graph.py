"""The ONNX graph, in onnxruntime."""

import json
from typing import Any

import numpy as np
import onnx
import pytest

from saferank.export import onnx_graph
from saferank.export.inputs import Inputs, scores_of
from saferank.policy.policy import Policy
from tests.policy.made import make_policy, make_trees

ROWS = np.array([[3.0, -2.0, 7.0], [0.5, 0.0, -900.0], [12.0, -2.0, 1e-3]], np.float32)


def replayed(policy: Policy, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return onnx_graph.scores(onnx_graph.encode(policy, "m"), rows, Inputs.of(policy.schema).names)


def test_one_call_is_one_query() -> None:
    policy = make_policy("linear")
    both = np.vstack([ROWS, ROWS + 5])
    ours = scores_of(policy, both, np.array([0, 3, 6]))
    np.testing.assert_allclose(replayed(policy, ROWS), ours[:3], rtol=1e-5)
    assert np.abs(replayed(policy, both)[:3] - ours[:3]).max() > 1e-3  # scaled among six, not among three


def test_a_value_that_saferank_refuses_gives_no_scores_at_all() -> None:
    for bad in (np.nan, np.inf):
        rows = ROWS.copy()
        rows[1, 0] = bad
        assert np.isnan(replayed(make_trees("none", scaling="none"), rows)).all()
    filled = make_trees("none", scaling="none", missing=0.0)
    rows[1, 0] = np.nan
    assert np.isfinite(replayed(filled, rows)).all()


@pytest.mark.parametrize("rows", [ROWS[:1], np.full((2, 3), 4.0, np.float32)])
def test_a_feature_that_is_constant_in_the_query_is_0(rows: np.ndarray[Any, Any]) -> None:
    policy = make_policy("mlp")
    zero = make_policy("mlp", scaling="none", log1p=False)
    expected = scores_of(zero, np.zeros_like(rows), np.array([0, len(rows)]))
    np.testing.assert_allclose(replayed(policy, rows), expected, rtol=1e-5)


def test_it_says_what_it_reads() -> None:
    model = onnx.load_from_string(onnx_graph.encode(make_policy(), "shop"))
    props = {prop.key: prop.value for prop in model.metadata_props}
    assert props["name"] == "shop"
    assert json.loads(props["features"]) == ["price", "stock", "age"]
    assert [one.name for one in model.graph.input] == ["features"]
    assert [one.name for one in model.graph.output] == ["scores"]
