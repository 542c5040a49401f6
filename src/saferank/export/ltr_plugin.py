"""The learning-to-rank plugin of OpenSearch and Elasticsearch: the body of a `_createmodel` request.

Trees are `model/xgboost+json`, XGBoost's dump: a value goes to the node `yes` if it is less than `split_condition`, and
a feature without a value is 0, whatever `missing` says. A weighted sum is `model/linear`. The plugin computes with
float32.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.export.common_refusals import (
    NO_TREES,
    refuse_log1p,
    refuse_missing,
    refuse_scaling,
    refuse_start,
)
from saferank.export.inputs import Inputs
from saferank.export.raw_trees import Node, Split, raw_trees
from saferank.export.refusal import CannotExport
from saferank.export.scorer_parts import ScorerParts
from saferank.policy.policy import Policy

TREES, LINEAR = "model/xgboost+json", "model/linear"


def encode(policy: Policy, name: str, to: str) -> bytes:
    """Return the body of the request."""
    schema, parts, names = policy.schema, ScorerParts.of(policy), Inputs.of(policy.schema).names
    refuse_scaling(to, schema)
    refuse_missing(to, schema)
    refuse_start(to, parts)
    definition: Any
    if parts.start == "linear":
        refuse_log1p(to, schema, "the weighted sum")
        weights = parts.layers[0][0][0]
        kind, definition = LINEAR, dict(zip(names, map(float, weights), strict=True))
    elif parts.start == "mlp":
        raise CannotExport(to, "scorer", "this plugin has no neural networks; `--to onnx` holds it.")
    elif not parts.forest.trees:
        raise CannotExport(to, "no trees", NO_TREES)
    else:
        kind = TREES
        definition = [_node(tree, names, [0], 0) for tree in raw_trees(parts.forest, schema)]
    model = {"name": name, "model": {"type": kind, "definition": json.dumps(definition, allow_nan=False)}}
    return (json.dumps({"model": model}, indent=1) + "\n").encode()


def scores(text: bytes, rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the scores that the plugin gives to rows, by its documentation; a missing value is 0."""
    given = np.nan_to_num(rows.astype(np.float32), nan=0.0)
    out = np.zeros(len(rows), np.float32)
    try:
        model = json.loads(text)["model"]["model"]
        kind, definition = model["type"], json.loads(model["definition"])
        if kind == LINEAR:
            for name, weight in definition.items():
                out += np.float32(weight) * given[:, names.index(name)]
        elif kind == TREES:
            for tree in definition:
                out += _leaf_values(tree, given, names)
        else:
            raise ValueError(f"type {kind!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"is not a model of the learning-to-rank plugin ({error!r}); export it again.") from error
    return out.astype(np.float64)


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
