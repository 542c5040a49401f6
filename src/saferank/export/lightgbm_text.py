"""LightGBM's text model: trees, on top of a column or a weighted sum if there is one.

The format is what `lightgbm.Booster.save_model` writes (version v4). A start that is linear in the raw features is a
tree whose two leaves have the same linear function, which LightGBM reads since 3.2 (`linear_tree`).
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from saferank.engine.errors import DataError
from saferank.export.common_refusals import HELD, refuse_scaling, refuse_without_trees
from saferank.export.inputs import Inputs, unique_names
from saferank.export.raw_trees import Node, leaves, raw_trees, splits
from saferank.export.refusal import CannotExport
from saferank.policy.policy import Policy

DEFAULT_LEFT, MISSING_IS_NAN = 2, 8
"""Bits of `decision_type`."""


def encode(policy: Policy) -> bytes:
    """Return the text of the model."""
    to, schema, parts = "lightgbm", policy.schema, policy.parts
    refuse_scaling(to, schema)
    refuse_without_trees(to, parts, "a neural network is not made of trees; `--to onnx` holds it.")
    inputs = Inputs.of(schema)
    trees = [_tree(tree) for tree in raw_trees(parts.forest, schema)]
    if parts.start == "column":
        trees.insert(0, _linear_leaf([len(inputs.names) - 1], [parts.column_scale]))
    elif parts.start == "linear":
        if schema.log1p:
            remedy = "fit with --scaling none --no-log1p on features whose logarithms you have taken yourself"
            raise CannotExport(to, "log1p", f"LightGBM has no weighted sums of logarithms; {HELD}, or {remedy}.")
        if schema.missing != "error":
            message = "in LightGBM a weighted sum has no value where a feature has none; `--to onnx` holds it."
            raise CannotExport(to, "missing", message)
        weights = parts.layers[0][0][0]
        trees.insert(0, _linear_leaf(list(range(len(weights))), [float(weight) for weight in weights]))
    texts = [f"Tree={place}\n{text}\n\n" for place, text in enumerate(trees)]
    head = {
        "version": "v4",
        "num_class": "1",
        "num_tree_per_iteration": "1",
        "label_index": "0",
        "max_feature_idx": str(len(inputs.names) - 1),
        "objective": "regression",
        "feature_names": " ".join(_plain_names(inputs.names)),
        "feature_infos": " ".join(["[-inf:inf]"] * len(inputs.names)),
        "tree_sizes": " ".join(str(len(text)) for text in texts),
    }
    lines = "".join(f"{key}={value}\n" for key, value in head.items())
    return f"tree\n{lines}\n{''.join(texts)}end of trees\n\nparameters:\n\nend of parameters\n".encode()


def scores(text: bytes, rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the scores that LightGBM gives to raw rows."""
    import torch  # noqa: F401 (brings libgomp, which LightGBM needs and slim machines lack)
    import lightgbm  # isort: skip

    try:
        booster = lightgbm.Booster(model_str=text.decode())
    except (lightgbm.basic.LightGBMError, UnicodeDecodeError) as error:
        raise DataError(f"LightGBM does not read it ({error}); export it again.") from error
    if booster.num_feature() != len(names):
        raise DataError(f"reads {booster.num_feature()} features, but the rows have {len(names)}; export it again.")
    predicted: NDArray[np.float64] = np.asarray(booster.predict(rows.astype(np.float64), num_threads=1))
    return predicted


def _tree(tree: Node) -> str:
    nodes, ends = list(splits(tree)), list(leaves(tree))
    place = {id(node): number for number, node in enumerate(nodes)}
    place |= {id(leaf): -1 - number for number, leaf in enumerate(ends)}
    lines = {"num_leaves": str(len(ends)), "num_cat": "0"}
    if nodes:
        lines |= {
            "split_feature": _row(node.feature for node in nodes),
            "split_gain": _row(1 for _ in nodes),
            "threshold": _row(_text(node.threshold) for node in nodes),
            "decision_type": _row(MISSING_IS_NAN + DEFAULT_LEFT * node.missing_left for node in nodes),
            "left_child": _row(place[id(node.left)] for node in nodes),
            "right_child": _row(place[id(node.right)] for node in nodes),
        }
    lines |= {"leaf_value": _row(_text(leaf.value) for leaf in ends)}
    if nodes:
        lines |= {"leaf_weight": _row(1 for _ in ends), "leaf_count": _row(1 for _ in ends)}
        lines |= {key: _row(0 for _ in nodes) for key in ("internal_value", "internal_weight", "internal_count")}
    lines |= {"is_linear": "0", "shrinkage": "1"}
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _linear_leaf(features: Sequence[int], weights: Sequence[float]) -> str:
    """Return a tree of the weighted sum of some features; NaN if one of them is."""
    both = range(2)
    lines = {
        "num_leaves": "2",
        "num_cat": "0",
        "split_feature": "0",
        "split_gain": "1",
        "threshold": "0",
        "decision_type": str(MISSING_IS_NAN),
        "left_child": "-1",
        "right_child": "-2",
        "leaf_value": _row("nan" for _ in both),
        "leaf_weight": "1 1",
        "leaf_count": "1 1",
        "internal_value": "0",
        "internal_weight": "0",
        "internal_count": "0",
        "is_linear": "1",
        "leaf_const": "0 0",
        "num_features": _row(len(features) for _ in both),
        "leaf_features": "  ".join(_row(features) for _ in both) + "  ",
        "leaf_coeff": "  ".join(_row(map(_text, weights)) for _ in both) + "  ",
        "shrinkage": "1",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _row(values: Iterable[object]) -> str:
    return " ".join(map(str, values))


def _text(value: float | np.float32) -> str:
    return repr(float(value))


def _plain_names(names: tuple[str, ...]) -> list[str]:
    """Return names without what LightGBM does not allow in one; rows are matched by order, not by name."""
    return unique_names(re.sub(r'[\s",:\[\]{}=]', "_", name) for name in names)
