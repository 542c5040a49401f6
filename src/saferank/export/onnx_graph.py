"""ONNX: the whole policy as one graph, from the raw features of one query's candidates to their scores.

Input `features`, float32 (documents, inputs): all candidates of one query, because features are scaled among them.
Output `scores`, float32 (documents,). The graph is built node by node; trees are `TreeEnsembleRegressor` of ai.onnx.ml.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saferank import __version__
from saferank.engine.errors import DataError, UsageError
from saferank.export.inputs import Inputs
from saferank.export.raw_trees import Node, Split, raw_trees
from saferank.features.schema import FeatureSchema
from saferank.policy.policy import Policy
from saferank.policy.scorers.forest import Forest
from saferank.policy.scorers.parts import ScorerParts

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

OPSET, ML_OPSET, IR_VERSION = 18, 3, 8
INSTALL = "install it with `pip install 'saferank[onnx]'`"


def encode(policy: Policy, name: str) -> bytes:
    """Return the model file."""
    try:
        from onnx import TensorProto, checker, helper
    except ImportError as error:
        raise UsageError(f"--to onnx needs the package onnx; {INSTALL}.") from error
    schema, parts, inputs = policy.schema, policy.parts, Inputs.of(policy.schema)
    graph = _Graph()
    prepared = _prepared(graph, schema, inputs)
    total = _not_finite(graph, schema)
    if parts.start == "column":
        base = graph.add("Gather", "features", graph.constant(np.array(len(inputs.names) - 1)), axis=1)
        scale = graph.constant(np.array(parts.column_scale, np.float32))
        total = graph.add("Add", total, graph.add("Mul", base, scale))
    elif parts.start != "none":
        total = graph.add("Add", total, _layers(graph, prepared, parts))
    if parts.forest.trees:
        if schema.scaling == "none":
            trees = graph.ensemble("features", raw_trees(parts.forest, schema))
        else:
            trees = graph.ensemble(prepared, _as_nodes(parts.forest))
        total = graph.add("Add", total, graph.add("Squeeze", trees, graph.constant(np.array([1]))))
    graph.add("Identity", total, out="scores")
    made = helper.make_graph(
        graph.nodes, "saferank",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["documents", len(inputs.names)])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["documents"])],
        graph.constants,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=IR_VERSION, producer_name="saferank")
    model.producer_version = __version__
    model.doc_string = "Input: raw features of all candidates of one query. Output: one score per candidate."
    helper.set_model_props(model, {"name": name, "features": json.dumps(inputs.names)})
    checker.check_model(model)
    text: bytes = model.SerializeToString()
    return text


def scores(text: bytes, rows: NDArray[np.float32], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the scores that onnxruntime gives to the raw rows of one query."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UsageError(f"replaying ONNX needs the package onnxruntime; {INSTALL}.") from error
    session = _session(text, onnxruntime)
    width = session.get_inputs()[0].shape[1]
    if width != len(names):
        raise DataError(f"reads {width} features, but the rows have {len(names)}; export it again.")
    out: NDArray[np.float32] = session.run(["scores"], {"features": np.ascontiguousarray(rows, np.float32)})[0]
    return out.astype(np.float64)


def _session(text: bytes, onnxruntime: Any) -> Any:
    """Return a session of one thread, the last one again if it is of the same model."""
    if _last.get("text") != text:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has an exception of its own for each kind of failure
            raise DataError(f"onnxruntime does not read it ({error}); export it again.") from error
        _last.update(text=text, session=session)
    return _last["session"]


_last: dict[str, Any] = {}


class _Graph:
    """Nodes and constants, each with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, value: NDArray[Any]) -> str:
        """Return the name of a new constant."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def number(self, value: float) -> str:
        """Return the name of a new float32."""
        return self.constant(np.array(value, np.float32))

    def add(self, kind: str, *inputs: str, out: str | None = None, **settings: Any) -> str:
        """Add a node; return the name of its output."""
        from onnx import helper

        out = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **settings))
        return out

    def ensemble(self, features: str, trees: list[Node]) -> str:
        """Add the sum of trees, as a column."""
        rows: list[dict[str, Any]] = []
        for tree, root in enumerate(trees):
            _tree_rows(root, tree, [0], rows)
        columns: dict[str, list[Any]] = {key: [row[key] for row in rows] for key in rows[0]}
        ends = [row for row in rows if row["mode"] == "LEAF"]
        return self.add(
            "TreeEnsembleRegressor", features, domain="ai.onnx.ml", n_targets=1, aggregate_function="SUM",
            post_transform="NONE", nodes_treeids=columns["tree"], nodes_nodeids=columns["node"],
            nodes_featureids=columns["feature"], nodes_values=columns["threshold"], nodes_modes=columns["mode"],
            nodes_truenodeids=columns["left"], nodes_falsenodeids=columns["right"],
            nodes_missing_value_tracks_true=columns["missing_left"],
            target_treeids=[row["tree"] for row in ends], target_nodeids=[row["node"] for row in ends],
            target_ids=[0] * len(ends), target_weights=[row["value"] for row in ends],
        )  # fmt: skip


def _tree_rows(node: Node, tree: int, count: list[int], rows: list[dict[str, Any]]) -> int:
    """Append a node and all below it; return its number in the tree."""
    number = count[0]
    count[0] += 1
    row: dict[str, Any] = {
        "tree": tree, "node": number, "feature": 0, "threshold": 0.0, "mode": "LEAF", "left": 0, "right": 0,
        "missing_left": 0, "value": 0.0,
    }  # fmt: skip
    rows.append(row)
    if isinstance(node, Split):
        row |= {"feature": node.feature, "threshold": float(node.threshold), "mode": "BRANCH_LEQ"}
        row |= {"missing_left": int(node.missing_left)}
        row["left"] = _tree_rows(node.left, tree, count, rows)
        row["right"] = _tree_rows(node.right, tree, count, rows)
    else:
        row["value"] = node.value
    return number


def _as_nodes(forest: Forest) -> list[Node]:
    """Return the trees of a forest as they are: they read prepared features."""
    identity = FeatureSchema(tuple(map(str, range(forest.features_read or 1))), log1p=False, scaling="none")
    return raw_trees(forest, identity)


def _prepared(graph: _Graph, schema: FeatureSchema, inputs: Inputs) -> str:
    """Add what `FeatureSchema.prepare` does, without the base column, which is the last one."""
    count = len(schema.names)
    source, is_indicator = np.array(inputs.source[:count]), np.array([inputs.indicator[:count]])
    raw = graph.add("Gather", "features", graph.constant(source), axis=1)
    missing = graph.add("IsNaN", raw)
    filled = raw
    if schema.missing == "indicator" and schema.scaling == "per-query":
        # The smallest value of the query, which is scaled to 0; 0 if there is no value at all.
        infinite = graph.add("Where", missing, graph.number(np.inf), raw)
        smallest = graph.add("ReduceMin", infinite, graph.constant(np.array([0])), keepdims=1)
        none = graph.add("IsInf", smallest)
        filled = graph.add("Where", missing, graph.add("Where", none, graph.number(0.0), smallest), raw)
    elif schema.missing != "error":
        fill = 0.0 if schema.missing == "indicator" else float(schema.missing)
        filled = graph.add("Where", missing, graph.number(fill), raw)
    if is_indicator.any():
        as_number = graph.add("Cast", missing, to=1)
        filled = graph.add("Where", graph.constant(is_indicator), as_number, filled)
    if schema.log1p:  # in float64: of a small x, log(1 + x) would lose digits
        wide = graph.add("Cast", filled, to=11)
        one = graph.constant(np.array(1.0, np.float64))
        log = graph.add("Log", graph.add("Add", graph.add("Abs", wide), one))
        filled = graph.add("Cast", graph.add("Mul", graph.add("Sign", wide), log), to=1)
    if schema.scaling == "per-query":
        first = graph.constant(np.array([0]))
        low = graph.add("ReduceMin", filled, first, keepdims=1)
        span = graph.add("Sub", graph.add("ReduceMax", filled, first, keepdims=1), low)
        flat = graph.add("Equal", span, graph.number(0.0))
        divisor = graph.add("Where", flat, graph.number(1.0), span)
        filled = graph.add("Div", graph.add("Sub", filled, low), divisor)
    return filled


def _not_finite(graph: _Graph, schema: FeatureSchema) -> str:
    """Add what is 0, or NaN for all candidates if a value is one that saferank refuses; shape (documents,)."""
    values = "features"
    if schema.missing != "error":
        values = graph.add("Where", graph.add("IsNaN", values), graph.number(0.0), values)
    nothing = graph.add("Mul", values, graph.number(0.0))  # NaN where a value is NaN or infinite
    each = graph.add("ReduceSum", nothing, graph.constant(np.array([1])), keepdims=0)
    return graph.add("Add", each, graph.add("ReduceSum", nothing, keepdims=0))


def _layers(graph: _Graph, prepared: str, parts: ScorerParts) -> str:
    """Add a weighted sum or a neural network; shape (documents,)."""
    out = prepared
    for place, (weights, bias) in enumerate(parts.layers):
        out = graph.add("Relu", out) if place else out
        out = graph.add("MatMul", out, graph.constant(np.ascontiguousarray(weights.T)))
        out = out if bias is None else graph.add("Add", out, graph.constant(bias))
    return graph.add("Squeeze", out, graph.constant(np.array([1])))
