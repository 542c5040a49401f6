"""The learning-to-rank plugin of OpenSearch and Elasticsearch: bodies of `_createmodel` requests, one per line.

Trees are `model/xgboost+json`, XGBoost's dump: a value goes to the node `yes` if it is less than `split_condition`, and
a feature without a value is 0, whatever `missing` says. A weighted sum is `model/linear`. The plugin computes with
float32. Trees on top of a weighted sum or a column are two models: the score is the sum of theirs, which two rescorers
in a row add up (`score_mode` total). A weighted sum of logarithms reads features log1p_NAME, which the feature set
derives from the others (`derived_expression`); trees read the features as they are.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.export.common_refusals import refuse_missing, refuse_scaling, refuse_without_trees
from saferank.export.inputs import Inputs, column, logarithm_names
from saferank.export.raw_trees import Node, Split, raw_trees
from saferank.policy.policy import Policy

TREES, LINEAR = "model/xgboost+json", "model/linear"


def encode(policy: Policy, name: str, to: str) -> bytes:
    """Return the bodies of the requests: of the start first, if there is one, then of the trees."""
    schema, parts, names = policy.schema, policy.parts, Inputs.of(policy.schema).names
    refuse_scaling(to, schema)
    refuse_missing(to, schema)
    network = "this plugin has no neural networks; `--to onnx` holds it."
    refuse_without_trees(to, parts, network, ("none", "column"))
    models: list[tuple[str, Any]] = []
    if parts.start != "none":
        weights = {names[-1]: parts.column_scale}
        if parts.start == "linear":
            weights = dict(zip(logarithm_names(names, schema), map(float, parts.layers[0][0][0]), strict=True))
        models.append((LINEAR, weights))
    if parts.forest.trees:
        models.append((TREES, [_node(tree, names, [0], 0) for tree in raw_trees(parts.forest, schema)]))
    called = [f"{name}_start", name][-len(models) :]
    return "".join(map(_request, called, models)).encode()


def scores(text: bytes, rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the scores that the plugin gives to rows, by its documentation; a missing value is 0."""
    given = np.nan_to_num(rows.astype(np.float32), nan=0.0)
    out = np.zeros(len(rows), np.float32)
    try:
        for line in text.splitlines():
            out += _model_scores(json.loads(line)["model"]["model"], given, names)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"is not a model of the learning-to-rank plugin ({error!r}); export it again.") from error
    return out.astype(np.float64)


def _request(name: str, model: tuple[str, Any]) -> str:
    kind, definition = model
    inner = {"type": kind, "definition": json.dumps(definition, allow_nan=False)}
    return json.dumps({"model": {"name": name, "model": inner}}) + "\n"


def _model_scores(model: dict[str, str], rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float32]:
    out = np.zeros(len(rows), np.float32)
    definition = json.loads(model["definition"])
    if model["type"] == LINEAR:
        for name, weight in definition.items():
            out += np.float32(weight) * column(name, rows, names)
    elif model["type"] == TREES:
        for tree in definition:
            out += _leaf_values(tree, rows, names)
    else:
        raise ValueError(f"type {model['type']!r}")
    return out


def _node(node: Node, names: tuple[str, ...], count: list[int], depth: int) -> dict[str, Any]:
    number = count[0]
    count[0] += 1
    if not isinstance(node, Split):
        return {"nodeid": number, "leaf": node.value}
    left, right = (_node(child, names, count, depth + 1) for child in (node.left, node.right))
    return {
        "nodeid": number,
        "depth": depth,
        "split": names[node.feature],
        "split_condition": float(node.above),
        "yes": left["nodeid"],
        "no": right["nodeid"],
        "missing": (left if node.missing_left else right)["nodeid"],
        "children": [left, right],
    }


def _leaf_values(node: dict[str, Any], rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float32]:
    """Return the value of the leaf that each row falls into."""
    if "leaf" in node:
        return np.full(len(rows), node["leaf"], np.float32)
    children = {child["nodeid"]: child for child in node["children"]}
    yes = rows[:, names.index(node["split"])] < np.float32(node["split_condition"])
    out = np.empty(len(rows), np.float32)
    out[yes] = _leaf_values(children[node["yes"]], rows[yes], names)
    out[~yes] = _leaf_values(children[node["no"]], rows[~yes], names)
    return out
