"""Apache Solr's learning-to-rank module: MultipleAdditiveTreesModel, LinearModel and NeuralNetworkModel.

Solr computes with float32, and a feature without a value is 0. It adds 1e-6 to every threshold of a tree when it reads
the model, so that much is taken off before; thresholds of less than 4e-6 are then met to within 3e-13.
A weighted sum or a network of logarithms reads features log1p_NAME, which the feature store has to compute.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.export.common_refusals import HELD, NO_TREES, refuse_missing, refuse_scaling
from saferank.export.inputs import Inputs, column, logarithm_names
from saferank.export.raw_trees import Node, Split, raw_trees
from saferank.export.refusal import CannotExport
from saferank.policy.policy import Policy
from saferank.policy.scorers.parts import ScorerParts

PACKAGE = "org.apache.solr.ltr.model."
SLACK = np.float32(1e-6)


def encode(policy: Policy, name: str) -> bytes:
    """Return the model, for `PUT /schema/model-store`."""
    to, schema, parts = "solr", policy.schema, policy.parts
    names = Inputs.of(schema).names
    refuse_scaling(to, schema)
    refuse_missing(to, schema)
    if parts.start != "none" and parts.forest.trees:
        message = "the trees correct other scores (a column, a weighted sum or a network), and Solr cannot add the two"
        raise CannotExport(to, "start", f"{message}; {HELD}, or fit with --scorer mlp or linear --scaling none.")
    params: dict[str, Any]
    if parts.start == "linear":
        names = tuple(logarithm_names(names, schema))
        weights = parts.layers[0][0][0]
        kind, params = "LinearModel", {"weights": dict(zip(names, map(float, weights), strict=True))}
    elif parts.start == "mlp":
        names = tuple(logarithm_names(names, schema))
        kind, params = "NeuralNetworkModel", {"layers": _layers(parts)}
    elif not parts.forest.trees:
        raise CannotExport(to, "no trees", NO_TREES)
    else:
        trees = [{"weight": "1", "root": _node(tree, names)} for tree in raw_trees(parts.forest, schema)]
        kind, params = "MultipleAdditiveTreesModel", {"trees": trees}
    features = [{"name": feature} for feature in names]
    model = {"class": PACKAGE + kind, "name": name, "features": features, "params": params}
    return (json.dumps(model, indent=1, allow_nan=False) + "\n").encode()


def scores(text: bytes, rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the scores that Solr gives to rows, by its documentation; a missing value is 0."""
    given = np.nan_to_num(rows.astype(np.float32), nan=0.0)
    try:
        model = json.loads(text)
        found = [feature["name"] for feature in model["features"]]
        given = np.column_stack([column(name, given, names) for name in found])
        kind, params = model["class"].removeprefix(PACKAGE), model["params"]
        if kind == "LinearModel":
            weights = np.array([params["weights"][name] for name in found], np.float32)
            return (given @ weights).astype(np.float64)
        if kind == "NeuralNetworkModel":
            for layer in params["layers"]:
                given = given @ np.array(layer["matrix"], np.float32).T + np.array(layer["bias"], np.float32)
                given = {"relu": np.maximum(given, 0), "identity": given}[layer["activation"]]
            return given[:, 0].astype(np.float64)
        if kind == "MultipleAdditiveTreesModel":
            out = np.zeros(len(rows), np.float32)
            for tree in params["trees"]:
                out += np.float32(tree["weight"]) * _leaf_values(tree["root"], given, found)
            return out.astype(np.float64)
        raise ValueError(f"class {kind!r}")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(f"is not a model of Solr's learning-to-rank module ({error!r}); export it again.") from error


def without_slack(threshold: np.float32) -> np.float32:
    """Return the float32 t for which t + 1e-6, rounded to float32, is the threshold, or as near below as can be."""
    near = threshold - SLACK
    tried = [near]
    for direction in (-np.inf, np.inf):
        value = near
        for _ in range(2):
            value = np.nextafter(value, np.float32(direction))
            tried.append(value)
    below = [value for value in tried if value + SLACK <= threshold]
    return max(below, key=lambda value: value + SLACK)


def _node(node: Node, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(node, Split):
        return {"value": repr(node.value)}
    return {
        "feature": names[node.feature],
        "threshold": repr(float(without_slack(node.threshold))),
        "left": _node(node.left, names),
        "right": _node(node.right, names),
    }


def _layers(parts: ScorerParts) -> list[dict[str, Any]]:
    last = len(parts.layers) - 1
    return [
        {
            "matrix": weights.astype(np.float64).tolist(),
            "bias": np.zeros(len(weights)).tolist() if bias is None else bias.astype(np.float64).tolist(),
            "activation": "identity" if place == last else "relu",
        }
        for place, (weights, bias) in enumerate(parts.layers)
    ]


def _leaf_values(node: dict[str, Any], rows: NDArray[np.float32], names: list[str]) -> NDArray[np.float32]:
    """Return the value of the leaf that each row falls into."""
    if "feature" not in node:
        return np.full(len(rows), np.float32(node["value"]))
    left = rows[:, names.index(node["feature"])] <= np.float32(node["threshold"]) + SLACK
    out = np.empty(len(rows), np.float32)
    out[left] = _leaf_values(node["left"], rows[left], names)
    out[~left] = _leaf_values(node["right"], rows[~left], names)
    return out
